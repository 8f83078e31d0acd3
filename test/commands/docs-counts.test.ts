/** Checks the counts after commands on pages. Each is the command's result: visited states, or steps to a violation. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pages, root } from "../docs/markdown.ts";
import { coterie } from "./run-here.ts";

interface Printed {
  readonly page: string;
  readonly words: string;
  readonly what: "states" | "steps";
  readonly count: number;
}

/** Lines such as `npx coterie check bully # holds: 3,406 states`. Generated pages have their own tests. */
const printed: readonly Printed[] = pages.flatMap((page) => {
  const lines = readFileSync(join(root, page), "utf8").matchAll(
    /^(?:npx )?coterie (check [^#\n]*?)\s+#[^\n]*?([\d,]+) (states|steps|moves)/gm,
  );
  return [...lines].map(([, words = "", count = "", unit]) => ({
    page,
    words,
    what: unit === "states" ? ("states" as const) : ("steps" as const),
    count: Number(count.replaceAll(",", "")),
  }));
});

/** The largest search that is repeated here, because larger ones take minutes. */
const MAX_STATES = 200_000;
const MANY_STATES = 10_000;

async function found({ words, what }: Printed): Promise<number | undefined> {
  const args = [...words.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, one, other, bare]) => one ?? other ?? bare ?? "",
  );
  const { stdout } = await coterie(...args, "--json");
  const { states, trace } = JSON.parse(stdout) as { states: number; trace: { at: number }[] | null };
  return what === "states" ? states : trace?.at(-1)?.at;
}

test("pages print counts", () => {
  expect(printed.length).toBeGreaterThan(5);
});

const few = printed.filter(({ what, count }) => what === "states" && count <= MANY_STATES);
test.each(few)("$page: $words, $count $what", async (line) => {
  expect(await found(line)).toBe(line.count);
});

describe("searches that take longer", { tags: ["long"] }, () => {
  const many = printed.filter((line) => !few.includes(line) && line.count <= MAX_STATES);
  test.each(many)("$page: $words, $count $what", async (line) => {
    expect(await found(line)).toBe(line.count);
  });
});
