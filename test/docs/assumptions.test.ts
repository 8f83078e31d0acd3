/** docs/assumptions.md is what runs say today. `COTERIE_WRITE_PAGE=1` writes it anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { protocolNames } from "../../src/protocols/index.ts";
import { brokenPromises, cell, columns, pageOf, rowOf } from "./assumptions.ts";

const file = fileURLToPath(new URL("../../docs/assumptions.md", import.meta.url));

test("docs/assumptions.md is what runs say, and nothing breaks that a protocol says it does without", {
  tags: ["long"],
  timeout: 900_000,
}, () => {
  const rows = new Map(protocolNames.map((protocol) => [protocol, rowOf(protocol)]));
  const page = pageOf(rows);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, page);
  expect(readFileSync(file, "utf8")).toBe(page);
  expect([...rows].flatMap(([protocol, row]) => brokenPromises(protocol, row))).toEqual([]);
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
    expect(readFileSync(file, "utf8")).toContain(
      `<a id="${protocol}-${name}"></a>${symbol} **${column.title}**: ${words}. \`${command}\``,
    );
  });
});
