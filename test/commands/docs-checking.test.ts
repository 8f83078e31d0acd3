/**
 * Runs the first commands of docs/verify/checking.md, and the commands of pages that warn of a verdict, as printed. The
 * result must match the comment after #. Cited searches that explore only some runs must reach the states they are
 * about.
 *
 * @module-tag long
 */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { coterie } from "./run-here.ts";

/** Returns the commands in a page's code blocks that have a verdict in their comment, each with that verdict. */
function linesOf(file: string): [string, string][] {
  const page = readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");
  const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, block = ""]) => block).join("");
  return [...blocks.matchAll(/^(?:npx )?coterie (check .*?)\s+# (\w+)/gm)].map(([, words = "", verdict = ""]) => [
    words,
    verdict,
  ]);
}

const lines = [
  ...["verify/checking.md", "learn/flp.md", "learn/agreement.md"],
  ...[
    "learn/protocols/elected-server.md",
    "learn/protocols/flood-set.md",
    "learn/protocols/interactive-consistency.md",
  ],
].flatMap(linesOf);

test("the pages contain commands with verdicts", () => {
  expect(linesOf("verify/checking.md").length).toBeGreaterThanOrEqual(5);
  expect(linesOf("learn/protocols/elected-server.md")).toEqual([["check elected-server --nodes 2", "violated"]]);
});

/** The tests of these protocols explore the same runs. */
const isLarge = ([words]: [string, string]): boolean => words.includes("--recoveries");
test.each(lines.filter((line) => !isLarge(line)))("coterie %s: %s", hasVerdict);
test.each(lines.filter(isLarge))("coterie %s: %s", { tags: ["larger"] }, hasVerdict);

async function hasVerdict(words: string, verdict: string): Promise<void> {
  const args = words.split(" ").map((word) => word.replace(/^'(.*)'$/, "$1")); // Remove quotes, as a shell does.
  const { code, stdout } = await coterie(...args, "--json");
  const answer = JSON.parse(stdout);
  expect([code, answer.verdict, answer.reached.missing]).toEqual([verdict === "holds" ? 0 : 1, verdict, []]);
}

const root = new URL("../../", import.meta.url);

const pages = readdirSync(new URL("docs", root), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".md") && !file.includes("assumptions")) // A different test runs its commands.
  .map((file) => `docs/${file}`)
  .sort();

/**
 * Shortened versions of every cited `coterie check` that explores only some runs. If the short search reaches a state,
 * so does the full one.
 */
const bounded = ["README.md", ...pages].flatMap((page) =>
  [
    ...readFileSync(new URL(page, root), "utf8").matchAll(/coterie (check [^`#\n]*)(?:# *(unknown|violated))?/g),
  ].flatMap(([, words = "", cited]) => {
    if (cited === "violated") return []; // The search reached a violation.
    const isRandom = /--strategy (random|pct|swarm)/.test(words);
    if (cited === undefined && !isRandom && !/--max-/.test(words)) return [];
    const less = isRandom
      ? words
          .trim()
          .replace(/ --runs \d+/, "")
          .concat(" --runs 100")
      : `${words.trim()} --max-states 100000`;
    return [[page, less]] as const;
  }),
);

test("pages cite bounded searches", () => expect(bounded.length).toBeGreaterThanOrEqual(3));

test.each(bounded)("%s: coterie %s reaches the states it is about", async (_page, words) => {
  const args = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const { stdout } = await coterie(...args, "--json");
  const { verdict, reached } = JSON.parse(stdout);
  expect([verdict, reached.missing]).toEqual(["unknown", []]);
});
