import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Misfortune, misfortune, range, stacksWithState, stateStage, suffer } from "../../../../test/protocols/state-stage.ts";

describe("state transfer: whatever happens", () => {
  const orders = Object.entries(stacksWithState);
  const title = "%s: one state at each place, nothing twice, nothing left out, and in the end everybody has it";
  it.each(orders)(title, (_name, order) => keepsOneState(order, 25));
  it.each(orders)(`${title}: longer`, { tags: ["long"], timeout: 600_000 }, (_name, order) => keepsOneState(order, 1_000));

  function keepsOneState(order: () => unknown, numRuns: number): void {
    fc.assert(
      fc.property(misfortune(5, 40), (given: Misfortune) => {
        const { sim, replica } = suffer(order, given);
        expect(sim.verdict()).toEqual([]);
        const all = range(given.nodes).map(replica);
        const [first] = all;
        for (const each of all) expect(each).toMatchObject({ holds: true, line: first?.line });
        for (const node of range(given.nodes)) expect(first?.line.filter((each) => each.startsWith(`${node}.`))).not.toEqual([]);
      }),
      { numRuns },
    );
  }
});

describe("state transfer: who comes", () => {
  it("works", () => {
    const stage = stateStage(stacksWithState.isis, 3, { delayMs: 10 });
    for (const node of range(3)) stage.sim.start(node);
    stage.sim.run(1_000);
    stage.use(0, "read");
    stage.sim.run(1_200);
    for (const _ of range(5)) stage.send(0);
    stage.sim.run(1_400);
    stage.use(2, "read");
    stage.sim.run(1_800);
    console.log(stage.replica(0), stage.replica(2), stage.sim.verdict());
  });
});
