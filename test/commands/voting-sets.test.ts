/** Checks `coterie voting-sets` as a user runs it. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { coterie } from "./run-here.ts";

function file(sets: unknown): string {
  const path = join(mkdtempSync(join(tmpdir(), "coterie-sets-")), "sets.json");
  writeFileSync(path, JSON.stringify(sets));
  return path;
}

describe("coterie voting-sets", () => {
  test("makes the sets of seven nodes: a projective plane", async () => {
    const { code, stdout } = await coterie("voting-sets", "7", "--json");
    const answer = JSON.parse(stdout) as { nodes: number; size: number; sets: number[][]; problem: string | null };
    expect(code).toBe(0);
    expect(answer).toMatchObject({ nodes: 7, size: 3, problem: null });
    expect(answer.sets).toHaveLength(7);
  });

  test("names the two given sets that do not meet: exit code 1", async () => {
    const { code, stdout, stderr } = await coterie("voting-sets", "--file", file([[0, 1], [0, 1], [2]]));
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^the sets of nodes 0 and 2 do not \w+\n$/m);
  });

  test.each([
    [["voting-sets"], "expected either a number of nodes"],
    [["voting-sets", "1001"], "expected the number of nodes to be a whole number from 1 to 1000"],
    [["voting-sets", "--file", file([[0, 9]])], "expected the members to be below 1"],
    [["voting-sets", "--file", "/nowhere.json"], "expected --file to be a JSON file that can be read"],
  ])("%j is rejected", async (words, sentence) => {
    const { code, stderr } = await coterie(...words);
    expect(code).toBe(2);
    expect(stderr).toContain(sentence);
  });
});
