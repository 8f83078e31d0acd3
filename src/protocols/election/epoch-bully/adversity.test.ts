/** Epoch-bully through whatever may happen to a network and its nodes, drawn at random. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CommandOf, EventOf, NodeId } from "../../../core/protocol.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import { type EpochBully, epochBully } from "./epoch-bully.ts";
import type { EpochBullyOptions } from "./vocabulary.ts";

const NODES = 5;
const all = Array.from({ length: NODES }, (_, node) => node);

type Deed =
  | { kind: "crash" | "start" | "pause" | "resume"; node: NodeId }
  | { kind: "call" | "resign" | "stand"; node: NodeId }
  | { kind: "suspect" | "restore"; node: NodeId; other: NodeId }
  | { kind: "cut" | "mend"; node: NodeId; other: NodeId }
  | { kind: "partition"; side: NodeId[] }
  | { kind: "heal" }
  | { kind: "rank"; node: NodeId; rank: number };

const node = fc.nat(NODES - 1);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("crash" as const, "start" as const, "start" as const), node }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("pause" as const, "resume" as const), node }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("call" as const, "resign" as const, "stand" as const), node }),
  },
  fc.record({ kind: fc.constantFrom("suspect" as const, "restore" as const), node, other: node }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("cut" as const, "mend" as const), node, other: node }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("partition" as const), side: fc.uniqueArray(node, { maxLength: 4 }) }),
  },
  fc.record({ kind: fc.constant("heal" as const) }),
  fc.record({ kind: fc.constant("rank" as const), node, rank: fc.integer({ min: 0, max: 9 }) }),
);

const adversity = fc.record({
  seed: fc.nat(),
  maxDelayMs: fc.constantFrom(2, 20, 120, 500),
  lossRate: fc.constantFrom(0, 0.05, 0.3),
  duplicateRate: fc.constantFrom(0, 0.1),
  order: fc.constantFrom("fifo" as const, "none" as const),
  takesOver: fc.boolean(),
  deeds: fc.array(fc.record({ afterMs: fc.constantFrom(0, 5, 40, 150, 500), deed }), { maxLength: 25 }),
});
type Adversity = typeof adversity extends fc.Arbitrary<infer A> ? A : never;

interface Heard {
  readonly node: NodeId;
  readonly event: EventOf<EpochBully>;
}

function staged(
  { seed, maxDelayMs, lossRate, duplicateRate, order, takesOver }: Omit<Adversity, "deeds">,
  options: Partial<EpochBullyOptions> = {},
): { sim: Simulation<EpochBully>; heard: Heard[] } {
  const heard: Heard[] = [];
  const sim = simulation<EpochBully>({
    protocol: epochBully({ takesOver, ...options }),
    nodes: all,
    seed,
    delayMs: [0, maxDelayMs],
    link: { lossRate, duplicateRate, order },
    syncMs: 1,
    onEvent: (_at, of, event) => heard.push({ node: of, event }),
  });
  for (const each of all) sim.start(each);
  return { sim, heard };
}

/** Does it, if it can be done. */
function take(sim: Simulation<EpochBully>, paused: Set<NodeId>, each: Deed): void {
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
      if (isAlive) sim.command(at, commandOf(each));
  }
}

function commandOf(each: Extract<Deed, { kind: CommandOf<EpochBully>["type"] }>): CommandOf<EpochBully> {
  switch (each.kind) {
    case "suspect":
    case "restore":
      return { type: each.kind, node: each.other };
    case "rank":
      return { type: "rank", rank: each.rank };
    default:
      return { type: each.kind };
  }
}

function go(sim: Simulation<EpochBully>, deeds: Adversity["deeds"]): Set<NodeId> {
  const paused = new Set<NodeId>();
  for (const { afterMs, deed: each } of deeds) {
    sim.run(sim.now + afterMs);
    take(sim, paused, each);
  }
  sim.run(sim.now + 300);
  return paused;
}

/** Whom anybody has ever been told of as the leader of each epoch. */
function leadersByEpoch(heard: readonly Heard[]): Map<number, Set<NodeId>> {
  const leaders = new Map<number, Set<NodeId>>();
  for (const { event } of heard)
    if (event.type === "elected")
      leaders.set(event.epoch, (leaders.get(event.epoch) ?? new Set<NodeId>()).add(event.leader));
  return leaders;
}

const failed = (sim: Simulation<EpochBully>): string[] => sim.verdict().map(({ property }) => property);

describe("epoch-bully in adversity", () => underAdversity(120));
describe("epoch-bully in adversity: longer", { tags: ["larger"] }, () => underAdversity(1_200));

function underAdversity(numRuns: number): void {
  it("never has two leaders in an epoch, and nobody's epoch goes back", () => {
    fc.assert(
      fc.property(adversity, (given) => {
        const { sim, heard } = staged(given);
        go(sim, given.deeds);
        for (const [, leaders] of leadersByEpoch(heard)) expect(leaders.size).toBe(1);
        for (const each of all) {
          const epochs = heard.filter(({ node: of }) => of === each).map(({ event }) => event);
          const elected = epochs.filter(({ type }) => type === "elected").map(({ epoch }) => epoch);
          expect(elected).toEqual(elected.toSorted((a, b) => a - b)); // Again after a restart.
        }
        expect(
          sim.violations.map(({ property }) => property).filter((name) => name !== "one leader at a time"),
        ).toEqual([]);
      }),
      { numRuns },
    );
  });

  it("has one leader at a time, whatever the delays, if nobody is paused", () => {
    fc.assert(
      fc.property(
        adversity,
        fc.array(fc.constantFrom(0.95, 1, 1.05), { minLength: NODES, maxLength: NODES }),
        (given, rates) => {
          const { sim } = staged(given);
          for (const [each, rate] of rates.entries()) sim.clockRate(each, rate);
          go(
            sim,
            given.deeds.filter(({ deed: { kind } }) => kind !== "pause"),
          );
          expect(sim.violations).toEqual([]);
        },
      ),
      { numRuns },
    );
  });

  it("has one leader whom all follow once faults cease: the highest, if it takes over", () => {
    fc.assert(
      fc.property(adversity, (given) => {
        const { sim } = staged(given);
        const paused = go(sim, given.deeds);
        sim.heal();
        for (const each of all) {
          if (paused.has(each)) sim.resume(each);
          if (!sim.world.alive.includes(each)) sim.start(each);
          for (const other of all) {
            if (each !== other) sim.setLink(each, other, { delay: [0, 20], lossRate: 0 });
          }
        }
        for (const each of all) sim.command(each, { type: "stand" });
        sim.run(sim.now + 5_000);
        expect(failed(sim).filter((name) => name !== "one leader at a time")).toEqual([]);
      }),
      { numRuns },
    );
  });
}
