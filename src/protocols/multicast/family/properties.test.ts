import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { adversity, befall, recover } from "../../../../test/protocols/group-adversity.ts";
import type { GroupStage } from "../../../../test/protocols/group-stage.ts";
import { explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import { clone } from "../../../core/plain.ts";
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { random } from "../../../core/random.ts";
import { simulation } from "../../../sim/simulation.ts";
import { evenly } from "../ip-multicast/vocabulary.ts";
import { flushCausal, flushCausalTotal, flushFifo, flushFifoTotal, flushIsis } from "../parts/flush.ts";
import { type ViewSynchrony, viewSynchrony } from "../view-synchrony.ts";
import { agreement, fifoOrder, happenedBeforeOrder, integrity, totalOrder, validity } from "./properties.ts";
import { monitoredMulticastModel } from "./systems.ts";
import { groupOf, type Letter, type MulticastWorkload, multicastWorkload, senderOf, viewOf } from "./workload.ts";

type State = MulticastWorkload["state"];

const letter = (name: string, past: readonly string[] = [], view = 0): Letter => ({ name, view, past: past.join(" ") });

/** Evaluates the property for workloads with the given deliveries and other differences. */
function holds(
  property: Property<MulticastWorkload>,
  ...workloads: (Partial<Omit<State, "delivered">> & { delivered: Letter[] })[]
) {
  const states = workloads.map(
    (workload): State => ({ left: 0, groups: [0], view: 0, since: 0, sent: [], excused: 0, ...workload }),
  );
  const nodes = states.map((_, node) => node);
  const world = { alive: nodes, nodes, state: (node: NodeId) => states[node] as State, history: () => null as never };
  if (property.when !== "leadsTo") return property.holds(world);
  return world.alive.every((node) => property.holds(world, node));
}

describe("names of messages", () => {
  it.each([
    ["3.12", [3, 0, 0]],
    ["3.12/4", [3, 4, 0]],
    ["3.12@5", [3, 0, 5]],
    ["3.12/4@5", [3, 4, 5]],
  ] as const)("%s", (name, parts) => {
    expect([senderOf(name), viewOf(name), groupOf(name)]).toEqual(parts);
  });

  it("a workload names its messages and lists those that happened before, including its own", () => {
    const workload = multicastWorkload({ groups: [[0, 1], [1, 2], [1]] });
    const said: string[] = [];
    const ctx = { self: 1, emit: ({ payload }: { payload: string }) => said.push(payload), setTimer() {} } as never;
    const state = workload.init(1, [0, 2]);
    workload.command.install(state, { type: "install", view: 7 }, ctx);
    workload.command.send(state, { type: "send", messages: 3 }, ctx);
    workload.command.delivered(state, { type: "delivered", payload: "0.1 2.1@1" }, ctx);
    workload.timeout.pause(state, ctx);
    workload.timeout.pause(state, ctx);
    expect(said).toEqual(["1.1/7", "1.2/7@1 0.1 1.1/7 2.1@1", "1.3/7@2 0.1 1.1/7 1.2/7@1 2.1@1"]);
  });
});

describe("C4 and C5", () => {
  it.each([
    ["in order", [letter("0.1"), letter("0.2", ["0.1"])], true, true],
    ["one sender's out of order", [letter("0.2", ["0.1"]), letter("0.1")], false, false],
    ["one sender's with a gap", [letter("0.2", ["0.1"])], false, false],
    ["an answer before its question", [letter("1.1", ["0.1"]), letter("0.1")], true, false],
    ["of a group that the node is not in", [letter("1.1", ["0.1@3"])], true, true],
    ["to another group of the same sender", [letter("0.2", ["0.1@1"]), letter("0.1@1")], true, false],
    ["what was before it joined is not missing", [letter("0.2/4", ["0.1/3"], 4)], true, true],
    ["in views out of order", [letter("0.2/4", ["0.1/4"], 4), letter("0.1/4", [], 4)], false, false],
    ["in one view with a gap", [letter("0.2/4", ["0.1/4"], 4)], false, false],
    ["in one view an answer without its question", [letter("1.1/4", ["0.1/4"], 4)], true, false],
  ])("%s", (_what, delivered, fifo, causal) => {
    const workload = { delivered, groups: [0, 1] };
    expect([holds(fifoOrder, workload), holds(happenedBeforeOrder, workload)]).toEqual([fifo, causal]);
  });
});

describe("C4 and C5 with views: missing messages of an earlier view", () => {
  const later = { view: 4, since: 3, delivered: [letter("0.2/4", ["0.1/3"], 4)] };
  const had = (more: object) => ({ view: 4, since: 2, delivered: [letter("0.1/3", [], 3)], ...more });

  it.each([
    ["no node has it: its sender was ejected before it could be delivered", { view: 4, since: 3, delivered: [] }, true],
    ["another survivor of the view has it", had({}), false],
    ["a survivor of the view has it, from before this node joined", had({ delivered: [letter("0.1/3", [], 2)] }), true],
    ["a node that is still in that view, alone, has it", had({ view: 3 }), true],
    ["another has it, in the view of the later one", had({ delivered: [letter("0.1/3", [], 4)] }), false],
    ["a node that was ejected since has it", had({ since: 0 }), true],
  ])("%s", (_what, other, isKept) => {
    for (const order of [fifoOrder, happenedBeforeOrder]) expect(holds(order, later, other)).toBe(isKept);
  });
});

describe("C6", () => {
  const of = (...names: string[]) => ({ delivered: names.map((name) => letter(name)) });

  it.each([
    ["the same so far", of("0.1", "1.1"), of("0.1"), true],
    ["nothing in common yet", of("0.1"), of("1.1"), true],
    ["in another order", of("0.1", "1.1"), of("1.1", "0.1"), false],
    ["one left out before what both have", of("0.1", "1.1"), of("1.1"), false],
    [
      "of groups that both are in",
      { ...of("0.1@1", "1.1@1", "0.2@2"), groups: [1, 2] },
      { ...of("1.1@1"), groups: [1] },
      false,
    ],
    [
      "a message that the other node does not receive",
      { ...of("0.1@2", "1.1@1"), groups: [1, 2] },
      { ...of("1.1@1"), groups: [1] },
      true,
    ],
  ])("%s", (_what, one, other, isKept) => {
    expect([holds(totalOrder, one, other), holds(totalOrder, other, one)]).toEqual([isKept, isKept]);
  });

  it("with views, compares common deliveries", () => {
    const newcomer = { view: 2, delivered: [letter("1.1/2", [], 2), letter("0.2/2", [], 2)] };
    const old = { view: 2, delivered: [letter("0.1/1", [], 1), ...newcomer.delivered] };
    expect(holds(totalOrder, old, newcomer)).toBe(true);
    expect(holds(totalOrder, { ...old, delivered: old.delivered.toReversed() }, newcomer)).toBe(false);
  });

  const inView = (view: number, names: readonly string[], more: object = {}) => ({
    view,
    since: 1,
    delivered: names.map((name) => letter(name, [], 3)),
    ...more,
  });

  it.each([
    ["in the same view, one is missing before a common message", inView(3, ["0.1", "1.1"]), inView(3, ["1.1"]), false],
    ["in the same view, one is behind", inView(3, ["0.1", "1.1"]), inView(3, ["0.1"]), true],
    ["both survived, and one omitted the last", inView(4, ["0.1", "1.1"]), inView(4, ["0.1"]), false],
    ["both survived with the same", inView(4, ["0.1", "1.1"]), inView(5, ["0.1", "1.1"]), true],
    ["one did not survive", inView(4, ["0.1", "1.1"]), inView(3, ["1.1"]), true],
    [
      "one did not survive, and has the common messages in another order",
      inView(4, ["0.1", "1.1"]),
      inView(3, ["1.1", "0.1"]),
      false,
    ],
    ["one came later", inView(5, ["0.1"]), inView(5, [], { since: 4 }), true],
  ])("with views: %s", (_what, one, other, isKept) => {
    expect([holds(totalOrder, one, other), holds(totalOrder, other, one)]).toEqual([isKept, isKept]);
  });
});

describe("properties of every multicast", () => {
  it("integrity: once, and only if it was sent", () => {
    expect(holds(integrity, { sent: ["0.1"], delivered: [letter("0.1")] })).toBe(true);
    expect(holds(integrity, { sent: ["0.1"], delivered: [letter("0.1"), letter("0.1")] })).toBe(false);
    expect(holds(integrity, { sent: [], delivered: [letter("0.1")] })).toBe(false);
    expect(holds(integrity, { sent: [], delivered: [letter("9.1")] })).toBe(true); // The sender, node 9, has crashed.
  });

  it("integrity with views: a message unknown to its sender may be from an earlier incarnation, but not from this one", () => {
    const delivered = (name: string) => holds(integrity, { view: 5, since: 4, delivered: [letter(name, [], 5)] });
    expect(["0.7/3", "0.7", "0.7/4", "0.7/5"].map(delivered)).toEqual([true, true, false, false]);
    expect(holds(integrity, { view: 5, since: 0, delivered: [letter("0.7/5", [], 5)] })).toBe(true);
  });

  it("validity: its own messages, except those sent before an ejection, and those sent outside", () => {
    expect(holds(validity, { sent: ["0.1"], delivered: [] })).toBe(false);
    expect(holds(validity, { sent: ["0.1"], delivered: [letter("0.1")] })).toBe(true);
    const inGroup = { sent: ["0.1/1", "0.2/2"], view: 2, since: 1 };
    expect(holds(validity, { ...inGroup, delivered: [letter("0.2/2")] })).toBe(false);
    expect(holds(validity, { ...inGroup, excused: 1, delivered: [letter("0.2/2")] })).toBe(true);
    expect(holds(validity, { ...inGroup, since: 0, delivered: [] })).toBe(true);
  });

  it("agreement: between members of the group in the same view", () => {
    const [one, none] = [
      { delivered: [letter("0.1@1")], groups: [1] },
      { delivered: [], groups: [1] },
    ];
    expect(holds(agreement, one, none)).toBe(false);
    expect(holds(agreement, one, { ...none, groups: [2] })).toBe(true);
    expect(holds(agreement, one, { ...none, view: 3 })).toBe(true);
  });
});

describe("long lists that grow", () => {
  const properties = [fifoOrder, happenedBeforeOrder, totalOrder, integrity, validity, agreement];
  it("get the same verdict as at first sight, although earlier items are not checked again", () => {
    const chance = random(7);
    const isOneIn = (many: number): boolean => chance.between(0, many) < 1;
    const seen = new Set<string>();
    for (let run = 0; run < 30; run++) {
      const states = [0, 1, 2].map(() => ({ sent: [] as string[], delivered: [] as Letter[] }));
      const letters: Letter[] = [];
      for (let step = 0; step < 140; step++) {
        const node = Math.floor(chance.between(0, 3));
        const own = states[node] as (typeof states)[number];
        const next = letters[own.delivered.length];
        if (next !== undefined && !isOneIn(4)) {
          const wrong = run > 5 && isOneIn(60);
          own.delivered.push(wrong ? (letters.at(-1) as Letter) : next);
        } else if (letters.length < 50) {
          const name = `${node}.${own.sent.length + 1}`;
          const past = new Set([...own.sent, ...own.delivered.map((each) => each.name)]);
          if (run < 20 || !isOneIn(40)) own.sent.push(name);
          letters.push(letter(name, [...past]));
        }
        for (const property of properties) {
          const verdict = holds(property, ...states);
          expect(verdict).toBe(holds(property, ...clone(states)));
          if (own.delivered.length > 32) seen.add(`${property.name}: ${verdict}`);
        }
      }
    }
    for (const { name } of properties) expect(seen).toContain(`${name}: false`);
    for (const { name } of [fifoOrder, totalOrder, integrity, validity]) expect(seen).toContain(`${name}: true`);
  });
});

// The stacks of `join()` channels over IP multicast, explored as registered.

/** Explores every run of two nodes. The initiators send one message each. */
const explored = (protocol: string, initiators: readonly number[], losses: number) =>
  explore(
    systemFor({
      protocol,
      variant: "over-ip-multicast",
      nodes: [0, 1],
      initiators,
      network: "bag",
      timers: "quiet",
      losses,
      duplications: 1,
      options: { multicast: { multicast: evenly } },
    }),
  );

describe("an order over IP multicast", () => {
  test.each([
    ["fifo", [0, 1], 1, 2_550],
    ["causal", [0, 1], 1, 2_550],
    ["isis", [0, 1], 0, 1_177],
    ["causal-total", [0, 1], 0, 1_347],
  ] as const)(
    "%s: keeps its guarantees when multicasts are lost and duplicated",
    (protocol, senders, losses, states) => {
      expect(explored(protocol, senders, losses)).toMatchObject({ verdict: "holds", states });
    },
  );

  /** Proposals go only to the sender, over a link. Lost proposals are not requested again. */
  test.each(["isis", "causal-total"])("%s: needs reliable links in addition", (protocol) => {
    expect(explored(protocol, [0], 1).verdict).toBe("violated");
  });
});

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, i) => i);

/** Creates a group with workloads that observe deliveries, driven like other stages. */
function stage(protocol: ReturnType<typeof monitoredMulticastModel<ViewSynchrony>>, nodes: number, seed: number) {
  const sim = simulation({
    protocol,
    nodes: range(nodes),
    seed,
    delayMs: [1, 10],
    link: { order: "none" },
    properties: "at the end",
  });
  for (const node of range(nodes)) sim.start(node);
  return {
    sim,
    start: (node: number) => sim.start(node),
    send: (node: number) => sim.command(node, { type: "workload", body: { type: "send", messages: 1 } }),
    tell: (node: number, command: ViewSynchrony["command"]) => sim.command(node, { type: "multicast", body: command }),
  };
}

describe("workloads of a multicast with views, under any faults", () => {
  it.each([
    ["none", viewSynchrony, [fifoOrder]],
    ["fifo", flushFifo, [fifoOrder]],
    ["causal", flushCausal, [fifoOrder, happenedBeforeOrder]],
    ["isis", flushIsis, [totalOrder]],
    ["fifo-total", flushFifoTotal, [fifoOrder, totalOrder]],
    ["causal-total", flushCausalTotal, [fifoOrder, happenedBeforeOrder, totalOrder]],
  ] as const)("%s: keeps its guarantees", (_order, channel, orders) => {
    const model = monitoredMulticastModel(channel as unknown as () => Protocol<ViewSynchrony>, orders);
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 2, max: 5 }), adversity(5, 60), (seed, nodes, acts) => {
        const group = stage(model, nodes, seed);
        befall(group as unknown as GroupStage<ViewSynchrony>, range(nodes), acts);
        recover(group as unknown as GroupStage<ViewSynchrony>, range(nodes));
        expect(group.sim.verdict()).toEqual([]);
      }),
      { numRuns: 10 },
    );
  });
});
