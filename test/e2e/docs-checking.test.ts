/** The first commands of docs/checking.md are run as they stand: what stands behind # is what they find. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { coterie } from "./cluster-under-test.ts";

const page = readFileSync(new URL("../../docs/checking.md", import.meta.url), "utf8");
const [, block = ""] = /```sh\n(.*?)```/s.exec(page) ?? [];
const lines = block
  .trim()
  .split("\n")
  .map((line) => /^coterie (.*?)\s+# (\w+)/.exec(line)?.slice(1) as [string, string]);

test("there are some", () => {
  expect(lines.length).toBeGreaterThanOrEqual(5);
});

test.each(lines)("coterie %s: %s", async (words, verdict) => {
  const { code, stdout } = await coterie(...words.split(" "), "--json");
  expect([code, JSON.parse(stdout).verdict]).toEqual([verdict === "holds" ? 0 : 1, verdict]);
});
