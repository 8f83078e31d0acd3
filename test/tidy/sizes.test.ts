/**
 * Limits that keep code readable: a file to scroll through, a function on one screen, a kernel to read in one sitting. A ratchet:
 * it only tightens.
 */
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, isTest, lineAt, parsed } from "./house.ts";

/** At 400 lines, consider whether a file holds two concepts. Do not split one concept because of its length. */
const MAX_FILE_LINES = 500;
const MAX_FUNCTION_LINES = 60;
const MAX_CORE_LINES_OF_CODE = 900;

/**
 * Exceptions, with their limit and the reason. Keys are a path, `path#function`, or `src/core` for the kernel as a whole. An
 * exception that is no longer needed fails as well.
 */
const exceptions: Readonly<Record<string, { readonly lines: number; readonly reason: string }>> = {
  "src/protocols/election/bully/extended-bully.ts#extendedBully": {
    lines: 76,
    reason: "a closure: the book's steps, each with the additions of resignation and rank",
  },
  "src/protocols/membership/views/rounds.ts#rounds": {
    lines: 65,
    reason: "a closure: holds the state that the steps of a round share",
  },
};

type Sizes = ReadonlyMap<string, { readonly lines: number; readonly limit: number }>;

function sizesOf(files: readonly HouseFile[]): Sizes {
  const sizes = new Map<string, { lines: number; limit: number }>();
  for (const file of files) {
    sizes.set(file.path, { lines: file.text.trimEnd().split("\n").length, limit: MAX_FILE_LINES });
    for (const { name, lines } of functionsOf(file)) {
      const key = `${file.path}#${name}`;
      sizes.set(key, { lines: Math.max(lines, sizes.get(key)?.lines ?? 0), limit: MAX_FUNCTION_LINES });
    }
  }
  const core = files.filter(({ path }) => path.startsWith("src/core/") && !isTest(path));
  sizes.set("src/core", { lines: core.map(linesOfCode).reduce((a, b) => a + b, 0), limit: MAX_CORE_LINES_OF_CODE });
  return sizes;
}

/** Counts lines that are neither blank nor only a comment. */
function linesOfCode(file: HouseFile): number {
  let text = file.text;
  for (const { start, end } of parsed(file).comments) {
    text = text.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, " ") + text.slice(end);
  }
  return text.split("\n").filter((line) => line.trim() !== "").length;
}

/**
 * The length of each function. A nested function counts as one line of the outer one, because it is read by itself. Otherwise
 * every algorithm, a closure around its handlers, would be one long function.
 */
function functionsOf(file: HouseFile): { name: string; lines: number }[] {
  const found: { name: string; lines: number }[] = [];
  const open: { inner: number }[] = [];
  const names = new Map<number, string>();
  const enter = (): void => void open.push({ inner: 0 });
  function leave({ start, end }: { start: number; end: number }, name?: string): void {
    const { inner } = open.pop() ?? { inner: 0 };
    const span = lineAt(file.text, end) - lineAt(file.text, start) + 1;
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
    ["a file", { path: "src/sim/a.ts", text: longText(501) }, "src/sim/a.ts has 501 lines, more than 500"],
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
    const half = `/** Why.\n * And why. */\n\n${longText(451)}`;
    const files = ["src/core/a.ts", "src/core/b.ts", "src/core/b.test.ts"].map((path) => ({ path, text: half }));
    expect(tooLong(sizesOf(files), {})).toEqual(["src/core has 902 lines, more than 900"]);
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
      { path: "src/sim/a.ts", text: longText(501) },
      { path: "src/sim/b.ts", text: longText(10) },
    ]);
    const upTo = (lines: number) => ({ lines, reason: "a table" });
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(510) })).toEqual([]);
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(400) })).toEqual(["src/sim/a.ts has 501 lines, more than 500"]);
    expect(tooLong(sizes, { "src/sim/a.ts": upTo(510), "src/sim/b.ts": upTo(500), "src/sim/c.ts": upTo(500) })).toEqual(
      ["src/sim/b.ts needs no exception any more", "src/sim/c.ts needs no exception any more"],
    );
  });
});
