/** Rejects leftovers in files: unfinished work, silenced tests, and traces of one person's machine. */
import { describe, expect, it } from "vitest";
import { type HouseFile, house, lineAt } from "./house.ts";

const THIS_FILE = "test/tidy/words.test.ts"; // It quotes the words that it rejects.

const forbidden: readonly { readonly pattern: RegExp; readonly why: string }[] = [
  { pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/g, why: "finish it, or describe it where work is planned" },
  { pattern: /\bfor now\b/gi, why: "name the date or the condition" },
  { pattern: /\bnot (?:yet )?implemented\b/gi, why: "do not offer something that does not exist" },
  { pattern: /\.only\(/g, why: "the other tests would not run" },
  {
    pattern: /\b(?:test|it|describe|suite)\.(?:skip|todo|fails)\(/g,
    why: 'use skip("reason") inside the test, or skipIf',
  },
  { pattern: /\.skip\(\s*\)/g, why: "say the reason" },
  { pattern: /@ts-(?:ignore|nocheck)\b/g, why: "use @ts-expect-error with a reason" },
  { pattern: /@ts-expect-error\s*$/gm, why: "say the reason" },
  { pattern: /oxlint-disable(?!.*--\s*\w)/g, why: "say the reason after --" },
  { pattern: /(?<![\w.}\])/-])\/(?:work|root|home|Users)(?=[/"'`\s]|$)/gm, why: "a path of one machine" },
  {
    pattern: /\bregistry\.[\w-]+\.\w|\b(?:npmjs|yarnpkg|npmmirror|jfrog|artifactory)\b/gi,
    why: "a registry is the user's choice",
  },
  { pattern: /(?<!(?:\/\/|\*)\s*|`)@module-tag\b/g, why: "Vitest reads it at the beginning of a line only" },
];

function leftovers(file: HouseFile): string[] {
  return forbidden.flatMap(({ pattern, why }) =>
    [...file.text.matchAll(pattern)].map(
      (match) => `${file.path}:${lineAt(file.text, match.index)} ${JSON.stringify(match[0])}: ${why}`,
    ),
  );
}

describe("words", () => {
  it("no file holds leftovers, the lockfile included", () => {
    expect(house.map(({ path }) => path)).toContain("package-lock.json");
    expect(house.filter(({ path }) => path !== THIS_FILE).flatMap(leftovers)).toEqual([]);
  });

  it.each([
    "// TODO sort",
    "// FIXME later",
    "/* good enough for now */",
    'throw new Error("not implemented");',
    'it.only("runs", () => {});',
    'it.skip("runs", () => {});',
    "context.skip();",
    "// @ts-ignore",
    "// @ts-expect-error\nconst a: string = 1;",
    "// oxlint-disable-next-line typescript/await-thenable",
    'const file = "/work/notes.md";',
    "see /home/somebody/notes",
    "cd /root",
    '"resolved": "https://registry.npmjs.org/zod"',
    "/** Random runs. @module-tag long */",
  ])("%s is rejected", (text) => {
    expect(leftovers({ path: "src/core/a.ts", text })).not.toEqual([]);
  });

  it.each([
    'context.skip("no browser on this machine");',
    "// @ts-expect-error a message without a type",
    "// oxlint-disable-next-line typescript/await-thenable -- a thenable of the driver",
    'import { protocolNames } from "./registry.ts";',
    "GET /studio/work and frame/root.svelte",
    "/**\n * Random runs.\n *\n * @module-tag long\n */",
  ])("%s is not", (text) => {
    expect(leftovers({ path: "src/core/a.ts", text })).toEqual([]);
  });
});
