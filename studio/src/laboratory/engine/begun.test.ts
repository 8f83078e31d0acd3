/** Tests that runs of scenarios with given initial states have known states and can be forked. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";

const folder = new URL("../../../../scenarios/", import.meta.url);
const scenarios = readdirSync(folder)
  .filter((file) => /^ {2}states:/m.test(readFileSync(new URL(file, folder), "utf8")))
  .map((file) => file.replace(/\.yaml$/, ""));

test("finds scenarios with given initial states", () => {
  expect(scenarios).toContain("ricart-agrawala-two-at-once");
});

test.each(scenarios)("knows every state of %s, and continues a fork from there", async (scenario) => {
  const laboratory = new TestedLaboratory();
  const run = await laboratory.run({ scenario });
  for (const step of [0, run.steps.length >> 1, run.steps.length - 1])
    expect((await laboratory.look(step)).hasStates).toBe(true);
  const middle = run.steps[run.steps.length >> 1];
  const node = run.drawing.nodes.at(-1);
  const fork = await laboratory.run({ scenario, fork: `${middle?.entries} pause ${node}` });
  expect(fork.steps.slice(0, run.steps.length >> 1)).toEqual(run.steps.slice(0, run.steps.length >> 1));
  expect(fork.steps.flatMap(({ lines }) => lines)).toContainEqual(expect.stringMatching(/pause/));
});
