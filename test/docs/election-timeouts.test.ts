/**
 * docs/images/election-timeouts.svg is what `coterie bench election-timeouts` measures today, and that is what the Raft paper says.
 * `npm run pages -- election-timeouts` draws it anew.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { line, nameOf, published, scales, spreads } from "../../bench/election-timeouts/figures.ts";
import { picture } from "../../bench/election-timeouts/picture.ts";

const file = fileURLToPath(new URL("../../docs/images/election-timeouts.svg", import.meta.url));
const TRIALS = 1_000;
/** How far a figure may be from the paper's. */
const MARGIN = 0.15;

test("figure 16: the picture is what runs say, and within 15 % of what the paper says in numbers", () => {
  const above = spreads.map((timeouts) => line(timeouts, TRIALS));
  const below = scales.map((timeouts) => line(timeouts, TRIALS));
  for (const { timeouts, what, ms } of published) {
    const measured = [...above, ...below].find((each) => nameOf(each) === timeouts)?.[what] ?? 0;
    expect(Math.abs(measured - ms) / ms, `${timeouts}: ${what} ${measured}, in the paper ${ms}`).toBeLessThan(MARGIN);
  }
  const [, ...random] = above;
  expect(random.map(({ worst }) => worst)[0]).toBeGreaterThan(10_000);
  const means = below.map(({ mean }) => mean);
  expect(means).toEqual(means.toSorted((a, b) => a - b));
  const drawn = picture(above, below);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, drawn);
  expect(readFileSync(file, "utf8")).toBe(drawn);
});
