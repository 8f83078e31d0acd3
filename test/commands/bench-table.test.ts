/**
 * Compares measured costs with their formulas, for few nodes. Every figure must match.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { coterie } from "../e2e/cluster-under-test.ts";

interface Figure {
  readonly protocol: string;
  readonly nodes: number;
  readonly fits: boolean;
}

async function matchesFormulas(name: string): Promise<void> {
  const { code, stdout, stderr } = await coterie("bench", "table", name, "--nodes", "3,4,7,9,13", "--json");
  expect(code, stderr).toBe(0);
  const figures = JSON.parse(stdout) as Figure[];
  expect(figures.filter(({ fits }) => !fits)).toEqual([]);
  expect(new Set(figures.map(({ nodes }) => nodes))).toEqual(new Set([3, 4, 7, 9, 13]));
}

// test/docs/costs.test.ts measures the other families.
const title = "coterie bench table %s: measurements match the formula";
test.each(["consensus"])(title, matchesFormulas);
test.each(["mutex", "election", "multicast"])(title, { tags: ["larger"] }, matchesFormulas);

test("for people: a table for each algorithm, a row for each claim, a column for each N", async () => {
  const { code, stdout } = await coterie("bench", "table", "mutex", "--nodes", "3,100");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ricart-agrawala +formula +N = 3 +N = 100\n {2}entry, messages +2\(N − 1\) +4 +198$/m);
  expect(stdout).toMatch(/^(\d+) of \1 figures fit their formula\.$/m);
});

test("rejects unknown names in one sentence", async () => {
  const table = await coterie("bench", "table", "membership");
  expect(table).toMatchObject({ code: 2, stdout: "" });
  expect(table.stderr).toContain(
    "coterie bench table: expected one of mutex, election, multicast, consensus, got membership\n",
  );
  const nodes = await coterie("bench", "table", "mutex", "--nodes", "2");
  expect(nodes.stderr).toContain("expected --nodes to be whole numbers from 3 to 10000, such as 3,7,16, got 2\n");
});
