import { describe, expect, test } from "vitest";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import { beginning } from "./link-defaults.ts";

const laboratory = new TestedLaboratory();

describe("the cursor of a newly opened run", () => {
  test.each([
    ["ricart-agrawala", 2],
    ["heartbeat", 2], // Later entries are folded.
  ])("is at a step of %s at which all nodes have started, so that they can be acted on", async (protocol, step) => {
    const run = await laboratory.run({ protocol, nodes: "3" });
    expect(beginning(run, run.words)).toBe(step);
    expect((await laboratory.look(step)).nodes.map(({ condition }) => condition)).toEqual(["up", "up", "up"]);
  });

  test("is at the step in the link, even before the first one; otherwise where a property is violated", async () => {
    const run = await laboratory.run({ protocol: "bully", counterexample: "1" });
    const broken = run.properties.find(({ step }) => step !== null)?.step;
    expect(beginning(run, {})).toBe(broken);
    expect(beginning(run, { at: "-1" })).toBe(-1);
    expect(beginning(run, { at: "here" })).toBe(broken);
  });

  test("is after the last act, even if all later entries are folded", async () => {
    const { steps } = await laboratory.run({ protocol: "heartbeat", nodes: "3" });
    const entries = steps.at(-1)?.entries;
    const run = await laboratory.run({ protocol: "heartbeat", nodes: "3", fork: `${entries} crash 2` });
    expect(run.steps[beginning(run, {})]).toMatchObject({ node: 2, lines: ["crashes"] });
  });
});
