/**
 * docs/images/duel.svg is what `coterie bench duel` measures today, and every seed decides with a random back-off.
 * `npm run pages -- duel` draws it anew.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { measured, SEEDS, settings } from "../../bench/duel/figures.ts";
import { picture } from "../../bench/duel/picture.ts";

const file = fileURLToPath(new URL("../../docs/images/duel.svg", import.meta.url));

test("every one of 10,000 seeds decides with a back-off; in lockstep without one nobody ever does; the picture says so", () => {
  const figures = settings.map(measured);
  const undecided = figures.map(({ decidedAt }) => decidedAt.filter((at) => at === null).length);
  expect(figures[0]?.decidedAt).toHaveLength(SEEDS);
  expect(undecided.slice(0, 1)).toEqual([0]);
  expect(undecided.at(-1)).toBe(1);
  const drawn = picture(figures);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, drawn);
  expect(readFileSync(file, "utf8")).toBe(drawn);
});
