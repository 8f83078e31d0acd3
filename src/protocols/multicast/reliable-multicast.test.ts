import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { explore, fewestFaults } from "../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../check/suite.ts";
import type { NodeId } from "../../core/protocol.ts";
import { step } from "../../core/step.ts";
import { type Simulation, simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { logLine } from "../../trace/log.ts";
import { delivery } from "./family/properties.ts";
import { type MulticastWithWorkload, multicastWithWorkload } from "./family/workload.ts";
import { type ReliableMulticast, reliableMulticast } from "./reliable-multicast.ts";

type Used = MulticastWithWorkload<ReliableMulticast>;

const send = (payload: string): ReliableMulticast["command"] => ({ type: "send", payload });

/** For each node: it crashes within its step after sending this number of messages in total. */
type Crashes = Readonly<Record<NodeId, number>>;

function stage(nodes: number, crashes: Crashes = {}) {
  const entries: TraceEntry<ReliableMulticast>[] = [];
  const sent = new Map<NodeId, number>();
  const sim: Simulation<ReliableMulticast> = simulation<ReliableMulticast>({
    protocol: reliableMulticast(),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 10,
    trace(entry) {
      entries.push(entry);
      if (entry.kind !== "send") return;
      const count = (sent.get(entry.node) ?? 0) + 1;
      sent.set(entry.node, count);
      if (count === crashes[entry.node]) sim.crash(entry.node);
    },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  entries.length = 0;
  return { sim, entries, story: () => entries.map((entry) => `${logLine(entry as TraceEntry)}\n`).join("") };
}

const idsAt = (sim: Simulation<ReliableMulticast>, node: NodeId): string[] =>
  sim.events(node).flatMap((event) => (event.type === "delivered" ? [event.id] : []));

describe("reliable multicast: the worked examples", () => {
  it("all nodes forward messages that they receive for the first time", async () => {
    const { sim, story } = stage(3);
    sim.command(0, send("hello"));
    sim.run();
    for (const node of range(0, 2)) expect(idsAt(sim, node)).toEqual(["0.1"]);
    expect(sim.messages.byType).toEqual({ multicast: 6 });
    await expect(story()).toMatchFileSnapshot("stories/reliable-multicast-undisturbed.txt");
  });

  it("the sender crashes midway: the nodes it has reached reach the others", async () => {
    const { sim, story } = stage(4, { 0: 1 });
    sim.command(0, send("hello"));
    sim.run();
    for (const node of range(1, 3)) expect(idsAt(sim, node)).toEqual(["0.1"]);
    await expect(story()).toMatchFileSnapshot("stories/reliable-multicast-half-way.txt");
  });
});

describe("reliable multicast: what it costs", () => {
  eachSize(1, 64, "N = %i: N(N − 1) messages per multicast", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(0, send("hello"));
    sim.run();
    expect(sim.messages.total).toBe(nodes * (nodes - 1));
    expect(reliableMulticast().costs[0]?.messages(nodes)).toBe(nodes * (nodes - 1));
  });

  it.each([3, 7, 16])("N = %i: twice as many with acknowledgements", (nodes) => {
    const sim = simulation<ReliableMulticast>({
      protocol: reliableMulticast({ acknowledges: true }),
      nodes: range(0, nodes - 1),
      seed: 1,
      delayMs: 10,
    });
    for (const node of range(0, nodes - 1)) sim.wake(node);
    sim.command(0, send("hello"));
    sim.run();
    const all = nodes * (nodes - 1);
    expect(sim.messages.byType).toEqual({ multicast: all, acknowledgement: all });
  });

  it("takes one message time, and two if the sender has crashed midway", () => {
    const deliveredAt = (crashes: Crashes): number => {
      const { sim, entries } = stage(5, crashes);
      sim.command(0, send("hello"));
      sim.run();
      return Math.max(...entries.filter(({ kind }) => kind === "event").map(({ at }) => at));
    };
    expect([deliveredAt({}), deliveredAt({ 0: 2 })]).toEqual([10, 20]);
  });
});

/** Returns whether all live nodes have delivered the same messages. */
function agree(sim: Simulation<ReliableMulticast>): boolean {
  return new Set(sim.world.alive.map((node) => idsAt(sim, node).sort().join())).size <= 1;
}

describe("reliable multicast: guarantees", () => {
  it("agreement holds no matter at which send the sender crashes, and then a relay", () => {
    const nodes = 5;
    for (const first of range(1, nodes - 1))
      for (const relay of range(1, nodes - 1))
        for (const second of range(1, nodes - 1)) {
          const { sim } = stage(nodes, { 0: first, [relay]: second });
          sim.command(0, send("hello"));
          sim.run();
          expect(agree(sim), `0 after ${first}, ${relay} after ${second}`).toBe(true);
          // All remaining nodes have the message: the first node that received it either reached a different node, or
          // was the last one running.
          expect(sim.world.alive.length).toBeGreaterThanOrEqual(nodes - 2);
        }
  });

  const crash = fc.record({ node: fc.nat(4), sends: fc.integer({ min: 1, max: 12 }) });
  const demand = fc.array(fc.record({ node: fc.nat(4), at: fc.nat(100), messages: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 6,
  });

  it("integrity, validity, agreement: with any senders, any delays, and any crashes in the middle of sending", () => {
    fc.assert(
      fc.property(fc.nat(), demand, fc.array(crash, { maxLength: 4 }), (seed, demands, crashes) => {
        const left = new Map(crashes.map(({ node, sends }) => [node, sends]));
        const sim: Simulation<Used> = simulation<Used>({
          protocol: multicastWithWorkload(reliableMulticast(), delivery),
          nodes: range(0, 4),
          seed,
          delayMs: [1, 40],
          link: { order: "none", duplicateRate: 0.1 },
          trace({ kind, node }) {
            if (kind !== "send" || !left.has(node)) return;
            const sends = (left.get(node) as number) - 1;
            left.set(node, sends);
            if (sends === 0) sim.crash(node);
          },
        });
        for (const node of range(0, 4)) sim.wake(node);
        for (const { node, at, messages } of demands.sort((a, b) => a.at - b.at)) {
          sim.run(at);
          if (sim.world.alive.includes(node)) sim.command(node, { type: "workload", body: { type: "send", messages } });
        }
        sim.run();
        expect(sim.verdict()).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it("agreement is uniform: if a node delivers and crashes at once, the others deliver too", () => {
    const sim: Simulation<ReliableMulticast> = simulation<ReliableMulticast>({
      protocol: reliableMulticast(),
      nodes: [0, 1, 2],
      seed: 1,
      delayMs: 10,
      onEvent(_at, node) {
        if (node === 1) sim.crash(1);
      },
      trace({ kind, node }) {
        if (kind === "send" && node === 0) sim.crash(0);
      },
    });
    for (const node of [0, 1, 2]) sim.wake(node);
    sim.command(0, send("hello"));
    sim.run();
    expect([idsAt(sim, 1), idsAt(sim, 2), sim.world.alive]).toEqual([["0.1"], ["0.1"], [2]]);
  });

  it("ignores a duplicate from any relay", () => {
    const protocol = reliableMulticast();
    const node = { self: 2, peers: [0, 1] };
    const message = { type: "message", origin: 0, number: 1, payload: "once" } as const;
    const carried = { type: "lower", body: { type: "multicast", number: 1, payload: message } } as const;
    const first = step(protocol, node, protocol.init(2, [0, 1]), { kind: "receive", from: 0, message: carried });
    expect(first.effects.map(({ kind }) => kind)).toContain("emit");
    const again = step(protocol, node, first.state, { kind: "receive", from: 1, message: carried });
    expect([again.state, again.effects]).toEqual([first.state, []]);
  });

  it("a message of a recovered node is mistaken for an earlier one, and no other node delivers it", () => {
    const { sim } = stage(3);
    sim.command(0, send("before"));
    sim.run();
    sim.crash(0);
    sim.start(0);
    sim.command(0, send("after"));
    sim.run();
    expect(
      [0, 1, 2].map((node) => sim.events(node).flatMap((event) => ("payload" in event ? [event.payload] : []))),
    ).toEqual([["after"], ["before"], ["before"]]);
  });

  it("remembers its deliveries compactly: numbers without a gap are stored as one", () => {
    const { sim } = stage(3);
    for (const count of range(1, 50)) sim.command(count % 3, send("again"));
    sim.run();
    expect(sim.world.state(0).upper.received).toEqual([
      { from: 0, upTo: 16, beyond: [] },
      { from: 1, upTo: 17, beyond: [] },
      { from: 2, upTo: 17, beyond: [] },
    ]);
  });
});

const system = (spec: Partial<SystemSpec>) =>
  systemFor({ protocol: "reliable-multicast", nodes: [0, 1, 2], withinStep: true, ...spec });

describe("reliable multicast: every run, with crashes within any step", () => {
  it.each([
    [3, [0], 0, "bag", 38],
    [3, [0], 1, "bag", 87],
    [3, [0], 2, "bag", 107],
    [4, [0], 1, "bag", 4_178],
    [4, [0], 2, "bag", 4_612],
    [4, [0], 3, "bag", 4_665],
    [3, [0, 1], 1, "bag", 9_474],
    [3, [0, 1], 2, "bag", 9_804],
  ] as const)(
    "agreement holds for %i nodes, senders %o and %i crashes (%s links)",
    (count, initiators, crashes, network, states) => {
      const nodes = range(0, count - 1);
      expect(explore(system({ nodes, initiators, crashes, network }))).toMatchObject({ verdict: "holds", states });
    },
  );

  it("three nodes that all send, one crashes", { tags: ["long"] }, () => {
    const found = explore(system({ nodes: [0, 1, 2], initiators: [0, 1, 2], crashes: 1, network: "fifo" }));
    expect(found).toMatchObject({ verdict: "holds", states: 80_513 });
  });

  it("the same with a message that arrives twice", () => {
    const spec = { initiators: [0], crashes: 1, duplications: 1, network: "bag" } as const;
    expect(explore(system(spec))).toMatchObject({ verdict: "holds", states: 216 });
  });

  it("relays repair one lost message, but not two", () => {
    const { breaking, harmless, exploration } = fewestFaults(system({ initiators: [0], losses: 3, network: "bag" }));
    expect([breaking, harmless, exploration.property?.name]).toEqual([2, 1, "workload: agreement"]);
    expect(exploration.path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual(["0 command", "1 lose", "2 lose"]);
  });

  it("a node that recovers from a crash has forgotten its deliveries", () => {
    const { property, path } = explore(
      system({ initiators: [0], crashes: 1, recoveries: 1, property: "workload: agreement" }),
    );
    expect(property?.name).toBe("workload: agreement");
    expect(path.map(({ move }) => move.kind)).toContain("start");
  });
});
