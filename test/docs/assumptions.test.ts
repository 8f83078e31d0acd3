/** docs/assumptions.md and the pages of its families are what runs say today. `COTERIE_WRITE_PAGE=1` writes them anew. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { protocolNames } from "../../src/protocols/index.ts";
import { brokenThoughTolerated, cell, columns, pageOf, pagesOf, rowOf } from "./assumptions.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = `${root}docs/assumptions`;

test("docs/assumptions.md and its pages are what runs say, and nothing breaks that a protocol says it does without", {
  tags: ["long"],
  timeout: 900_000,
}, () => {
  const rows = new Map(protocolNames.map((protocol) => [protocol, rowOf(protocol)]));
  const pages = pagesOf(rows);
  if (process.env.COTERIE_WRITE_PAGE === "1") {
    mkdirSync(folder, { recursive: true });
    for (const [page, text] of pages) writeFileSync(`${root}${page}`, text);
  }
  for (const [page, text] of pages) expect(readFileSync(`${root}${page}`, "utf8"), page).toBe(text);
  expect(["docs/assumptions.md", ...readdirSync(folder).map((file) => `docs/assumptions/${file}`)].toSorted()).toEqual(
    [...pages.keys()].toSorted(),
  );
  expect([...rows].flatMap(([protocol, row]) => brokenThoughTolerated(protocol, row))).toEqual([]);
});

describe("some cells of docs/assumptions.md", () => {
  const sample = [
    ["bully", "delay"],
    ["chang-roberts", "liar"],
    ["central-server", "recovery"],
    ["raft", "loss"],
    ["epoch-bully", "clocks"],
    ["paxos", "journal"],
  ] as const;
  test.each(sample)("%s, %s", (protocol, name) => {
    const column = columns.find((each) => each.name === name) as (typeof columns)[number];
    const { symbol, words, command } = cell(protocol, column);
    expect(readFileSync(`${root}docs/${pageOf(protocol)}`, "utf8")).toContain(
      `<a id="${protocol}-${name}"></a>${symbol} **${column.title}**: ${words}. \`${command}\``,
    );
  });
});
