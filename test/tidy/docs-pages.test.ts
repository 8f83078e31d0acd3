/**
 * Ensures that messages refer to pages of the docs with `docsPage`, in a form that the reader can open, and that the
 * pages exist.
 */
import { Visitor } from "vite";
import { expect, it } from "vitest";
import { type HouseFile, house, isTest, lineAt, parsed } from "./house.ts";

/** Commands that write algorithms into a checkout name the files that they change there. */
const OF_A_CHECKOUT = /^src\/cli\/(?:new-algorithm|skeleton)\.ts$/;
const sources = house.filter(({ path }) => /^src\/.*\.ts$/.test(path) && !isTest(path) && !OF_A_CHECKOUT.test(path));

/** Returns strings of a program that name a page by its path in the repository. Comments do not count. */
function namedByHand(file: HouseFile): string[] {
  const found: string[] = [];
  const note = (text: string, start: number): void => {
    if (/\bdocs\/[\w/-]+\.md\b/.test(text)) found.push(`${file.path}:${lineAt(file.text, start)}`);
  };
  new Visitor({
    Literal: ({ value, start }) => void (typeof value === "string" && note(value, start)),
    TemplateElement: ({ value, start }) => note(value.raw, start),
  }).visit(parsed(file).program);
  return found;
}

it("no message names a page by hand", () => {
  expect(sources.flatMap(namedByHand)).toEqual([]);
  expect(namedByHand({ path: "a.ts", text: "const a = `see docs/b.md`;\n// docs/c.md\n" })).toEqual(["a.ts:1"]);
});

it("every page that a message names exists", () => {
  const named = sources.flatMap(({ text }) => [...text.matchAll(/docsPage\("([^"]+)"\)/g)].map(([, page]) => page));
  expect(named.length).toBeGreaterThan(2);
  const pages = new Set(house.map(({ path }) => path));
  expect(named.filter((page) => !pages.has(`docs/${page}`))).toEqual([]);
});
