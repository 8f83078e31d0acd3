/**
 * Ensures that private members of a class are also private at run time: `#name`. TypeScript's `private` is allowed for
 * constructors, and in files where it is faster.
 */
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, lineAt, parsed } from "./house.ts";

/** Files where `#` has a measured cost: docs/internals/decisions.md. */
const INNER_LOOP = /^src\/sim\/(?:kernel|population|simulated-node|event-queue)\.ts$/;

function privateIn(file: HouseFile): string[] {
  const found: string[] = [];
  const note = ({ start, accessibility }: { start: number; accessibility?: string | null }): void => {
    if (accessibility === "private") found.push(`${file.path}:${lineAt(file.text, start)}`);
  };
  new Visitor({
    PropertyDefinition: note,
    MethodDefinition: (method) => void (method.kind !== "constructor" && note(method)),
    TSParameterProperty: note,
  }).visit(parsed(file).program);
  return found;
}

describe("private members", () => {
  const all = code.filter(({ path }) => !INNER_LOOP.test(path)).flatMap(privateIn);

  it("are #private", () => {
    expect(all).toEqual([]);
  });

  it.each([
    ["a field", "class A { private b = 1; }", 1],
    ["a method", "class A { private b() {} }", 1],
    ["a parameter", "class A { constructor(private readonly b: number) {} }", 1],
    ["a constructor", "class A { private constructor() {} }", 0],
    ["a private name", "class A { #b = 1; }", 0],
  ])("%s", (_what, text, times) => {
    expect(privateIn({ path: "src/core/a.ts", text })).toHaveLength(times);
  });
});
