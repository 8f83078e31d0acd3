/** Checks that the commands in the docs exist: the command line's declarations parse each one, without running it. */
import { Command } from "commander";
import { expect, test } from "vitest";
import { commands } from "../../src/cli/command-line.ts";
import { blocks } from "./markdown.ts";

interface Line {
  /** Whether a user types it in a project that depends on Coterie. */
  readonly isTypedInProject: boolean;
  readonly place: string;
  readonly words: readonly string[];
}

/** The start of a shell command, or a typed line in a transcript. */
const COTERIE = /(?:^|^\$ |; do |&& )(npx )?coterie ([^\n]*)/gm;

const lines: readonly Line[] = blocks
  .filter(({ language }) => language === "sh" || language === "")
  .flatMap(({ page, line, text }) =>
    [...text.replaceAll(/ *\\\n */g, " ").matchAll(COTERIE)].map(([, npx, rest = ""]) => ({
      isTypedInProject: npx !== undefined,
      place: `${page}:${line} coterie ${rest}`,
      words: wordsOf(rest.replace(/(?:; done| & done| &)\s*$/, "")),
    })),
  );

/** Splits a command like a shell, up to a comment. Variables are replaced by a number. */
function wordsOf(text: string): string[] {
  const words = [...text.matchAll(/'([^']*)'|"([^"]*)"|((?:[^\s'"]|'[^']*'|"[^"]*")+)/g)];
  const texts = words.map(([, single, double, bare]) => single ?? double ?? (bare as string).replaceAll(/['"]/g, ""));
  const comment = texts.findIndex((word, at) => word.startsWith("#") && words[at]?.[3] !== undefined);
  return texts.slice(0, comment === -1 ? texts.length : comment).map((word) => word.replaceAll(/\$\w+/g, "1"));
}

/** Parses a command line without running its action. */
async function dryRun(words: readonly string[]): Promise<void> {
  const [name = ""] = words;
  const listed = commands[name];
  if (listed === undefined) throw new Error(`expected a command, got ${name}`);
  const root = new Command("coterie").enablePositionalOptions();
  const command = root.command(name);
  const output = { write: () => {} };
  (await listed.load())(command, { words, stdout: output, stderr: output, usesThreads: false });
  for (const each of [root, command, ...command.commands])
    each.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
  for (const each of [command, ...command.commands]) if (each.commands.length === 0) each.action(() => {});
  await root.parseAsync([...words], { from: "user" });
}

test("the docs contain commands", () => {
  expect(lines.length).toBeGreaterThan(100);
});

test("each is typed as in a project that has the package", () => {
  expect(lines.filter(({ isTypedInProject }) => !isTypedInProject).map(({ place }) => place)).toEqual([]);
});

test("each is accepted by the command line", async () => {
  const wrong: string[] = [];
  for (const { place, words } of lines)
    await dryRun(words).catch((error: unknown) => wrong.push(`${place}: ${(error as Error).message}`));
  expect(wrong).toEqual([]);
});

test.each([
  ["put stock apples 3 --nobody", "unknown option '--nobody'"],
  ["member add four 10.0.0.4:7100", "four"],
  ["snapshot safe demo.snapshot", "unknown command"],
  ["transfer", "missing required argument"],
])("%s is rejected", async (text, why) => {
  await expect(dryRun(wordsOf(text))).rejects.toThrow(why);
});
