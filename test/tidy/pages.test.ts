/**
 * Ensures that a page of the docs is at most two screens long. Details have their own page, in a folder with the name
 * of the page. Reference lists may grow with their subject.
 */
import { describe, expect, it } from "vitest";
import { type HouseFile, house } from "./house.ts";

const MAX_LINES = 120;
const MAX_WORDS = 1_200;

interface Size {
  /** The number of lines that are not blank, including code and its output. */
  readonly lines: number;
  /** The number of words in the text, without code and link addresses. */
  readonly words: number;
}

/** Pages with a line for each algorithm, bug or figure. All except the first are generated from runs. */
const LISTS = /^docs\/(?:learn\/(?:algorithms|comparison|glossary)|internals\/.+|reference\/.+)\.md$/;

/** Measured figures and options of algorithms between marks, which are for reference and do not count. */
const GENERATED = /<!-- (?:measured|conformance|options: [^>]+) -->.*?<!-- (?:end|\/conformance) -->/gs;
const CODE = /^```.*?^```/gms;
const ADDRESS = /\]\([^)]*\)/g;

const isPage = ({ path }: HouseFile): boolean => /^docs\/.*\.md$/.test(path) && !LISTS.test(path);

function sizeOf({ text }: HouseFile): Size {
  const own = text.replaceAll(GENERATED, "");
  const prose = own.replaceAll(CODE, "").replaceAll(ADDRESS, "]");
  return {
    lines: own.split("\n").filter((line) => line.trim() !== "").length,
    words: prose.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
  };
}

const tooLong = (files: readonly HouseFile[]): string[] =>
  files.filter(isPage).flatMap((file) => {
    const { lines, words } = sizeOf(file);
    return [
      ...(lines > MAX_LINES ? [`${file.path} has ${lines} lines, more than ${MAX_LINES}`] : []),
      ...(words > MAX_WORDS ? [`${file.path} has ${words} words, more than ${MAX_WORDS}`] : []),
    ];
  });

describe("pages of the docs", () => {
  it("are at most two screens long", () => {
    expect(house.filter(isPage).length).toBeGreaterThan(50);
    expect(tooLong(house)).toEqual([]);
  });

  const page = (text: string): HouseFile => ({ path: "docs/a.md", text });

  it.each([
    ["many lines", page("a\n".repeat(121)), "docs/a.md has 121 lines, more than 120"],
    ["many words", page("a ".repeat(1_201)), "docs/a.md has 1201 words, more than 1200"],
    ["much code", page(`\`\`\`ts\n${"a();\n".repeat(120)}\`\`\`\n`), "docs/a.md has 122 lines, more than 120"],
  ])("rejects a page with %s", (_what, file, complaint) => {
    expect(tooLong([file])).toEqual([complaint]);
  });

  it.each([
    ["text between marks", page(`<!-- measured -->\n${"| 1 |\n".repeat(200)}<!-- end -->\n`)],
    ["blank lines", page("a\n\n".repeat(120))],
    [
      "words of code, bars and addresses",
      page(`\`\`\`sh\n${"a ".repeat(2_000)}\n\`\`\`\n${"| [a](b c) ".repeat(1_200)}`),
    ],
    ["a page outside the docs", { path: "CHANGELOG.md", text: "a\n".repeat(500) }],
    ["a list", { path: "docs/learn/algorithms.md", text: "a\n".repeat(500) }],
  ])("does not count %s", (_what, file) => {
    expect(tooLong([file])).toEqual([]);
  });
});
