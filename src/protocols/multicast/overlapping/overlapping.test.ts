import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { correspondence, exploreSends, stage, told, use } from "../../../../test/protocols/multicast-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { causal } from "../causal.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "../family/properties.ts";
import { groupOf, type MulticastWorkload } from "../family/workload.ts";
import { fifo } from "../fifo.ts";
import { isis } from "../isis.ts";
import {
  causalInGroups,
  eachGroup,
  type GroupMulticast,
  groupsGiven,
  ipMulticastInGroups,
  isisInGroups,
} from "./groups.ts";

type AnyGroupMulticast = GroupMulticast & { state: object };
type Made = (options: { groups: NodeId[][] }) => Protocol<AnyGroupMulticast>;

const forms: readonly (readonly [string, Made, Property<MulticastWorkload>])[] = [
  ["C4", (options) => eachGroup(fifo, options), fifoOrder],
  ["C3 and C4, over IP multicast,", (options) => ipMulticastInGroups(options), fifoOrder],
  ["C5", (options) => causalInGroups(options), happenedBeforeOrder],
  ["C6, pairwise,", (options) => isisInGroups(options), totalOrder],
];

/** The number of states in all runs of the triangle. */
const statesOf: Readonly<Record<string, number>> = { C4: 210, C5: 199, "C6, pairwise,": 5_726 };

/** The forms with few enough runs to explore, because they have no timers. */
const explored = forms.filter(([name]) => statesOf[name] !== undefined);

/** Any two of three nodes form a group. Node 0 sends to {0, 2} first, then to {0, 1}. Node 1 sends to {1, 2} first. */
const triangle = groupsGiven({}, "test");

const NODES = 5;
const groupsOfSome = fc.array(fc.subarray(range(0, NODES - 1), { minLength: 1 }), { minLength: 2, maxLength: 4 });
const demand = fc.array(
  fc.record({ node: fc.nat(NODES - 1), at: fc.nat(80), messages: fc.integer({ min: 1, max: 4 }) }),
  { minLength: 1, maxLength: 8 },
);

/** Returns whether a total order of all messages exists that is consistent with the order at every node. */
function haveOneOrder(delivered: readonly (readonly string[])[]): boolean {
  const lists = delivered.map((names) => [...names]);
  for (let first: string | undefined; lists.some((names) => names.length > 0); ) {
    first = lists.flatMap(([name]) => name ?? []).find((name) => lists.every((names) => names.indexOf(name) <= 0));
    if (first === undefined) return false;
    for (const names of lists) if (names[0] === first) names.shift();
  }
  return true;
}

describe("overlapping groups", () => {
  const title = "%s integrity, validity and agreement are kept in any groups, with any senders and delays";
  it.each(forms)(title, (...form) => areKept(form, 25));
  it.each(forms)(`${title}: longer`, { tags: ["larger"] }, (...form) => areKept(form, 250));

  function areKept([, made, order]: (typeof forms)[number], numRuns: number): void {
    fc.assert(
      fc.property(fc.nat(), groupsOfSome, demand, (seed, groups, demands) => {
        const sim = correspondence(made({ groups }), {
          nodes: NODES,
          seed,
          orders: [order],
          workload: { groups, pauseMs: 1 },
        });
        for (const { node, at, messages } of demands.toSorted((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(messages));
        }
        sim.run();
        expect(sim.verdict()).toEqual([]);
        const delivered = range(0, NODES - 1).map((node) =>
          sim.world.state(node).workload.delivered.map(({ name }) => name),
        );
        if (order === totalOrder) expect(haveOneOrder(delivered)).toBe(true);
        for (const [node, names] of delivered.entries())
          expect(names.every((name) => groups[groupOf(name)]?.includes(node))).toBe(true);
      }),
      { numRuns },
    );
  }

  it("over IP multicast each group has its own numbers, and repairs losses independently", () => {
    const groups = [
      [0, 1],
      [0, 1, 2],
    ];
    const group = stage(ipMulticastInGroups({ groups }), 3);
    const say = (payload: string, to: number) => group.sim.command(0, { type: "send", payload, group: to });
    group.sim.cut(0, 1);
    say("lost", 0);
    group.sim.mend(0, 1);
    say("to all", 1);
    say("after it", 0);
    group.sim.run(11);
    expect(group.at(1)).toEqual(["to all"]); // Node 1 does not wait for the other group's lost message.
    group.sim.run();
    expect(group.ids(1)).toEqual(["0.1@1", "0.1@0", "0.2@0"]);
    expect([group.at(0), group.at(2)]).toEqual([["lost", "to all", "after it"], ["to all"]]);
    const { nack, repair } = group.sim.messages.byType;
    expect([nack, repair]).toEqual([1, 1]); // Repaired only to the group member that lost it.
  });

  it.each(explored)("%s every run of three groups of two nodes, 0 sends twice, 1 and 2 once", (name, made, order) => {
    const groups = triangle;
    const found = exploreSends(made({ groups }), [2, 1, 1], { orders: [order], workload: { groups } });
    expect(found).toMatchObject({ verdict: "holds", states: statesOf[name] });
  });

  it("C5 is violated across groups if messages carry only their own group's vector, even over FIFO links", () => {
    const groups = triangle;
    const found = exploreSends(eachGroup(causal, { groups }), [2, 1, 0], {
      orders: [happenedBeforeOrder],
      workload: { groups },
    });
    expect(found.property?.name).toBe("workload: C5 happened-before order");
    expect(told(found)).toEqual([
      "0 receives command send",
      "0 times out",
      "1 receives multicast from 0",
      "1 receives command send",
      "2 receives multicast from 1",
    ]);
  });

  it("C6 is violated between two nodes that share two groups if each group has its own numbers and queue", () => {
    const groups = [
      [0, 1],
      [0, 1, 2],
    ];
    const found = exploreSends(eachGroup(isis, { groups }), [1, 0, 1], { orders: [totalOrder], workload: { groups } });
    expect(found.property?.name).toBe("workload: C6 total order");
    expect(told(found)).toEqual([
      "0 receives command send",
      "1 receives multicast from 0",
      "0 receives proposal from 1",
      "2 receives command send",
      "0 receives multicast from 2",
      "1 receives multicast from 2",
      "2 receives proposal from 0",
      "2 receives proposal from 1",
      "0 receives agreed from 2",
      "1 receives agreed from 2",
    ]);
  });

  it("causal: 1 answers a message of 0 to 2 before 2 has received it, and 2 waits", async () => {
    const group = stage(causalInGroups({ groups: triangle }), 3);
    group.sim.setLink(0, 2, { delay: 100 });
    const say = (node: NodeId, payload: string, to: number) =>
      group.sim.command(node, { type: "send", payload, group: to });
    say(0, "to 2", 0);
    say(0, "to 1", 2);
    group.sim.run(15);
    expect(group.at(1)).toEqual(["to 1"]);
    say(1, "from 1 to 2", 1);
    group.sim.run();
    expect(group.at(2)).toEqual(["to 2", "from 1 to 2"]);
    expect(group.ids(2)).toEqual(["0.1@0", "1.1@1"]);
    await expect(group.story()).toMatchFileSnapshot("../stories/causal-in-groups.txt");
  });

  it.each(forms)("%s only members multicast to a group, and none to an unknown group", (_name, made) => {
    const group = stage(made({ groups: triangle }), 3);
    group.sim.command(1, { type: "send", payload: "stranger", group: 0 });
    group.sim.command(1, { type: "send", payload: "nobody", group: 3 });
    group.sim.run();
    expect([group.sim.messages.total, group.at(1)]).toEqual([0, []]);
  });

  it.each(explored)("%s has the same cost as in a single group, for the group's members only", (name, made) => {
    const group = stage(made({ groups: [range(0, 6), range(4, 9)] }), 10);
    group.sim.command(5, { type: "send", payload: "hello", group: 1 });
    group.sim.run();
    expect(group.sim.messages.total).toBe(name.startsWith("C6") ? 15 : 5);
  });

  it("rejects invalid groups", () => {
    expect(() => groupsGiven({ groups: [] }, "isis")).toThrow(
      "expected isis.groups to be groups without duplicate members",
    );
    expect(() => groupsGiven({ groups: [[1, 1]] }, "isis")).toThrow("expected isis.groups to be groups");
    expect(() => groupsGiven({ members: [] } as never, "isis")).toThrow("expected isis.members to be absent");
  });
});
