/** How long duelling proposers of Paxos take until one of them has a whole attempt for itself. */
import type { NodeId } from "../../src/core/protocol.ts";
import { type PaxosOptions, paxos } from "../../src/protocols/consensus/paxos/paxos.ts";
import { simulation } from "../../src/sim/simulation.ts";

export interface Setting {
  readonly name: string;
  readonly options: Partial<PaxosOptions>;
  /** Of a message, in milliseconds. */
  readonly delayMs: number | readonly [number, number];
  readonly seeds: number;
}

/** All of these nodes propose at once. */
export const NODES = 5;
export const SEEDS = 10_000;
/** In virtual time. Whoever has not decided by then counts as undecided. */
export const UNTIL_MS = 10_000;
const jitter = [1, 40] as const;

export const settings: readonly Setting[] = [
  { name: "back-off of 10 to 200 ms", options: {}, delayMs: jitter, seeds: SEEDS },
  { name: "back-off of 1 to 20 ms", options: { minBackOffMs: 1, maxBackOffMs: 20 }, delayMs: jitter, seeds: 1_000 },
  { name: "none", options: { backsOff: false }, delayMs: jitter, seeds: 200 },
  { name: "none, in lockstep", options: { backsOff: false }, delayMs: 20, seeds: 1 },
];

export interface Figures {
  readonly name: string;
  /** When the first node decided, one for each seed, ascending; null: it was undecided in the end. */
  readonly decidedAt: readonly (number | null)[];
  /** How many rounds the longest of these runs went through. */
  readonly mostRounds: number;
}

export function measured({ name, options, delayMs, seeds }: Setting): Figures {
  const runs = Array.from({ length: seeds }, (_, i) => duel(options, delayMs, i + 1));
  const time = ({ at }: Run): number => at ?? Number.POSITIVE_INFINITY;
  return {
    name,
    decidedAt: runs.toSorted((a, b) => time(a) - time(b)).map(({ at }) => at),
    mostRounds: Math.max(...runs.map(({ rounds }) => rounds)),
  };
}

interface Run {
  readonly at: number | null;
  readonly rounds: number;
}

function duel(options: Partial<PaxosOptions>, delayMs: Setting["delayMs"], seed: number): Run {
  let at: number | null = null;
  const nodes: NodeId[] = Array.from({ length: NODES }, (_, node) => node);
  const sim = simulation({
    protocol: { ...paxos(options), properties: [] },
    nodes,
    seed,
    delayMs,
    onEvent(now) {
      at ??= now;
    },
  });
  for (const node of nodes) sim.wake(node);
  for (const node of nodes) sim.command(node, { type: "propose", value: `from ${node}` });
  while (at === null && sim.step(UNTIL_MS));
  return { at, rounds: Math.max(...nodes.map((node) => sim.world.state(node).round)) };
}

/** When so large a share of the runs had decided; null: not in the end. */
export const quantile = ({ decidedAt }: Figures, share: number): number | null =>
  decidedAt[Math.min(decidedAt.length - 1, Math.ceil(share * decidedAt.length) - 1)] ?? null;
