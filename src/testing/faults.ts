/**
 * Random faults, swarm-style: a seed draws first which kinds of faults there are in its run and how often they come, so that
 * some runs have many of one kind and none of another. A plan is drawn before anything happens: it depends on the seed alone.
 */
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";

/**
 * `crash`: the power of a machine fails, and what its disk had not synced may be lost. `kill`: its process ends, as by
 * `kill -9`. Both are started again later. `pause`: the process stands still. `partition`: two groups that do not hear each
 * other. `cut`: nothing gets from one machine to another. `slow`, `lossy`: a link in both directions. `slow-disk`: syncs take long. `full-disk`: nothing
 * more can be written, so that the member fails; once there is room, its process is started again.
 */
export const faultKinds = [
  "crash",
  "kill",
  "pause",
  "partition",
  "cut",
  "slow",
  "lossy",
  "slow-disk",
  "full-disk",
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface FaultOptions {
  /** Which kinds may be drawn. Default: all. */
  readonly kinds?: readonly FaultKind[];
  /** For how long faults begin. Then all is mended. Default 5,000. */
  readonly forMs?: number;
}

/** One fault: what it is, when it begins and for how long it lasts. */
export interface Fault {
  readonly kind: FaultKind;
  readonly at: number;
  readonly forMs: number;
  /** Which members it concerns: one side of a partition, the ends of a link, or one member. */
  readonly nodes: readonly NodeId[];
}

/** What clients suffer from: they stand still, or their links to members do not work. */
const ofClients: readonly FaultKind[] = ["pause", "partition", "cut", "slow", "lossy"];
/** What needs two members. */
const betweenTwo: readonly FaultKind[] = ["partition", "cut", "slow", "lossy"];

const DEFAULT_FOR_MS = 5_000;
/** Between two faults, on average, is something between these. */
const EVERY_MS = [150, 2_000] as const;
/** How long one lasts. */
const LASTS_MS = [10, 3_000] as const;

export function faultPlan(
  { kinds = faultKinds, forMs = DEFAULT_FOR_MS }: FaultOptions,
  nodes: readonly NodeId[],
  chance: Random,
): Fault[] {
  const possible = nodes.length > 1 ? kinds : kinds.filter((kind) => !betweenTwo.includes(kind));
  return plan(possible, forMs, chance, (kind) => nodesOf(kind, nodes, chance));
}

/** Of one client that begins at this time. */
export function clientFaultPlan(
  { kinds = faultKinds, forMs = DEFAULT_FOR_MS }: FaultOptions,
  { client, members, now }: { client: NodeId; members: readonly NodeId[]; now: number },
  chance: Random,
): Fault[] {
  const possible = kinds.filter((kind) => ofClients.includes(kind));
  return plan(possible, forMs - now, chance, (kind) => {
    if (!betweenTwo.includes(kind) || kind === "partition") return [client];
    const ends = [client, chance.pick(members)];
    return chance.below(2) === 0 ? ends : ends.reverse();
  });
}

function plan(
  possible: readonly FaultKind[],
  forMs: number,
  chance: Random,
  nodesFor: (kind: FaultKind) => readonly NodeId[],
): Fault[] {
  if (possible.length === 0) return [];
  const drawn = possible.filter(() => chance.below(2) === 0);
  const present = drawn.length === 0 ? [chance.pick(possible)] : drawn;
  const everyMs = spread(EVERY_MS, chance);
  const faults: Fault[] = [];
  for (let at = chance.between(0, everyMs); at < forMs; at += chance.between(0, 2 * everyMs)) {
    const kind = chance.pick(present);
    faults.push({ kind, at, forMs: spread(LASTS_MS, chance), nodes: nodesFor(kind) });
  }
  return faults;
}

/** Each order of magnitude is as likely as any other. */
function spread([least, most]: readonly [number, number], chance: Random): number {
  const doublings = Math.floor(Math.log2(most / least));
  return Math.min(most, least * 2 ** chance.below(doublings + 1) * chance.between(1, 2));
}

function nodesOf(kind: FaultKind, nodes: readonly NodeId[], chance: Random): readonly NodeId[] {
  const shuffled = [...nodes];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [shuffled[i], shuffled[j]] = [shuffled[j] as NodeId, shuffled[i] as NodeId];
  }
  if (kind === "partition")
    return shuffled.slice(0, 1 + chance.below(Math.max(1, nodes.length - 1))).sort((a, b) => a - b);
  return shuffled.slice(0, betweenTwo.includes(kind) ? 2 : 1);
}

export const textOf = ({ kind, forMs, nodes }: Fault): string =>
  `${kind} ${nodes.join(kind === "partition" ? ", " : " to ")} for ${forMs.toFixed(0)} ms`;
