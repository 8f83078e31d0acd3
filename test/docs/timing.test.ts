/**
 * Checks that the tables of docs/operate/timing.md match members in virtual time. `npm run pages -- timing` writes
 * them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { crashTable, keptAfter, SEEDS, stallTable } from "./timing.ts";

const file = fileURLToPath(new URL("../../docs/operate/timing.md", import.meta.url));

/** Returns the page with this table between the marks of that name. */
function withTable(page: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  expect(page).toContain(begin);
  expect(to).toBeGreaterThanOrEqual(from);
  return `${page.slice(0, from)}${table}${page.slice(to)}`;
}

test("docs/operate/timing.md has the tolerated pauses and the cost of a crash for each timing", {
  tags: ["long"],
}, async () => {
  const stalls = await stallTable();
  const crashes = await crashTable();
  const page = withTable(withTable(readFileSync(file, "utf8"), "stalls", stalls), "crashes", crashes);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, page);
  expect(readFileSync(file, "utf8")).toBe(page);
});

test("a more patient timing keeps grants longer", async () => {
  const [seed = 1] = SEEDS;
  expect(await keptAfter("fast", 1_000, seed)).toEqual({ tenures: false, place: false });
  expect(await keptAfter("default", 1_000, seed)).toEqual({ tenures: true, place: false });
  expect(await keptAfter("patient", 1_000, seed)).toEqual({ tenures: true, place: true });
  expect(await keptAfter("default", 8_000, seed)).toEqual({ tenures: false, place: false });
  expect(await keptAfter("patient", 8_000, seed)).toMatchObject({ tenures: true });
});
