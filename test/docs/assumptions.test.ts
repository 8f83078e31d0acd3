/**
 * Checks that docs/verify/assumptions.md and the pages of its families match current results. `COTERIE_WRITE_PAGE=1`
 * writes them.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { protocolNames } from "../../src/protocols/index.ts";
import { brokenThoughTolerated, pagesOf, type Row, rowLike, rowOf } from "./assumptions.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = `${root}docs/internals/assumptions`;
const isWriting = process.env.COTERIE_WRITE_PAGE === "1";

/**
 * Compares the pages with these rows, and reports violations without an assumption that the protocol declares
 * unnecessary.
 */
function expectRows(row: (protocol: string) => Row): void {
  const rows = new Map(protocolNames.map((protocol) => [protocol, row(protocol)]));
  const pages = pagesOf(rows);
  if (isWriting) {
    mkdirSync(folder, { recursive: true });
    for (const [page, text] of pages) writeFileSync(`${root}${page}`, text);
  }
  for (const [page, text] of pages) expect(readFileSync(`${root}${page}`, "utf8"), page).toBe(text);
  expect(
    [
      "docs/verify/assumptions.md",
      ...readdirSync(folder).map((file) => `docs/internals/assumptions/${file}`),
    ].toSorted(),
  ).toEqual([...pages.keys()].toSorted());
  expect([...rows].flatMap(([protocol, row]) => brokenThoughTolerated(protocol, row))).toEqual([]);
}

test.skipIf(isWriting)(
  "every violation in docs/verify/assumptions.md, and a tenth of the search of every other cell",
  {
    tags: ["long"],
  },
  () => {
    const listed = readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`, "utf8"));
    expectRows((protocol) => rowLike(protocol, listed.join("\n")));
  },
);

test("every cell of docs/verify/assumptions.md, searched as far as it states", { tags: ["larger"] }, () =>
  expectRows(rowOf),
);
