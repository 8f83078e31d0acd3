/**
 * A page of the docs is two screens long: what is deeper has a page of its own, in a folder of that name. What is written from runs may be
 * longer. A ratchet: it only tightens.
 */
import { describe, expect, it } from "vitest";
import { type HouseFile, house } from "./house.ts";

const MAX_LINES = 120;
const MAX_WORDS = 1_250;

interface Size {
  /** Not blank, code and its output among them. */
  readonly lines: number;
  /** Of the text, without code and the addresses of links. */
  readonly words: number;
}

/** What may be longer, how long, and why. An entry that is no longer needed, or allows more than there is, fails as well. */
const exceptions: Readonly<Record<string, Size & { readonly reason: string }>> = {
  "docs/algorithms.md": {
    lines: 71,
    words: 2114,
    reason: "a table, looked up: a row for each algorithm, from its header",
  },
  "docs/assumptions/consensus.md": {
    lines: 158,
    words: 3801,
    reason: "generated: a line for each cell, with its command",
  },
  "docs/assumptions/election.md": {
    lines: 93,
    words: 1680,
    reason: "generated: a line for each cell, with its command",
  },
  "docs/assumptions/multicast.md": {
    lines: 110,
    words: 2011,
    reason: "generated: a line for each cell, with its command",
  },
  "docs/assumptions/mutex.md": { lines: 122, words: 2403, reason: "generated: a line for each cell, with its command" },
  "docs/comparison.md": { lines: 65, words: 1292, reason: "generated: tables of what runs measure" },
  "docs/seeded-bugs/consensus.md": { lines: 156, words: 3129, reason: "generated: a row for each bug" },
  "docs/seeded-bugs/settings.md": { lines: 60, words: 1480, reason: "generated: a line for each setting" },
};

/** Figures between marks come from runs, and are looked up. */
const GENERATED = /<!-- (?:measured|conformance) -->.*?<!-- (?:end|\/conformance) -->/gs;
const CODE = /^```.*?^```/gms;
const ADDRESS = /\]\([^)]*\)/g;

const isPage = ({ path }: HouseFile): boolean => /^docs\/.*\.md$/.test(path);

function sizeOf({ text }: HouseFile): Size {
  const own = text.replaceAll(GENERATED, "");
  const prose = own.replaceAll(CODE, "").replaceAll(ADDRESS, "]");
  return {
    lines: own.split("\n").filter((line) => line.trim() !== "").length,
    words: prose.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
  };
}

function tooLong(files: readonly HouseFile[], allowed: typeof exceptions): string[] {
  const sizes = new Map(files.filter(isPage).map((file) => [file.path, sizeOf(file)]));
  const over = [...sizes].flatMap(([path, { lines, words }]) => {
    const most = {
      lines: Math.max(MAX_LINES, allowed[path]?.lines ?? 0),
      words: Math.max(MAX_WORDS, allowed[path]?.words ?? 0),
    };
    return [
      ...(lines > most.lines ? [`${path} has ${lines} lines, more than ${most.lines}`] : []),
      ...(words > most.words ? [`${path} has ${words} words, more than ${most.words}`] : []),
    ];
  });
  const loose = Object.entries(allowed).flatMap(([path, most]) => {
    const size = sizes.get(path) ?? { lines: 0, words: 0 };
    if (size.lines <= MAX_LINES && size.words <= MAX_WORDS) return [`${path} needs no exception any more`];
    const isTight = most.lines - size.lines < 20 && most.words - size.words < 200;
    return isTight ? [] : [`${path} has ${size.lines} lines and ${size.words} words: its exception can be tighter`];
  });
  return [...over, ...loose];
}

describe("pages of the docs", () => {
  it("are of two screens", () => {
    expect(house.filter(isPage).length).toBeGreaterThan(50);
    expect(tooLong(house, exceptions)).toEqual([]);
  });

  const page = (text: string): HouseFile => ({ path: "docs/a.md", text });
  const reason = "generated";

  it.each([
    ["many lines", page("a\n".repeat(121)), "docs/a.md has 121 lines, more than 120"],
    ["many words", page("a ".repeat(1_251)), "docs/a.md has 1251 words, more than 1250"],
    ["much code", page(`\`\`\`ts\n${"a();\n".repeat(120)}\`\`\`\n`), "docs/a.md has 122 lines, more than 120"],
  ])("one with %s is refused", (_what, file, complaint) => {
    expect(tooLong([file], {})).toEqual([complaint]);
  });

  it.each([
    ["what is between marks", page(`<!-- measured -->\n${"| 1 |\n".repeat(200)}<!-- end -->\n`)],
    ["blank lines", page("a\n\n".repeat(120))],
    [
      "words of code, bars and addresses",
      page(`\`\`\`sh\n${"a ".repeat(2_000)}\n\`\`\`\n${"| [a](b c) ".repeat(1_250)}`),
    ],
    ["a page that is none of the docs", { path: "CHANGELOG.md", text: "a\n".repeat(500) }],
  ])("%s does not count", (_what, file) => {
    expect(tooLong([file], {})).toEqual([]);
  });

  it("an exception is refused once it is not needed, or not so wide", () => {
    const file = page("a\n".repeat(130));
    expect(tooLong([file], { "docs/a.md": { lines: 130, words: 130, reason } })).toEqual([]);
    expect(tooLong([file], { "docs/a.md": { lines: 200, words: 130, reason } })).toEqual([
      "docs/a.md has 130 lines and 130 words: its exception can be tighter",
    ]);
    expect(tooLong([page("a\n")], { "docs/a.md": { lines: 130, words: 130, reason } })).toEqual([
      "docs/a.md needs no exception any more",
    ]);
  });
});
