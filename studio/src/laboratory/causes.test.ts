import { expect, test } from "vitest";
import { Causes, reasonsOf } from "./causes.ts";
import type { ShownMessage } from "./engine/drawing.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";

const laboratory = new TestedLaboratory();
const message = (sent: number, ended: number, lost: string | null = null) => ({ sent, ended, lost }) as ShownMessage;
const steps = [0, 1, 2, 1, 0, 2].map((node) => ({ node })) as never;

test("follows nodes and messages to a step's past and future, but not lost messages", () => {
  const causes = new Causes({ steps, drawing: { messages: [message(0, 3), message(1, 2, "dropped"), message(3, 5)] } });
  expect(causes.coneOf(3)).toEqual(new Set([0, 1, 3, 5]));
  expect(causes.coneOf(2)).toEqual(new Set([2, 5]));
  expect([causes.causeOf(3), causes.causeOf(4), causes.causeOf(0)]).toEqual([0, 0, 0]);
  expect([causes.effectOf(0), causes.effectOf(2), causes.effectOf(5)]).toEqual([3, 5, 5]);
});

test.each(["bully", "ricart-agrawala", "isis", "paxos", "raft", "chang-roberts"])(
  "agrees with the vector clocks in a run of %s",
  async (protocol) => {
    const run = await laboratory.run({ protocol, nodes: "4" });
    const clocks = run.drawing.clocks.map((text) => [...text.matchAll(/\d+/g)].map(Number));
    const isBefore = (a: readonly number[], b: readonly number[]) => a.every((count, at) => count <= (b[at] ?? 0));
    const causes = new Causes(run);
    const eventful = run.steps.flatMap((_, step) => (clocks[step]?.length === 0 ? [] : [step]));
    const picked = eventful.filter((_, place) => place % Math.ceil(eventful.length / 12) === 0);
    expect(picked.length).toBeGreaterThan(4);
    for (const step of picked) {
      const cone = causes.coneOf(step);
      const own = clocks[step] ?? [];
      const related = eventful.filter(
        (other) => isBefore(clocks[other] ?? [], own) || isBefore(own, clocks[other] ?? []),
      );
      expect(eventful.filter((other) => cone.has(other))).toEqual(related);
    }
  },
);

test("leads from a broken property back along its causes to a start, and explains each step", async () => {
  const run = await laboratory.run({ protocol: "bully", counterexample: "1" });
  const broken = run.properties.find(({ step }) => step !== null);
  const causes = new Causes(run);
  const reasons = reasonsOf(run, causes, broken?.name ?? "");
  expect(reasons[0]?.step).toBe(broken?.step);
  expect(reasons[0]?.caption).toMatch(/ This breaks “.+”\.$/);
  expect(reasons.length).toBeGreaterThan(2);
  for (const [place, { step, caption }] of reasons.entries()) {
    const { node, lines } = run.steps[step] ?? { node: -1, lines: [] };
    expect(caption).toContain(`Node ${node} ${lines[0]}`);
    if (place === 0) continue;
    expect(step).toBe(causes.causeOf(reasons[place - 1]?.step ?? 0));
    expect(caption).toMatch(/ Node \d+ received its .+\.$|This is the previous step of node \d+\.$/);
  }
  expect(causes.reasonOf(reasons.at(-1)?.step ?? 0)).toBeNull();
});

test("gives no reasons for a property that holds", async () => {
  const run = await laboratory.run({ protocol: "ring", nodes: "3" });
  expect(reasonsOf(run, new Causes(run), run.properties[0]?.name ?? "")).toEqual([]);
});
