/** Checks that the docs use only existing commands and options after `coterie`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { commands } from "../../src/cli/command-line.ts";
import { coterie } from "./run-here.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  ...["docs", "skeletons"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .map((file) => `${folder}/${file}`),
  ),
];

interface Shown {
  readonly page: string;
  readonly command: string;
  readonly words: readonly string[];
}

/**
 * Returns lines of shell blocks, and code within sentences, that begin with `coterie COMMAND`, without the arguments of
 * a command that runs under a lock.
 */
function shownOn(page: string): Shown[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.split("\n"));
  const inline = [...text.replaceAll(/^```.*?^```/gms, "").matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
  return [...blocks, ...inline].flatMap((line) => {
    const [, command = "", rest = ""] = /^(?:npx )?coterie ([a-z-]+)([^#]*)/.exec(line) ?? [];
    if (!Object.hasOwn(commands, command)) return command === "" ? [] : [{ page, command, words: [] }];
    const own = rest.split(/ -- |[|&;]/)[0] ?? "";
    return [{ page, command, words: [...own.matchAll(/(?<=\s)--[a-z-]+/g)].map(([word]) => word) }];
  });
}

const shown = pages.flatMap(shownOn);
/** Commands with subcommands. Each subcommand has its own help. */
const parts: Readonly<Record<string, readonly string[]>> = {
  member: ["list", "add", "promote", "remove", "move", "change", "replace"],
  snapshot: ["save", "show", "restore"],
};

test("the docs name existing commands", () => {
  expect(shown.length).toBeGreaterThan(100);
  expect(shown.filter(({ command }) => !Object.hasOwn(commands, command))).toEqual([]);
});

test.each([...new Set(shown.map(({ command }) => command))])(
  "arguments of coterie %s in the docs are in its help",
  async (command) => {
    const helps = command === "bench" ? [] : (parts[command]?.map((part) => [command, part]) ?? [[command]]);
    const texts = await Promise.all(helps.map(async (words) => (await coterie(...words, "--help")).stdout));
    const unknown = shown
      .filter((each) => each.command === command)
      .flatMap(({ page, words }) =>
        words
          .filter((word) => !texts.some((text) => new RegExp(`${word}\\b`).test(text)))
          .map((word) => `${page}: ${word}`),
      );
    expect(command === "bench" ? [] : unknown).toEqual([]);
  },
);
