/** Explores every run of epoch-bully within bounds, with timeouts at any time. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type Exploration, explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import type { CommandOf, EventOf, NodeId, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { type Random, random } from "../../../core/random.ts";
import type { Delay } from "../../../sim/delay.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import { boundedEpochBully, type EpochBully, epochBully } from "./epoch-bully.ts";
import type { EpochBullyOptions } from "./vocabulary.ts";

const exploring = (words: Partial<SystemSpec>): Exploration<Vocabulary> =>
  reaching(
    explore(
      systemFor({
        protocol: "epoch-bully",
        variant: "bounded",
        nodes: [0, 1, 2],
        begin: "idle",
        property: "one leader per epoch",
        ...words,
      }),
    ),
    "elected",
  );

const deeds = ({ path }: Exploration<Vocabulary>): string[] =>
  path.map(({ move }) => {
    const said = move.kind === "receive" ? ` ${(move.message as Tagged).type} from ${move.from}` : "";
    const timer = move.kind === "timeout" ? ` ${move.timer}` : "";
    return `${move.node} ${move.kind}${said}${timer}`;
  });

/** Exploration includes the pre-vote, but no node calls a second time, and no second round follows. */
const { timeout, ...others } = epochBully();
const once = { ...others, timeout: { ...timeout, call: () => undefined, renew: () => undefined } };

describe("epoch-bully: every run", () => {
  const title = "at most one leader per epoch: %s";
  it.each<[string, Partial<SystemSpec>, number]>([
    ["two request votes for the same epoch", { initiators: [0, 2] }, 51_408],
    ["two candidates, one crashes", { initiators: [0, 2], crashes: 1 }, 76_782],
  ])(title, (_what, words, states) => {
    expect(exploring(words)).toMatchObject({ verdict: "holds", states });
  });

  it.each<[string, Partial<SystemSpec>, number]>([
    ["two candidates, a message is lost", { initiators: [0, 2], losses: 1 }, 187_288],
    [
      "one candidate, a node crashes and recovers, a message is lost",
      { initiators: [2], crashes: 1, recoveries: 1, losses: 1 },
      249_028,
    ],
    [
      "all are candidates as they start, a node crashes and recovers, a message is lost",
      { begin: "down", initiators: [], crashes: 1, recoveries: 1, losses: 1 },
      651_735,
    ],
  ])(title, { tags: ["long"] }, (_what, words, states) => {
    expect(exploring(words)).toMatchObject({ verdict: "holds", states });
  });

  it("epochs grow, although a node crashes and recovers", () => {
    const faults = { crashes: 1, recoveries: 1 };
    expect(exploring({ initiators: [2], ...faults, property: "epochs grow" })).toMatchObject({ verdict: "holds" });
  });

  it("epochs grow, although a node crashes and recovers and a message is lost", { tags: ["long"] }, () => {
    const faults = { crashes: 1, recoveries: 1, losses: 1 };
    expect(exploring({ initiators: [2], ...faults, property: "epochs grow" })).toMatchObject({ verdict: "holds" });
  });

  it("the whole protocol, including the pre-vote: the middle node calls, and so do higher ones", () => {
    const found = explore<EpochBully>({
      protocol: once,
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: (node) => (node === 1 ? [{ type: "call" }] : []),
      properties: once.properties.filter(({ name }) => name === "one leader per epoch"),
    });
    expect(found).toMatchObject({ verdict: "holds", states: 379_615 });
  });

  it("an epoch has two leaders if a node recovers without its journal: it has forgotten its vote", () => {
    const found = exploring({ initiators: [0, 2], crashes: 1, recoveries: 1, journal: "lost" });
    expect(found.verdict).toBe("violated");
    expect(deeds(found)).toEqual([
      "0 command",
      "1 receive requestVote from 0",
      "0 receive voteGranted from 1",
      "1 crash",
      "1 start",
      "2 receive requestVote from 1",
      "1 receive voteGranted from 2",
    ]);
  });

  it("an epoch has two leaders if less than a majority is required", () => {
    const protocol = epochBully({ preVote: false });
    const found = explore<EpochBully>({
      protocol: { ...protocol, init: (self, peers) => ({ ...protocol.init(self, peers), quorum: 1 }) },
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "never",
      begin: "idle",
      asks: () => [{ type: "call" }],
    });
    expect([found.verdict, found.property?.name, found.path.length]).toEqual(["violated", "one leader per epoch", 2]);
  });

  it("two nodes may lead at a time with arbitrary timers: a promise expires before the lease of the other leader", () => {
    const found = explore<EpochBully>({
      protocol: boundedEpochBully(),
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: (node) => (node === 1 ? [] : [{ type: "call" }]),
      properties: epochBully().properties.filter(({ name }) => name === "one leader at a time"),
    });
    expect([found.verdict, deeds(found as Exploration<Vocabulary>)]).toEqual([
      "violated",
      [
        "0 command",
        "2 receive requestVote from 0",
        "0 receive voteGranted from 2",
        "2 timeout bound",
        "2 command",
        "1 receive requestVote from 2",
        "2 receive voteGranted from 1",
      ],
    ]);
  });
});

// Measures how long epoch-bully has no leader, exactly and in virtual time. The docs page cites these numbers.

const all = [0, 1, 2, 3, 4];
const QUIET_MS = 3_000;
const PATIENCE_MS = 60_000;

interface Setting {
  delayMs: Delay;
  seeds: number;
  crashes: number;
  /** Delay from the election of the next leader until the crashed node restarts and the new leader crashes. */
  restartMs: readonly [number, number];
  crashMs: readonly [number, number];
}

const rested: Setting = {
  delayMs: [0.1, 2],
  seeds: 10,
  crashes: 100,
  restartMs: [300, 1_000],
  crashMs: [QUIET_MS, QUIET_MS + 500],
};
/** The next leader crashes immediately, when the previous one is about to recover. */
const hunted: Setting = { ...rested, crashMs: [20, 80] };

/** Milliseconds from each crash of a leader to the next election, ascending. */
function failovers({ delayMs, seeds, crashes, restartMs, crashMs }: Setting): number[] {
  const runs = Array.from({ length: seeds }, (_, seed) => run(seed, random(seed).stream("deeds")));
  return runs.flat().sort((a, b) => a - b);

  function run(seed: number, draw: Random): number[] {
    let epoch = 0;
    const onEvent = (_at: number, _node: number, event: { type: string; epoch: number }): void => {
      if (event.type === "elected") epoch = Math.max(epoch, event.epoch);
    };
    const sim = simulation<EpochBully>({ protocol: epochBully(), nodes: all, seed, delayMs, onEvent });
    const starts = new Map(all.map((node) => [node, draw.between(0, 300)]));
    const goOn = (untilMs: number, isDone = (): boolean => false): void => {
      while (!isDone() && sim.now < untilMs) {
        const [node, at] = [...starts].reduce((a, b) => (b[1] < a[1] ? b : a), [-1, untilMs] as [number, number]);
        if (sim.step(at)) continue;
        sim.run(at);
        if (starts.delete(node)) sim.start(node);
      }
    };
    const leading = (): number | undefined =>
      sim.world.alive.find((node) => sim.world.state(node).phase.is === "leading");
    goOn(QUIET_MS);
    return Array.from({ length: crashes }, () => {
      goOn(sim.now + PATIENCE_MS, () => leading() !== undefined);
      const from = sim.now;
      const last = epoch;
      const leader = leading() as number;
      sim.crash(leader);
      goOn(from + PATIENCE_MS, () => epoch > last);
      const tookMs = sim.now - from;
      starts.set(leader, sim.now + draw.between(...restartMs));
      goOn(sim.now + draw.between(...crashMs));
      expect(sim.violations).toEqual([]);
      return Math.round(tookMs);
    });
  }
}

/** Returns minimum, median, 99th percentile and maximum. */
const spread = (took: readonly number[]): (number | undefined)[] =>
  [0, 0.5, 0.99, 1].map((share) => took[Math.min(took.length - 1, Math.floor(took.length * share))]);

describe("epoch-bully: time without a leader after a crash, in milliseconds", () => {
  it("one crash at a time", () => {
    expect(spread(failovers(rested))).toEqual([418, 481, 545, 657]);
  });

  it("the next leader crashes when the previous one recovers", () => {
    expect(spread(failovers(hunted))).toEqual([427, 491, 686, 1_060]);
  });

  it("round trips take twice as long as a node initially waits for answers", () => {
    const slow = { ...rested, delayMs: [0, 120], seeds: 4, crashes: 25 } as const;
    expect(spread(failovers(slow))).toEqual([687, 857, 1_786, 1_786]);
  });

  it("no round trip is as short as a node's initial wait for answers", () => {
    const slower = { ...rested, delayMs: [40, 150], seeds: 4, crashes: 25 } as const;
    expect(spread(failovers(slower))).toEqual([803, 1_009, 2_250, 2_250]);
  });
});

// Epoch-bully under random network and node faults.

const NODES = 5;
const everyNode = Array.from({ length: NODES }, (_, node) => node);

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
    nodes: everyNode,
    seed,
    delayMs: [0, maxDelayMs],
    link: { lossRate, duplicateRate, order },
    syncMs: 1,
    onEvent: (_at, of, event) => heard.push({ node: of, event }),
  });
  for (const each of everyNode) sim.start(each);
  return { sim, heard };
}

/** Performs the action if it is possible. */
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

/** Returns all leaders of each epoch that any node was ever notified of. */
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
  it("never has two leaders in an epoch, and the epoch of a node never decreases", () => {
    fc.assert(
      fc.property(adversity, (given) => {
        const { sim, heard } = staged(given);
        go(sim, given.deeds);
        for (const [, leaders] of leadersByEpoch(heard)) expect(leaders.size).toBe(1);
        for (const each of everyNode) {
          const epochs = heard.filter(({ node: of }) => of === each).map(({ event }) => event);
          const elected = epochs.filter(({ type }) => type === "elected").map(({ epoch }) => epoch);
          expect(elected).toEqual(elected.toSorted((a, b) => a - b)); // A restarted node reports them again.
        }
        expect(
          sim.violations.map(({ property }) => property).filter((name) => name !== "one leader at a time"),
        ).toEqual([]);
      }),
      { numRuns },
    );
  });

  it("has one leader at a time under any delays if no node is paused", () => {
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

  it("all nodes follow one leader once faults cease: the highest, if it takes over", () => {
    fc.assert(
      fc.property(adversity, (given) => {
        const { sim } = staged(given);
        const paused = go(sim, given.deeds);
        sim.heal();
        for (const each of everyNode) {
          if (paused.has(each)) sim.resume(each);
          if (!sim.world.alive.includes(each)) sim.start(each);
          for (const other of everyNode) {
            if (each !== other) sim.setLink(each, other, { delay: [0, 20], lossRate: 0 });
          }
        }
        for (const each of everyNode) sim.command(each, { type: "stand" });
        sim.run(sim.now + 5_000);
        expect(failed(sim).filter((name) => name !== "one leader at a time")).toEqual([]);
      }),
      { numRuns },
    );
  });
}
