/**
 * Links that break in part: how long a replicated log decides nothing, and how often another node begins to lead.
 * Ng, Haridi & Carbone, "Omni-Paxos: Breaking the Barriers of Partial Connectivity", EuroSys 2023, §2 and §7.
 */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import type { ReplicatedLog } from "../../src/protocols/consensus/family/replicated-log.ts";
import { multiPaxos } from "../../src/protocols/consensus/multi-paxos/multi-paxos.ts";
import { raft } from "../../src/protocols/consensus/raft/raft.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";

export interface Setting {
  readonly name: string;
  readonly make: () => Protocol<ReplicatedLog>;
}

export const settings: readonly Setting[] = [
  { name: "raft", make: () => raft() as never },
  { name: "raft without check-quorum", make: () => raft({ checkQuorum: false }) as never },
  {
    name: "raft without pre-vote and check-quorum",
    make: () => raft({ preVote: false, checkQuorum: false }) as never,
  },
  { name: "multi-paxos", make: () => multiPaxos() as never },
];

export interface Breakage {
  readonly name: string;
  readonly nodes: number;
  /** @param others all but the leader. */
  breaks(stage: Stage, leader: NodeId, others: readonly NodeId[]): void;
}

/** One run, with a command at every node now and then. */
interface Stage {
  readonly sim: Simulation<ReplicatedLog>;
  propose(node: NodeId): void;
}

/** No two of these have a link, but each has one to the hub. */
function leaveOnly(hub: NodeId, { sim }: Stage, all: readonly NodeId[]): void {
  for (const a of all) for (const b of all) if (a !== b && a !== hub && b !== hub) sim.cut(a, b);
}

function cutOff({ sim }: Stage, a: NodeId, b: NodeId): void {
  sim.cut(a, b);
  sim.cut(b, a);
}

/** How long until those that are to have an entry have it. */
const SETTLES_MS = 30;

export const breakages: readonly Breakage[] = [
  {
    name: "quorum loss",
    nodes: 5,
    breaks: (stage, leader, others) => leaveOnly(others.at(-1) as NodeId, stage, [leader, ...others]),
  },
  {
    name: "constrained election",
    nodes: 5,
    breaks(stage, leader, others) {
      const [behind, hub] = others.slice(-2) as [NodeId, NodeId];
      for (const node of [behind, hub]) stage.sim.cut(leader, node);
      stage.propose(leader);
      stage.sim.run(stage.sim.now + SETTLES_MS);
      leaveOnly(hub, stage, [leader, ...others]);
      cutOff(stage, leader, hub);
    },
  },
  { name: "chained", nodes: 3, breaks: (stage, leader, others) => cutOff(stage, leader, others.at(-1) as NodeId) },
];

export interface Row {
  readonly setting: string;
  readonly breakage: string;
  readonly seeds: number;
  /** In how many of them commands were decided again in the end, though no link was mended. */
  readonly recovered: number;
  /** The longest time in which nothing was decided that was asked for after the links broke; null: until the end. */
  readonly medianMs: number | null;
  readonly worstMs: number | null;
  /** How often a node began to lead, in the middle, in all of the time. */
  readonly leaders: number;
}

export const SEEDS = 20;
/** So long one looks on after the links broke. */
export const FOR_MS = 10_000;
const DELAY_MS = [1, 5] as const;
const LED_WITHIN_MS = 2_000;
/** Where nothing was decided in the last so many, nothing is any more. */
const TAIL_MS = 2_000;
const ASKS_EVERY_MS = 20;

const middle = (ascending: readonly number[]): number => ascending[ascending.length >> 1] as number;
const ascending = (times: readonly number[]): number[] => times.toSorted((a, b) => a - b);

export function measured(setting: Setting, breakage: Breakage, seeds = SEEDS): Row {
  const runs = Array.from({ length: seeds }, (_, i) => run(setting, breakage, i + 1));
  const downMs = ascending(runs.map(({ longestMs }) => longestMs));
  const within = (ms: number): number | null => (ms === Number.POSITIVE_INFINITY ? null : ms);
  return {
    setting: setting.name,
    breakage: breakage.name,
    seeds,
    recovered: downMs.filter(Number.isFinite).length,
    medianMs: within(middle(downMs)),
    worstMs: within(downMs.at(-1) as number),
    leaders: middle(ascending(runs.map(({ leaders }) => leaders))),
  };
}

interface Run {
  /** Without a decision. */
  readonly longestMs: number;
  readonly leaders: number;
}

const AFTER = "after";

function run({ make }: Setting, breakage: Breakage, seed: number): Run {
  const all: NodeId[] = Array.from({ length: breakage.nodes }, (_, node) => node);
  let leader: NodeId | null = null;
  let brokenAt = Number.POSITIVE_INFINITY;
  let decidedAt = 0;
  let longestMs = 0;
  let leaders = 0;
  const sim = simulation<ReplicatedLog>({
    protocol: { ...make(), properties: [] },
    nodes: all,
    seed,
    delayMs: DELAY_MS,
    onEvent(at, node, event) {
      if (event.type === "led" && event.leader === node) {
        leader = node;
        if (at > brokenAt) leaders += 1;
      }
      if (event.type !== "decided" || event.command.operation !== AFTER) return;
      longestMs = Math.max(at - decidedAt, longestMs);
      decidedAt = at;
    },
  });
  let sequence = 0;
  const propose = (node: NodeId): void => {
    sequence += 1;
    const operation = sim.now < brokenAt ? "before" : AFTER;
    sim.command(node, { type: "propose", command: { client: node, sequence, operation } });
  };
  const untilAsking = (endMs: number): void => {
    while (sim.now < endMs) {
      for (const node of all) propose(node);
      sim.run(Math.min(endMs, sim.now + ASKS_EVERY_MS));
    }
  };
  for (const node of all) sim.start(node);
  untilAsking(LED_WITHIN_MS);
  if (leader === null) throw new Error(`expected a leader within ${LED_WITHIN_MS} ms`);
  const led: NodeId = leader;
  const others = all.filter((node) => node !== led);
  breakage.breaks({ sim, propose }, led, others);
  brokenAt = sim.now;
  decidedAt = brokenAt;
  untilAsking(brokenAt + FOR_MS);
  return { longestMs: sim.now - decidedAt > TAIL_MS ? Number.POSITIVE_INFINITY : longestMs, leaders };
}
