import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adversity, befall, recover } from "../../../../test/protocols/group-adversity.ts";
import { groupStage } from "../../../../test/protocols/group-stage.ts";
import { virtualSynchrony } from "../../../check/virtual-synchrony.ts";
import { flushIsis } from "./flush.ts";

/** Room for few messages, so that most of what is sent at once waits for it. */
const narrow = (windowMessages: number) => flushIsis({ multicast: { windowMessages } });

describe("an order over view synchrony whose window is full when the group changes", () => {
  it("what the order has said in a view is multicast in that view, and delivered by all who go on", () => {
    const group = groupStage(narrow(1), { nodes: [0, 1, 2], seed: 1, delayMs: 10 });
    for (const node of [0, 1, 2]) group.start(node);
    group.sim.run(2_000);
    for (let n = 0; n < 5; n++) group.send(0);
    group.tell(2, { type: "leave" });
    group.sim.run(6_000);
    expect(virtualSynchrony(group.records, { total: true })).toEqual([]);
    expect(group.payloads(1)).toEqual(["0:1", "0:2", "0:3", "0:4", "0:5"]);
    expect(group.payloads(0)).toEqual(group.payloads(1));
  });

  it("what the carrier has no room for is not lost in silence: the order has counted it", () => {
    const channel = flushIsis({ multicast: { windowMessages: 2, maxWaiting: 1 } });
    const group = groupStage(channel, { nodes: [0, 1, 2], seed: 1, delayMs: 10 });
    for (const node of [0, 1, 2]) group.start(node);
    group.sim.run(2_000);
    for (let n = 0; n < 3; n++) group.send(0);
    expect(() => group.send(0)).toThrow("view-synchrony has no room for a message of isis: send less at a time");
  });

  it("what is sent outside waits up to a bound, and is refused beyond it", () => {
    const group = groupStage(flushIsis(), { nodes: [0, 1, 2], seed: 1, delayMs: 10 });
    group.start(0);
    for (let n = 0; n < 1_003; n++) group.send(0);
    expect(group.said.filter((each) => each === "refused 0")).toHaveLength(3);
    for (const node of [1, 2]) group.start(node);
    group.sim.run(20_000);
    for (const node of [0, 1, 2]) expect(group.payloads(node)).toHaveLength(1_000);
  });

  it.each([1, 2, 5])("window of %i: any crashes, partitions, losses, comings and goings", (windowMessages) => {
    fc.assert(
      fc.property(fc.nat(), adversity(3, 40), (seed, acts) => {
        const group = groupStage(narrow(windowMessages), { nodes: [0, 1, 2], seed, delayMs: [1, 10] });
        for (const node of [0, 1, 2]) group.start(node);
        group.sim.run(1_000);
        befall(group, [0, 1, 2], acts);
        recover(group, [0, 1, 2]);
        expect(virtualSynchrony(group.records, { total: true })).toEqual([]);
        expect(group.sim.violations).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });
});
