/**
 * docs/learn/consensus.md and its pages are what runs say today. `npm run pages -- docs/consensus` writes them anew.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { consensusPages } from "./consensus.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("docs/learn/consensus.md and its pages are what runs say", () => {
  for (const [page, text] of consensusPages()) {
    if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(`${root}${page}`, text);
    expect(readFileSync(`${root}${page}`, "utf8"), page).toBe(text);
  }
});
