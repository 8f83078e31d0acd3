/** The first commands of docs/checking.md, and those of pages that warn of a verdict, are run as they stand: what stands behind # is what they find. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { coterie } from "../e2e/cluster-under-test.ts";

/** The commands of a page's first block that say what comes of them, each with that word. */
function linesOf(file: string): [string, string][] {
  const page = readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");
  const [, block = ""] = /```sh\n(.*?)```/s.exec(page) ?? [];
  return [...block.matchAll(/^coterie (check .*?)\s+# (\w+)/gm)].map(([, words = "", verdict = ""]) => [
    words,
    verdict,
  ]);
}

const lines = ["checking.md", "protocols/elected-server.md"].flatMap(linesOf);

test("there are some", () => {
  expect(linesOf("checking.md").length).toBeGreaterThanOrEqual(5);
  expect(linesOf("protocols/elected-server.md")).toEqual([["check elected-server --nodes 2", "violated"]]);
});

test.each(lines)("coterie %s: %s", async (words, verdict) => {
  const { code, stdout } = await coterie(...words.split(" "), "--json");
  expect([code, JSON.parse(stdout).verdict]).toEqual([verdict === "holds" ? 0 : 1, verdict]);
});
