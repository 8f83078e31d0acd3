/** Runs the coordination service under random faults of the network and the nodes. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { modelRun } from "../../../../test/protocols/service/model-runs.ts";
import { store } from "../../../../test/protocols/service/store-model.ts";
import { type SwarmOptions, swarm } from "../../../../test/protocols/service/swarm.ts";
import { checkLinearizability } from "../../../history/check.ts";

/** @returns the problems of a run, or an empty list if it is correct */
function problems(options: SwarmOptions): string[] {
  const report = swarm(options);
  const { verdict } = checkLinearizability(report.history, store());
  return [
    ...report.violations,
    ...report.gaps,
    ...(verdict === "holds" ? [] : [`linearizable: ${verdict}`]),
    ...(report.unanswered > 0
      ? [`${report.unanswered} operations are not answered after all faults were repaired`]
      : []),
    ...(report.lostWrongly > 0 ? [`${report.lostWrongly} sessions expired after all faults were repaired`] : []),
    ...(report.keptWrongly > 0 ? [`${report.keptWrongly} sessions of crashed clients are kept`] : []),
  ];
}

const nothing = (more: Partial<SwarmOptions> = {}) =>
  fc.property(fc.nat(), (seed) => {
    expect(problems({ seed, ...more })).toEqual([]);
  });

describe("the state machine of the service", () => {
  it("applies operations on keys, leases, locks, semaphores, queues and barriers as a model does, each once", () =>
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        expect(modelRun(seed, 150)).toBeNull();
      }),
      { numRuns: 40 },
    ));
});

describe("the coordination service in adversity", () => {
  it("is linearizable, grants no lock twice, reports every change once, and continues when all faults are healed", () =>
    fc.assert(nothing({ operations: 30 }), { numRuns: 8 }));
  it("does so with pauses, except for guarantees that need deadlines", () =>
    fc.assert(nothing({ pauses: true, operations: 30 }), { numRuns: 4 }));

  it("does so in long searches", { tags: ["larger"] }, () => {
    fc.assert(nothing(), { numRuns: 80 });
    fc.assert(nothing({ pauses: true }), { numRuns: 40 });
  });
});
