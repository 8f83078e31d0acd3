/**
 * Ensures that the checked code is the running code: no clock, randomness or input reaches an algorithm except through
 * its driver.
 */
import { builtinModules } from "node:module";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, importsOf, isTest } from "./house.ts";
import { reaches } from "./reaches.ts";

const BROWSER_SAFE = /^src\/(core|driver|protocols|trace|sim|history|check|experiment)\//;

const FORBIDDEN = new Set([
  ..."Date performance setTimeout setInterval setImmediate queueMicrotask requestAnimationFrame".split(" "),
  ..."process console Buffer crypto fetch window document navigator globalThis require eval Function".split(" "),
]);

function impurities(file: HouseFile): string[] {
  const imports = importsOf(file)
    .filter(({ specifier }) => builtinModules.includes(specifier.replace(/^node:/, "")))
    .map(({ specifier, line }) => `${file.path}:${line} imports ${specifier}`);
  return [...imports, ...reaches(file, FORBIDDEN)];
}

describe("browser-safe folders", () => {
  it("use no clock, randomness, process or network", () => {
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
  ])("%s is rejected", (text) => {
    expect(impurities({ path: "src/core/a.ts", text })).not.toEqual([]);
  });

  it("a name that the file declares itself is allowed", () => {
    const text = `
      export const first = ([{ process }]: Operation[], ...[window = 1]) => process + window;
      for (const process of processes) count(process);`;
    expect(impurities({ path: "src/core/a.ts", text })).toEqual([]);
  });

  it("a name that is only a label is allowed", () => {
    const text = `
      // Date and Math.random() in a comment
      interface Ctx { self: number; process(): void }
      export const sound = (ctx: Ctx) => ({ self: ctx.self, console: "Date", max: Math.max(1, 2) });`;
    expect(impurities({ path: "src/core/a.ts", text })).toEqual([]);
  });
});
