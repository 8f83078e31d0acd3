/**
 * Checks that docs/learn/consensus.md and its pages match current results. `npm run pages -- docs/consensus` writes
 * them.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { consensusPages } from "./consensus.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("docs/learn/consensus.md and its pages match the runs", () => {
  for (const [page, text] of consensusPages()) {
    if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(`${root}${page}`, text);
    expect(readFileSync(`${root}${page}`, "utf8"), page).toBe(text);
  }
});
