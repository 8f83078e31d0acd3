/** Helpers for tests of elections: a simulated network with a log of its events, explorations, and rings. */
import { type Exploration, type ExploreOptions, explore } from "../../src/check/explore.ts";
import type { NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { reaching } from "./reached.ts";
import { range } from "./sizes.ts";

/** For message delays of 10 ms: T = 2·10 + 5 = 25 ms. */
export const bounds = { maxDelayMs: 10, processMs: 5 };

export interface ElectionSetting {
  /** The number of nodes, with ids from 0, or the ids themselves. */
  readonly nodes: number | readonly NodeId[];
  readonly crashed?: readonly NodeId[];
  readonly delayMs?: number | readonly [number, number];
  readonly seed?: number;
}

export interface ElectionStage<V extends Vocabulary> {
  readonly sim: Simulation<V>;
  readonly story: string[];
  /** The recorded story as the text of a file. */
  told(): string;
  /** The leader that each live node knows. */
  leaders(): Record<NodeId, NodeId | null>;
}

/** Starts idle nodes, some of which may have crashed. */
export function electionStage<V extends Vocabulary>(
  protocol: Protocol<V>,
  { nodes: given, crashed = [], delayMs = 10, seed = 1 }: ElectionSetting,
): ElectionStage<V> {
  const story: string[] = [];
  const nodes = typeof given === "number" ? range(0, given - 1) : given;
  const sim = simulation<V>({ protocol, nodes, seed, delayMs, trace: (entry) => story.push(logLine(entry)) });
  for (const node of nodes) if (!crashed.includes(node)) sim.wake(node);
  story.length = 0;
  const leaderOf = (node: NodeId) => protocol.view(sim.world.state(node), node).leader ?? null;
  return {
    sim,
    story,
    told: () => `${story.join("\n")}\n`,
    leaders: () => Object.fromEntries(sim.world.alive.map((node) => [node, leaderOf(node)])),
  };
}

/** Explores every run in which each node calls an election once, at any time. */
export const everyElection = <V extends Vocabulary>(
  protocol: Protocol<V>,
  nodes: readonly NodeId[],
  options: Partial<ExploreOptions<V>> = {},
): Exploration<V> =>
  reaching(
    explore<V>({
      protocol,
      nodes: nodes.toSorted((a, b) => a - b),
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: () => [{ type: "call" }] as never,
      ...options,
    }),
    "elected",
  );

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

/** Returns every ring of N nodes. Rotations of a ring are equal, so the highest id comes first. */
export const rings = (nodes: number): number[][] =>
  permutations(range(0, nodes - 2)).map((rest) => [nodes - 1, ...rest]);
