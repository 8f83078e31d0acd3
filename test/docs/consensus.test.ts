/**
 * docs/consensus.md is what runs say today. `npm run pages -- docs/consensus` writes it anew.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { consensusPage } from "./consensus.ts";

const file = fileURLToPath(new URL("../../docs/consensus.md", import.meta.url));

test("docs/consensus.md is what runs say", () => {
  const page = consensusPage();
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, page);
  expect(readFileSync(file, "utf8")).toBe(page);
}, 300_000);
