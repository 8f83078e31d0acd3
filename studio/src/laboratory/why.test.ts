import { expect, test } from "vitest";
import { Causes } from "./causes.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import { reasonsOf } from "./why.ts";

const laboratory = new TestedLaboratory();

test("from where a property broke, back along its causes to a start, each with what led on", async () => {
  const run = await laboratory.run({ protocol: "bully", counterexample: "1" });
  const broken = run.properties.find(({ step }) => step !== null);
  const causes = new Causes(run);
  const reasons = reasonsOf(run, causes, broken?.name ?? "");
  expect(reasons[0]?.step).toBe(broken?.step);
  expect(reasons[0]?.caption).toMatch(/ is broken\.$/);
  expect(reasons.length).toBeGreaterThan(2);
  for (const [place, { step, caption }] of reasons.entries()) {
    const { node, lines } = run.steps[step] ?? { node: -1, lines: [] };
    expect(caption).toContain(`Node ${node} ${lines[0]}`);
    if (place === 0) continue;
    expect(step).toBe(causes.causeOf(reasons[place - 1]?.step ?? 0));
    expect(caption).toMatch(/ is what node \d+ received\.$| did before\.$/);
  }
  expect(causes.reasonOf(reasons.at(-1)?.step ?? 0)).toBeNull();
});

test("nothing is said of what holds", async () => {
  const run = await laboratory.run({ protocol: "ring", nodes: "3" });
  expect(reasonsOf(run, new Causes(run), run.properties[0]?.name ?? "")).toEqual([]);
});
