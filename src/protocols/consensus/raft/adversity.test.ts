/** Raft through whatever may happen to a network and its nodes, drawn at random. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CommandOf, NodeId } from "../../../core/protocol.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import { type Raft, raft } from "./raft.ts";

const NODES = 5;
const all = Array.from({ length: NODES }, (_, node) => node);

type Deed =
  | { kind: "crash" | "start" | "pause" | "resume"; node: NodeId }
  | { kind: "propose" | "compact" | "read"; node: NodeId }
  | { kind: "transfer"; node: NodeId; to: NodeId }
  | { kind: "cut" | "mend"; node: NodeId; other: NodeId }
  | { kind: "partition"; side: NodeId[] }
  | { kind: "reconfigure"; node: NodeId; voters: NodeId[] }
  | { kind: "heal" };

type Asked = Exclude<
  Deed,
  | { kind: "partition" }
  | { kind: "heal" }
  | { other: NodeId }
  | { kind: "crash" | "start" | "pause" | "resume"; node: NodeId }
>;

const node = fc.nat(NODES - 1);
const some = fc.uniqueArray(node, { minLength: 1, maxLength: NODES }).map((nodes) => nodes.sort((a, b) => a - b));
const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("crash" as const, "start" as const, "start" as const), node }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("pause" as const, "resume" as const), node }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("propose" as const), node }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("compact" as const, "read" as const), node }) },
  fc.record({ kind: fc.constant("transfer" as const), node, to: node }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("cut" as const, "mend" as const), node, other: node }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("partition" as const), side: some }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("reconfigure" as const), node, voters: some }) },
  fc.record({ kind: fc.constant("heal" as const) }),
);

const adversity = fc.record({
  seed: fc.nat(),
  maxDelayMs: fc.constantFrom(2, 20, 120, 500),
  lossRate: fc.constantFrom(0, 0.05, 0.3),
  duplicateRate: fc.constantFrom(0, 0.1),
  order: fc.constantFrom("fifo" as const, "none" as const),
  options: fc.record({
    preVote: fc.boolean(),
    checkQuorum: fc.boolean(),
    maxBatchEntries: fc.constantFrom(1, 3, 64),
    maxInFlight: fc.constantFrom(1, 8),
    maxChunkChars: fc.constantFrom(1, 3, 1_000),
    keptEntries: fc.constantFrom(0, 2),
    minElectionMs: fc.constantFrom(100, 300),
  }),
  deeds: fc.array(fc.record({ afterMs: fc.constantFrom(0, 5, 40, 150, 500), deed }), { maxLength: 40 }),
});
type Adversity = typeof adversity extends fc.Arbitrary<infer A> ? A : never;

function staged({ seed, maxDelayMs, lossRate, duplicateRate, order, options }: Omit<Adversity, "deeds">) {
  const sim = simulation<Raft>({
    protocol: raft(options),
    nodes: all,
    seed,
    delayMs: [0, maxDelayMs],
    link: { lossRate, duplicateRate, order },
    syncMs: 1,
  });
  for (const each of all) sim.start(each);
  return sim;
}

const sequences = new WeakMap<object, number>();
function nextSequence(sim: object): number {
  const next = (sequences.get(sim) ?? 0) + 1;
  sequences.set(sim, next);
  return next;
}

/** Does it, if it can be done. */
function take(sim: Simulation<Raft>, paused: Set<NodeId>, each: Deed): void {
  if (each.kind === "heal") return sim.heal();
  if (each.kind === "partition") return sim.partition([each.side]);
  const { node: at } = each;
  const isAlive = sim.world.alive.includes(at);
  switch (each.kind) {
    case "cut":
    case "mend":
      return at === each.other ? undefined : sim[each.kind](at, each.other);
    case "start":
      return isAlive ? undefined : sim.start(at);
    case "crash":
      paused.delete(at);
      return isAlive ? sim.crash(at, { journal: "synced" }) : undefined;
    case "pause":
      if (isAlive && !paused.has(at)) sim.pause(at);
      return isAlive ? void paused.add(at) : undefined;
    case "resume":
      return paused.delete(at) ? sim.resume(at) : undefined;
    default:
      if (isAlive) sim.command(at, commandOf(sim, each));
  }
}

function commandOf(sim: Simulation<Raft>, each: Asked): CommandOf<Raft> {
  switch (each.kind) {
    case "propose":
      return {
        type: "propose",
        command: { client: each.node, sequence: nextSequence(sim), operation: `say ${each.node}` },
      };
    case "compact": {
      const index = sim.world.state(each.node).commitIndex;
      return { type: "compact", index, snapshot: `all up to ${index} 🦊` };
    }
    case "read":
      return { type: "read", read: nextSequence(sim) };
    case "transfer":
      return { type: "transfer", to: each.to };
    case "reconfigure":
      return { type: "reconfigure", voters: each.voters, learners: all.filter((n) => !each.voters.includes(n)) };
  }
}

function go(sim: Simulation<Raft>, deeds: Adversity["deeds"]): Set<NodeId> {
  const paused = new Set<NodeId>();
  sim.run(sim.now + 700);
  for (const { afterMs, deed: each } of deeds) {
    sim.run(sim.now + afterMs);
    take(sim, paused, each);
  }
  sim.run(sim.now + 300);
  return paused;
}

const safeThenLive = (numRuns: number): void =>
  fc.assert(
    fc.property(adversity, (given) => {
      const sim = staged(given);
      const paused = go(sim, given.deeds);
      expect(sim.violations).toEqual([]);
      sim.heal();
      for (const each of all) {
        if (paused.has(each)) sim.resume(each);
        if (!sim.world.alive.includes(each)) sim.start(each);
        for (const other of all)
          if (each !== other) sim.setLink(each, other, { delay: [0, 10], lossRate: 0, duplicateRate: 0 });
      }
      sim.run(sim.now + 8_000);
      expect(sim.verdict()).toEqual([]);
      const command = { client: 0, sequence: 1_000, operation: "at last" };
      for (const each of all) sim.command(each, { type: "propose", command });
      sim.run(sim.now + 1_000);
      expect(sim.verdict()).toEqual([]);
      for (const each of all)
        expect(sim.events(each)).toContainEqual({ type: "decided", index: expect.any(Number) as number, command });
    }),
    { numRuns },
  );

describe("raft in adversity", () => {
  it("is safe whatever happens, and has a leader and decides what is proposed once faults cease", () =>
    safeThenLive(8));

  it("the same, many runs", { tags: ["long"] }, () => safeThenLive(300));
});
