/** What is checked must be what runs: no clock, no randomness and no input reach an algorithm behind its driver's back. */
import { builtinModules } from "node:module";
import { type ESTree, Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, importsOf, isTest, lineAt, parsed } from "./house.ts";

const BROWSER_SAFE = /^src\/(core|protocols|trace|sim|check|experiment)\//;

const FORBIDDEN = new Set([
  ..."Date performance setTimeout setInterval setImmediate queueMicrotask requestAnimationFrame".split(" "),
  ..."process console Buffer crypto fetch window document navigator globalThis require eval Function".split(" "),
]);

/** The names that a parameter or a declaration binds. */
function bound(pattern: ESTree.Node): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((part) => bound(part.type === "Property" ? part.value : part.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap((part) => (part === null ? [] : bound(part)));
    case "AssignmentPattern":
      return bound(pattern.left);
    case "RestElement":
      return bound(pattern.argument);
    default:
      return [];
  }
}

/** Names that are only labels: `ctx.setTimer`, `{ process: 3 }`. */
type Labelled = { readonly computed: boolean; readonly key: { readonly start: number } };

function impurities(file: HouseFile): string[] {
  const found: string[] = [];
  const labels = new Set<number>();
  /** Names of the file's own, such as the textbook's `process`. The compiler, which knows scopes, refuses the global one. */
  const own = new Set<string>();
  const bind = (...patterns: ESTree.Node[]): void => {
    for (const name of patterns.flatMap(bound)) own.add(name);
  };
  const at = (offset: number): string => `${file.path}:${lineAt(file.text, offset)}`;
  const label = ({ computed, key }: Labelled): void => {
    if (!computed) labels.add(key.start);
  };
  for (const { specifier, line } of importsOf(file)) {
    if (builtinModules.includes(specifier.replace(/^node:/, "")))
      found.push(`${file.path}:${line} imports ${specifier}`);
  }
  const { program } = parsed(file);
  new Visitor({
    VariableDeclarator: ({ id }) => bind(id),
    FunctionDeclaration: ({ params }) => bind(...params),
    FunctionExpression: ({ params }) => bind(...params),
    ArrowFunctionExpression: ({ params }) => bind(...params),
    TSFunctionType: ({ params }) => bind(...params),
    TSMethodSignature: ({ params }) => bind(...params),
  }).visit(program);
  new Visitor({
    MemberExpression({ object, property, computed }) {
      if (computed) return;
      labels.add(property.start);
      const isMath = object.type === "Identifier" && object.name === "Math";
      if (isMath && property.type === "Identifier" && property.name === "random")
        found.push(`${at(object.start)} uses Math.random`);
      else if (isMath) labels.add(object.start);
    },
    Property: ({ shorthand, ...node }) => void (shorthand || label(node)),
    MethodDefinition: label,
    PropertyDefinition: label,
    TSPropertySignature: label,
    TSMethodSignature: label,
    Identifier({ name, start }) {
      if (labels.has(start) || own.has(name)) return;
      // Math by itself could be taken apart: `const { random } = Math`.
      if (FORBIDDEN.has(name) || name === "Math") found.push(`${at(start)} uses ${name}`);
    },
  }).visit(program);
  return found;
}

describe("browser-safe folders", () => {
  it("know no clock, no chance, no process and no network", () => {
    const files = code.filter(({ path }) => BROWSER_SAFE.test(path) && !isTest(path));
    expect(files.length).toBeGreaterThan(0);
    expect(files.flatMap(impurities)).toEqual([]);
  });

  it.each([
    'import { readFileSync } from "node:fs";',
    'import type { Socket } from "net";',
    "export const now = () => Date.now();",
    "export const now = new Date();",
    "export const now = performance.now();",
    "export const draw = () => Math.random();",
    "const { random } = Math;",
    'const draw = Math["random"];',
    "setTimeout(() => {}, 1);",
    "const later = setInterval;",
    "const { env } = process;",
    'console.log("here");',
    "const clock = { Date };",
    "const now = globalThis.Date.now();",
  ])("%s is refused", (text) => {
    expect(impurities({ path: "src/core/a.ts", text })).not.toEqual([]);
  });

  it("a name of the file's own is not", () => {
    const text = `
      export const first = ([{ process }]: Operation[], ...[window = 1]) => process + window;
      for (const process of processes) count(process);`;
    expect(impurities({ path: "src/core/a.ts", text })).toEqual([]);
  });

  it("a name that is only a label is not", () => {
    const text = `
      // Date and Math.random() in a comment
      interface Ctx { self: number; process(): void }
      export const sound = (ctx: Ctx) => ({ self: ctx.self, console: "Date", max: Math.max(1, 2) });`;
    expect(impurities({ path: "src/core/a.ts", text })).toEqual([]);
  });
});
