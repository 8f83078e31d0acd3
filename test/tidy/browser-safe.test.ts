/** What is checked must be what runs: no clock, no randomness and no input reach an algorithm behind its driver's back. */
import { builtinModules } from "node:module";
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, importsOf, isTest, lineAt, parsed } from "./house.ts";

const BROWSER_SAFE = /^src\/(core|protocols|trace|sim|check)\//;

const FORBIDDEN = new Set([
  ..."Date performance setTimeout setInterval setImmediate queueMicrotask requestAnimationFrame".split(" "),
  ..."process console Buffer crypto fetch window document navigator globalThis require eval Function".split(" "),
]);

/** Names that are only labels: `ctx.setTimer`, `{ process: 3 }`. */
type Labelled = { readonly computed: boolean; readonly key: { readonly start: number } };

function impurities(file: HouseFile): string[] {
  const found: string[] = [];
  const labels = new Set<number>();
  const at = (offset: number): string => `${file.path}:${lineAt(file.text, offset)}`;
  const label = ({ computed, key }: Labelled): void => {
    if (!computed) labels.add(key.start);
  };
  for (const { specifier, line } of importsOf(file)) {
    if (builtinModules.includes(specifier.replace(/^node:/, "")))
      found.push(`${file.path}:${line} imports ${specifier}`);
  }
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
      if (labels.has(start)) return;
      // Math by itself could be taken apart: `const { random } = Math`.
      if (FORBIDDEN.has(name) || name === "Math") found.push(`${at(start)} uses ${name}`);
    },
  }).visit(parsed(file).program);
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

  it("a name that is only a label is not", () => {
    const text = `
      // Date and Math.random() in a comment
      interface Ctx { self: number; process(): void }
      export const sound = (ctx: Ctx) => ({ self: ctx.self, console: "process", max: Math.max(1, 2) });`;
    expect(impurities({ path: "src/core/a.ts", text })).toEqual([]);
  });
});
