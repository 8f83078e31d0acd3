/**
 * Checks that docs/learn/comparison.md matches current results. `COTERIE_WRITE_PAGE=1` writes it.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { comparisonPage } from "./comparison.ts";

const file = fileURLToPath(new URL("../../docs/learn/comparison.md", import.meta.url));

test("docs/learn/comparison.md matches the runs", () => {
  const page = comparisonPage();
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, page);
  expect(readFileSync(file, "utf8")).toBe(page);
});
