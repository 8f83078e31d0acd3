/** Runs a replicated log alone (Raft or Multi-Paxos) under random faults of the network and the nodes. */
import fc from "fast-check";
import { expect } from "vitest";
import type { NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { type ReplicatedLog, snapshotOf } from "../../src/protocols/consensus/family/replicated-log.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";

type Log = Vocabulary & {
  message: { type: string };
  command: Exclude<ReplicatedLog["command"], { type: "reply" }>;
  event: ReplicatedLog["event"];
};

/** A log, and its random options. */
export interface LogInAdversity<O extends object> {
  readonly options: fc.Arbitrary<O>;
  /** Returns options for reads with leader leases. The speed of clocks is wrong by at most this fraction. */
  readonly leasing: (drift: number) => object;
  readonly make: (options: O) => Protocol<Log>;
  /** Returns the part of the state that a node keeps across a crash. */
  readonly durable: (state: never) => unknown;
  /** Returns the last index that a node knows to be decided. */
  readonly decidedAt: (state: never) => number;
}

const NODES = 5;
const DRIFT = 0.1;
const all = Array.from({ length: NODES }, (_, node) => node);

type Deed =
  | { kind: "crash" | "start" | "pause" | "resume"; node: NodeId }
  | { kind: "propose" | "compact" | "read"; node: NodeId }
  | { kind: "transfer"; node: NodeId; to: NodeId }
  | { kind: "cut" | "mend"; node: NodeId; other: NodeId }
  | { kind: "partition"; side: NodeId[] }
  | { kind: "reconfigure"; node: NodeId; voters: NodeId[] }
  | { kind: "slow"; node: NodeId; other: NodeId; delayMs: number }
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
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("compact" as const, "read" as const, "read" as const), node }),
  },
  fc.record({ kind: fc.constant("transfer" as const), node, to: node }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("cut" as const, "mend" as const), node, other: node }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("partition" as const), side: some }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("reconfigure" as const), node, voters: some }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("slow" as const),
      node,
      other: node,
      delayMs: fc.constantFrom(100, 150, 400),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("heal" as const) }) },
);

const adversityOf = <O extends object>(options: fc.Arbitrary<O>) =>
  fc.record({
    seed: fc.nat(),
    maxDelayMs: fc.constantFrom(2, 20, 120, 500),
    lossRate: fc.constantFrom(0, 0.05, 0.3),
    duplicateRate: fc.constantFrom(0, 0.1),
    order: fc.constantFrom("fifo" as const, "none" as const),
    options,
    /** The error of each clock's speed. If it is set, leaders use leases for reads, and nodes are not paused. */
    drifts: fc.option(fc.array(fc.constantFrom(-DRIFT, 0, DRIFT), { minLength: NODES, maxLength: NODES }), { freq: 1 }),
    deeds: fc.array(fc.record({ afterMs: fc.constantFrom(0, 5, 40, 150, 500), deed }), {
      minLength: 10,
      maxLength: 40,
      size: "max",
    }),
  });
type Adversity<O extends object> = ReturnType<typeof adversityOf<O>> extends fc.Arbitrary<infer A> ? A : never;

/** Checks reads. A read must return all entries that any node knew to be decided when the read was requested. */
class Reads {
  #told = 0;
  readonly #toldTo = new Map<NodeId, number>();
  readonly #least = new Map<number, number>();
  readonly stale: string[] = [];
  answered = 0;

  requested(read: number): void {
    this.#least.set(read, this.#told);
  }

  happened(node: NodeId, event: Log["event"]): void {
    if (event.type === "decided" || event.type === "installed") {
      this.#told = Math.max(this.#told, event.index);
      this.#toldTo.set(node, event.index);
    }
    if (event.type !== "readable") return;
    this.answered += 1;
    const least = this.#least.get(event.read) ?? 0;
    const index = this.#toldTo.get(node) ?? 0;
    if (index < least) this.stale.push(`read ${event.read} at node ${node}: expected ${least} or later, got ${index}`);
  }

  crashed(node: NodeId): void {
    this.#toldTo.delete(node);
  }
}

function staged<O extends object>(log: LogInAdversity<O>, given: Omit<Adversity<O>, "deeds">): Staged {
  const { seed, maxDelayMs, lossRate, duplicateRate, order, options, drifts } = given;
  const reads = new Reads();
  const sim = simulation<Log>({
    protocol: log.make(drifts === null ? options : { ...options, ...log.leasing(DRIFT) }),
    onEvent: (_at, node, event) => reads.happened(node, event),
    nodes: all,
    seed,
    delayMs: [0, maxDelayMs],
    link: { lossRate, duplicateRate, order },
    syncMs: 1,
  });
  for (const each of all) {
    sim.start(each);
    if (drifts !== null) sim.clockRate(each, 1 + (drifts[each] ?? 0));
  }
  return { sim, reads, pauses: drifts === null, delayMs: [0, maxDelayMs], decidedAt: log.decidedAt };
}

interface Staged {
  readonly sim: Simulation<Log>;
  readonly reads: Reads;
  readonly pauses: boolean;
  readonly delayMs: readonly [number, number];
  readonly decidedAt: (state: never) => number;
}

const sequences = new WeakMap<object, number>();
function nextSequence(sim: object): number {
  const next = (sequences.get(sim) ?? 0) + 1;
  sequences.set(sim, next);
  return next;
}

/** Applies an act if it is currently possible. */
function take(stage: Staged, paused: Set<NodeId>, each: Deed): void {
  const { sim, reads, pauses, delayMs } = stage;
  if (each.kind === "heal") return sim.heal();
  if (each.kind === "partition") return sim.partition([each.side]);
  const { node: at } = each;
  const isAlive = sim.world.alive.includes(at);
  switch (each.kind) {
    case "slow":
      return at === each.other ? undefined : sim.setLink(at, each.other, { delay: [delayMs[0], each.delayMs] });
    case "cut":
    case "mend":
      return at === each.other ? undefined : sim[each.kind](at, each.other);
    case "start":
      return isAlive ? undefined : sim.start(at);
    case "crash":
      paused.delete(at);
      reads.crashed(at);
      return isAlive ? sim.crash(at, { journal: "synced" }) : undefined;
    case "pause":
      if (isAlive && pauses && !paused.has(at)) sim.pause(at);
      return isAlive && pauses ? void paused.add(at) : undefined;
    case "resume":
      return paused.delete(at) ? sim.resume(at) : undefined;
    default: {
      if (!isAlive) return;
      const command = commandOf(stage, each);
      if (command.type === "read") reads.requested(command.read);
      sim.command(at, command);
    }
  }
}

function commandOf({ sim, decidedAt }: Staged, each: Asked): Log["command"] {
  switch (each.kind) {
    case "propose":
      return {
        type: "propose",
        command: { client: each.node, sequence: nextSequence(sim), operation: `say ${each.node}` },
      };
    case "compact": {
      const index = decidedAt(sim.world.state(each.node) as never);
      return { type: "compact", index, snapshot: snapshotOf(`all up to ${index} 🦊`, 5) };
    }
    case "read":
      return { type: "read", read: nextSequence(sim) };
    case "transfer":
      return { type: "transfer", to: each.to };
    case "reconfigure":
      return { type: "reconfigure", voters: each.voters, learners: all.filter((n) => !each.voters.includes(n)) };
  }
}

function go(stage: Staged, deeds: Adversity<object>["deeds"]): Set<NodeId> {
  const { sim } = stage;
  const paused = new Set<NodeId>();
  sim.run(sim.now + 700);
  for (const { afterMs, deed: each } of deeds) {
    sim.run(sim.now + afterMs);
    take(stage, paused, each);
  }
  sim.run(sim.now + 300);
  return paused;
}

/** Expects the journal to contain all state that a node needs, before and after compaction. */
function expectRestored({ sim, decidedAt }: Staged, durable: (state: never) => unknown): void {
  const known = (each: NodeId) => durable(sim.world.state(each) as never);
  for (const each of all)
    for (const isCompacted of [false, true]) {
      const index = decidedAt(sim.world.state(each) as never);
      if (isCompacted) sim.command(each, { type: "compact", index, snapshot: snapshotOf(`all up to ${index}`) });
      sim.run(sim.now + 20);
      const before = known(each);
      sim.crash(each, { journal: "synced" });
      sim.start(each);
      expect(known(each)).toEqual(before);
    }
  expect(sim.violations).toEqual([]);
}

/** Checks safety at every step. After the faults end, there must be a leader, and commands must be decided. */
export const safeThenLive = <O extends object>(log: LogInAdversity<O>, numRuns: number): void =>
  fc.assert(
    fc.property(adversityOf(log.options), (given) => {
      const stage = staged(log, given);
      const { sim, reads } = stage;
      const paused = go(stage, given.deeds);
      expect([sim.violations, reads.stale]).toEqual([[], []]);
      sim.heal();
      for (const each of all) {
        if (paused.has(each)) sim.resume(each);
        if (!sim.world.alive.includes(each)) sim.start(each);
        sim.clockRate(each, 1);
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
      expect(reads.stale).toEqual([]);
      expectRestored(stage, log.durable);
    }),
    { numRuns },
  );
