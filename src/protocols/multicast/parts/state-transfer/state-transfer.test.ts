import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  anotherReadsLater,
  type Misfortune,
  misfortune,
  range,
  sourceCrashes,
  stacksWithState,
  stateStage,
  suffer,
} from "../../../../../test/protocols/state-stage.ts";
import type { AnyMaker } from "../../../system.ts";

describe("state transfer: whatever happens", () => {
  const orders = Object.entries(stacksWithState);
  const title = "%s: one state at each place, nothing twice, nothing left out, and in the end everybody has it";
  it.each(orders)(title, (_name, order) => keepsOneState(order, misfortune(3, 15), 1));
  it.each(orders)(`${title}: longer`, { tags: ["larger"] }, (_name, order) =>
    keepsOneState(order, misfortune(5, 40), 40),
  );

  function keepsOneState(order: AnyMaker, misfortunes: fc.Arbitrary<Misfortune>, numRuns: number): void {
    fc.assert(
      fc.property(misfortunes, (given) => {
        const { sim, replica } = suffer(order, given);
        expect(sim.violations).toEqual([]);
        // Where the links have lost what the order cannot do without, it holds something back for ever, and says so itself.
        const owed = sim.verdict().map(({ property }) => property);
        if (owed.includes("agreement")) return;
        expect(owed).toEqual([]);
        const all = range(given.nodes).map(replica);
        const [first] = all;
        for (const each of all) expect(each).toMatchObject({ holds: true, line: first?.line });
        for (const node of range(given.nodes))
          expect(first?.line.filter((each) => each.startsWith(`${node}.`))).not.toEqual([]);
      }),
      { numRuns },
    );
  }
});

/** Three nodes in view 1; nobody reads yet. */
function group() {
  const stage = stateStage(stacksWithState.isis, 3, { delayMs: 10 });
  for (const node of range(3)) stage.sim.start(node);
  stage.sim.run(1_000);
  return stage;
}

describe("state transfer: who comes", () => {
  it("gets the state and then the messages, in one place of the order", () => {
    const { sim, use, send, replica } = group();
    use(0, "read");
    sim.run(1_100);
    for (let n = 0; n < 5; n++) send(n % 2);
    use(2, "read");
    for (let n = 0; n < 5; n++) send(n % 2);
    sim.run(1_500);
    expect(replica(0).line).toHaveLength(11);
    expect(replica(2)).toMatchObject({ holds: true, founded: 0, line: replica(0).line });
    expect(sim.verdict()).toEqual([]);
  });

  it("costs nothing where nobody wants a state; one that comes: a multicast of each member, a request and the parts", () => {
    const { sim, use, words } = group();
    expect(range(3).map(words)).toEqual([0, 0, 0]);
    use(0, "read");
    sim.run(1_100);
    use(2, "read");
    sim.run(1_200);
    expect(range(3).map(words)).toEqual([1, 1, 3]); // It seeks, all say once how they stand, and it holds.
  });

  it("if the source crashes: another gives it", () => {
    const { sim, use, send, replica } = group();
    for (const node of [0, 1]) use(node, "read");
    sim.run(1_200);
    for (let n = 0; n < 3; n++) send(1);
    sim.run(1_300);
    sim.cut(0, 2);
    use(2, "read");
    sim.run(1_335);
    expect(replica(2).holds).toBe(false);
    sim.crash(0);
    sim.run(4_000);
    expect(replica(2)).toMatchObject({ holds: true, line: replica(1).line });
    expect(replica(2).line).toHaveLength(4);
    expect(sim.violations).toEqual([]);
  });

  it("if the last that holds the state crashes, it is lost, and one of those that wait founds another", () => {
    const { sim, use, send, replica } = group();
    use(0, "read");
    sim.run(1_200);
    send(0);
    sim.run(1_300);
    sim.crash(0);
    for (const node of [1, 2]) use(node, "read");
    sim.run(5_000);
    send(2);
    sim.run(5_500);
    expect(replica(1)).toMatchObject({ founded: 1, holds: true });
    expect(replica(1).line).toHaveLength(2);
    expect(replica(2)).toMatchObject({ founded: 0, line: replica(1).line });
    expect(sim.violations).toEqual([]);
  });

  it("founds with the messages that it received while it waited, if the source crashes", () => {
    const { sim, replica } = sourceCrashes(stacksWithState.isis, () => {});
    expect(replica(2).line).toEqual([expect.stringMatching(/^by 2/), "2.1/2"]);
    expect(sim.violations).toEqual([]);
  });

  it("founds if it has waited longest: it has received every message that the others received", () => {
    const { sim, replica } = sourceCrashes(stacksWithState.isis, anotherReadsLater);
    expect(replica(2).line).toEqual([expect.stringMatching(/^by 2/), "2.1/2"]);
    expect(replica(1).line).toEqual(replica(2).line);
    expect([...sim.violations, ...sim.verdict()]).toEqual([]);
  });

  it("who was left out and comes back gets the state of those that went on, in place of its own", () => {
    const { sim, use, send, replica } = group();
    for (const node of range(3)) use(node, "read");
    sim.run(1_200);
    sim.partition([[0], [1, 2]]);
    sim.run(3_000);
    send(1);
    sim.run(3_500);
    expect(replica(0).line).toHaveLength(1);
    sim.heal();
    sim.run(8_000);
    expect(replica(0)).toMatchObject({ holds: true, line: replica(1).line });
    expect(replica(0).line).toHaveLength(2);
    expect(sim.verdict()).toEqual([]);
  });

  it("a minority founds nothing, and waits", () => {
    const stage = stateStage(stacksWithState.isis, 3, { delayMs: 10 });
    stage.sim.start(0);
    stage.use(0, "read");
    stage.sim.run(5_000);
    expect(stage.replica(0)).toMatchObject({ holds: false, founded: 0 });
    stage.sim.start(1);
    stage.sim.run(10_000);
    expect(stage.replica(0)).toMatchObject({ holds: true, founded: 1 });
  });
});
