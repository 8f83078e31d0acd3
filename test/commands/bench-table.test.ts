/**
 * Costs measured beside formulas, for few nodes: that every figure fits is the point.
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

test.each(["mutex", "election", "multicast", "consensus"])(
  "coterie bench table %s: what is measured fits the formula",
  async (name) => {
    const { code, stdout, stderr } = await coterie("bench", "table", name, "--nodes", "3,4,7,9,13", "--json");
    expect(code, stderr).toBe(0);
    const figures = JSON.parse(stdout) as Figure[];
    expect(figures.filter(({ fits }) => !fits)).toEqual([]);
    expect(new Set(figures.map(({ nodes }) => nodes))).toEqual(new Set([3, 4, 7, 9, 13]));
  },
);

test("for people: one table, a row for each claim, that fits 80 columns", async () => {
  const { code, stdout } = await coterie("bench", "table", "mutex");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}measured +formula +N = 3 +N = 7 +N = 16$/m);
  expect(stdout).toMatch(/^ricart-agrawala\n {2}entry, messages +2\(N − 1\) +4 +12 +30$/m);
  expect(stdout.match(/^ricart-agrawala$/gm)).toHaveLength(1);
  expect(stdout).toMatch(/^(\d+) of \1 figures fit their formula\.$/m);
  expect(Math.max(...stdout.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(80);
});

test("in full: formula and measured under each other, a column for each N", async () => {
  const { code, stdout } = await coterie("bench", "table", "mutex", "--full", "--nodes", "3,1000");
  expect(code).toBe(0);
  expect(stdout).toContain(`ricart-agrawala: entry, in messages: 2(N − 1)
  N         3  1,000
  formula   4  1,998
  measured  4  1,998
`);
  expect(stdout).toMatch(/^(\d+) of \1 figures fit their formula\.$/m);
});

test("refuses what it does not know, in one sentence", async () => {
  const table = await coterie("bench", "table", "membership");
  expect(table).toMatchObject({ code: 2, stdout: "" });
  expect(table.stderr).toContain(
    "coterie bench table: expected one of mutex, election, multicast, consensus, got membership\n",
  );
  const nodes = await coterie("bench", "table", "mutex", "--nodes", "2");
  expect(nodes.stderr).toContain("expected --nodes to be whole numbers from 3 to 10000, such as 3,7,16, got 2\n");
});

test("coterie bench table --help says what it takes", async () => {
  const { code, stdout } = await coterie("bench", "table", "--help");
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^Usage: coterie bench table mutex\|election\|multicast\|consensus \[options\]\n\nOptions:\n {2}--/,
  );
});
