import { expect, test } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { Words } from "./recipe.ts";

const laboratory = new TestedLaboratory();

async function atTheEnd(words: Words) {
  const run = await laboratory.run(words);
  return { run, work: (await laboratory.look(run.steps.length - 1)).work };
}

test("counts an election separately, as its formula does", async () => {
  const { run, work } = await atTheEnd({ protocol: "bully", nodes: "5" });
  expect(work).toEqual({ name: "election", count: 1, messages: run.cost.total, isOver: true });
  expect((await laboratory.look(-1)).work).toBeNull();
});

test("counts an election of a node that leads at once, and each one from its beginning", async () => {
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
] as const)("counts as many messages as the formula for %j", async (words, name, messages) => {
  expect((await atTheEnd(words)).work).toEqual({ name, count: 4, messages, isOver: true });
});

test("counts nothing for a failure detector", async () => {
  expect((await atTheEnd({ protocol: "heartbeat", nodes: "3" })).work).toBeNull();
});
