/** Enforces limits that keep code readable, for files, functions and the kernel. The limits may only become smaller. */
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, isTest, lineAt, parsed } from "./house.ts";

/**
 * Counted in lines of code, without comments. At 350 lines, consider whether a file holds two concepts. Do not split
 * one concept because of its length.
 */
const MAX_FILE_LINES = 450;
const MAX_FUNCTION_LINES = 60;
const MAX_CORE_LINES_OF_CODE = 900;

/**
 * Exceptions, with their limit and the reason. A key is a path, `path#function`, or `src/core` for the kernel as a
 * whole. An exception that is no longer needed is also an error.
 */
const exceptions: Readonly<Record<string, { readonly lines: number; readonly reason: string }>> = {
  "src/protocols/election/bully/extended-bully.ts#extendedBully": {
    lines: 76,
    reason: "a closure: the book's steps, each with the additions of resignation and rank",
  },
};

type Sizes = ReadonlyMap<string, { readonly lines: number; readonly limit: number }>;

function sizesOf(files: readonly HouseFile[]): Sizes {
  const sizes = new Map<string, { lines: number; limit: number }>();
  for (const file of files) {
    sizes.set(file.path, { lines: linesOfCode(file), limit: MAX_FILE_LINES });
    for (const { name, lines } of functionsOf(file)) {
      const key = `${file.path}#${name}`;
      sizes.set(key, { lines: Math.max(lines, sizes.get(key)?.lines ?? 0), limit: MAX_FUNCTION_LINES });
    }
  }
  const core = files.filter(({ path }) => path.startsWith("src/core/") && !isTest(path));
  sizes.set("src/core", { lines: core.map(linesOfCode).reduce((a, b) => a + b, 0), limit: MAX_CORE_LINES_OF_CODE });
  return sizes;
}

/** Counts the lines of code from one offset to another: those that are neither blank nor only a comment. */
function counterOf(file: HouseFile): (start: number, end: number) => number {
  let text = file.text;
  for (const { start, end } of parsed(file).comments)
    text = text.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, " ") + text.slice(end);
  return (start, end) =>
    text
      .slice(start, end)
      .split("\n")
      .filter((line) => line.trim() !== "").length;
}

const linesOfCode = (file: HouseFile): number => counterOf(file)(0, file.text.length);

/**
 * Returns the length of each function. A nested function counts as one line of the outer one, because it can be read
 * separately. Otherwise every algorithm would be one long function, because it is a closure around its handlers.
 */
function functionsOf(file: HouseFile): { name: string; lines: number }[] {
  const found: { name: string; lines: number }[] = [];
  const open: { inner: number }[] = [];
  const linesIn = counterOf(file);
  const names = new Map<number, string>();
  const enter = (): void => void open.push({ inner: 0 });
  function leave({ start, end }: { start: number; end: number }, name?: string): void {
    const { inner } = open.pop() ?? { inner: 0 };
    const span = linesIn(start, end);
    const around = open.at(-1);
    if (around !== undefined) around.inner += span - 1;
    found.push({ name: name ?? names.get(start) ?? `line ${lineAt(file.text, start)}`, lines: span - inner });
  }
  const nameValue = (key: object, value: { start: number } | null): void => {
    if ("name" in key && value !== null) names.set(value.start, String(key.name));
  };
  new Visitor({
    VariableDeclarator: ({ id, init }) => nameValue(id, init),
    Property: ({ key, value }) => nameValue(key, value),
    PropertyDefinition: ({ key, value }) => nameValue(key, value),
    MethodDefinition: ({ key, value }) => nameValue(key, value),
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    "FunctionDeclaration:exit": (node) => leave(node, node.id?.name),
    "FunctionExpression:exit": (node) => leave(node, node.id?.name),
    "ArrowFunctionExpression:exit": (node) => leave(node),
  }).visit(parsed(file).program);
  return found;
}

function tooLong(sizes: Sizes, allowed: typeof exceptions): string[] {
  const over = [...sizes].flatMap(([what, { lines, limit }]) => {
    const max = Math.max(limit, allowed[what]?.lines ?? 0);
    return lines > max ? [`${what} has ${lines} lines, more than ${max}`] : [];
  });
  const needless = Object.keys(allowed).filter((what) => {
    const { lines, limit } = sizes.get(what) ?? { lines: 0, limit: 0 };
    return lines <= limit;
  });
  return [...over, ...needless.map((what) => `${what} needs no exception any more`)];
}

const longText = (lines: number): string => "export const a = 1;\n".repeat(lines);
const longFunction = (lines: number): string => `export function a() {\n${"  b();\n".repeat(lines - 2)}}\n`;

describe("sizes", () => {
  it("files, functions and the kernel stay within their limits", () => {
    expect(tooLong(sizesOf(code), exceptions)).toEqual([]);
  });

  it.each([
    ["a file", { path: "src/sim/a.ts", text: longText(451) }, "src/sim/a.ts has 451 lines, more than 450"],
    ["a function", { path: "src/sim/a.ts", text: longFunction(61) }, "src/sim/a.ts#a has 61 lines, more than 60"],
    [
      "a component's function",
      { path: "studio/src/a.svelte", text: `<script lang="ts">\n${longFunction(61)}</script>\n` },
      "studio/src/a.svelte#a has 61 lines, more than 60",
    ],
    [
      "a handler",
      { path: "src/sim/a.ts", text: `export const a = {\n  b: () => {\n${"    c();\n".repeat(60)}  },\n};\n` },
      "src/sim/a.ts#b has 62 lines, more than 60",
    ],
  ])("%s that is too long is rejected", (_what, file, complaint) => {
    expect(tooLong(sizesOf([file]), {})).toEqual([complaint]);
  });

  it("the kernel counts as a whole, without comments, blank lines and tests", () => {
    const third = `/** Why.\n * And why. */\n\n${longText(301)}`;
    const names = ["src/core/a.ts", "src/core/b.ts", "src/core/c.ts", "src/core/b.test.ts"];
    const files = names.map((path) => ({ path, text: third }));
    expect(tooLong(sizesOf(files), {})).toEqual(["src/core has 903 lines, more than 900"]);
  });

  it("a nested function counts as one line of the outer one", () => {
    const inner = longFunction(50).replace("export ", "").replaceAll(/^/gm, "  ").trimEnd();
    const text = `export function outer() {\n${inner}\n${inner.replace("a()", "c()")}\n}\n`;
    const lines = functionsOf({ path: "src/sim/a.ts", text });
    expect(lines).toEqual([
      { name: "a", lines: 50 },
      { name: "c", lines: 50 },
      { name: "outer", lines: 4 },
    ]);
  });

  it("an exception has its own limit, and is rejected once it is not needed", () => {
    const sizes = sizesOf([
      { path: "src/sim/a.ts", text: longText(451) },
      { path: "src/sim/b.ts", text: longText(10) },
    ]);
    const upTo = (lines: number) => ({ lines, reason: "a table" });
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(460) })).toEqual([]);
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(400) })).toEqual(["src/sim/a.ts has 451 lines, more than 450"]);
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(460), "src/sim/b.ts": upTo(450), "src/sim/c.ts": upTo(450) })).toEqual(
      ["src/sim/b.ts needs no exception any more", "src/sim/c.ts needs no exception any more"],
    );
  });
});
