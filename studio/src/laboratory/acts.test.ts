import { describe, expect, test } from "vitest";
import { actsAt } from "./acts.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import type { Words } from "./engine/recipe.ts";

const laboratory = new TestedLaboratory();

/** Returns the times of the steps at which healing is offered or not, including before the first step. */
async function healable(words: Words): Promise<{ readonly yes: number[]; readonly no: number[] }> {
  const run = await laboratory.run(words);
  const times = { yes: [] as number[], no: [] as number[] };
  for (let step = -1; step < run.steps.length; step++) {
    const isThere = actsAt(await laboratory.look(step), run).some(({ label }) => label === "Heal all cuts");
    times[isThere ? "yes" : "no"].push(run.steps[step]?.at ?? -1);
  }
  return times;
}

describe("cuts can be healed", () => {
  test("while they last, even if they are healed later", async () => {
    const { yes, no } = await healable({ scenario: "heartbeat-partition-heals" });
    expect(new Set(yes)).toEqual(new Set([1000, 1400]));
    expect(new Set(no)).toEqual(new Set([-1, 0, 2000, 2100, 2110]));
  });

  test("not before they are made, even if they last to the end", async () => {
    const { yes, no } = await healable({ scenario: "heartbeat-partition" });
    expect(new Set(yes)).toEqual(new Set([1000, 1400]));
    expect(new Set(no)).toEqual(new Set([-1, 0]));
  });

  test("and are then mended in the fork", async () => {
    const words = { scenario: "heartbeat-partition-heals" };
    const { steps } = await laboratory.run(words);
    const { entries } = steps.findLast(({ at }) => at === 1400) ?? {};
    const healed = await laboratory.run({ ...words, fork: `${entries} heal 0` });
    expect(healed.drawing.axes.time.networks.map(({ words: said }) => said)).toEqual(["split: 0, 1 | 2, 3", ""]);
    expect(healed.steps.flatMap(({ lines }) => lines)).toContainEqual(expect.stringContaining("emits restored node 3"));
  });
});
