import { expect, test } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { Words } from "./recipe.ts";

const laboratory = new TestedLaboratory();

async function atTheEnd(words: Words) {
  const run = await laboratory.run(words);
  return { run, work: (await laboratory.look(run.steps.length - 1)).work };
}

test("an election is counted by itself, as its formula says", async () => {
  const { run, work } = await atTheEnd({ protocol: "bully", nodes: "5" });
  expect(work).toEqual({ name: "election", count: 1, messages: run.cost.total, isOver: true });
  expect((await laboratory.look(-1)).work).toBeNull();
});

test("who leads at once has held an election, too, and each is counted from where it begins", async () => {
  const { run, work } = await atTheEnd({ scenario: "bully-c-recovery" });
  expect(work).toMatchObject({ name: "election", isOver: true });
  expect(work?.messages).toBeGreaterThan(0);
  expect(work?.messages).toBeLessThanOrEqual(run.cost.total);
  const { work: later, run: two } = await atTheEnd({ scenario: "bully-b-next-crashes-too" });
  expect(later?.messages).toBeLessThanOrEqual(two.cost.total);
});

test.each([
  [{ protocol: "ricart-agrawala", nodes: "4" }, "entry", 6],
  [{ protocol: "basic-multicast", nodes: "4" }, "multicast", 3],
] as const)("%j: each costs what the formula says", async (words, name, messages) => {
  expect((await atTheEnd(words)).work).toEqual({ name, count: 4, messages, isOver: true });
});

test("of a failure detector there is nothing to count", async () => {
  expect((await atTheEnd({ protocol: "heartbeat", nodes: "3" })).work).toBeNull();
});
