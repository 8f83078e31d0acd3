/**
 * Random faults in the style of swarm testing. A seed first determines which kinds of faults a run has and how frequent
 * they are, so that some runs have many of one kind and none of another. The plan is drawn before the run begins and
 * depends only on the seed.
 */
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";

/**
 * `crash`: a machine loses power, and data that its disk has not synced may be lost. `kill`: its process is killed, as
 * with `kill -9`. Both restart later. `pause`: the process is paused. `partition`: two groups cannot reach each other.
 * `cut`: no messages get through in one direction between two machines. `slow`, `lossy`: a link is slow or loses
 * packets in both directions. `slow-disk`: syncs take long. `full-disk`: writes fail, and so does the member; its
 * process restarts once there is space.
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
/** A kind of random fault. */
export type FaultKind = (typeof faultKinds)[number];

/** Which random faults occur, and for how long they can begin. */
export interface FaultOptions {
  /** The kinds that can occur. Default: all. */
  readonly kinds?: readonly FaultKind[];
  /** How long faults can begin, in milliseconds. After this time, all faults end. Default: 5,000. */
  readonly forMs?: number;
}

/** One fault: its kind, when it begins, and how long it lasts. */
export interface Fault {
  /** The kind of fault. */
  readonly kind: FaultKind;
  /** When the fault begins, in milliseconds of virtual time. */
  readonly at: number;
  /** How long the fault lasts, in milliseconds. */
  readonly forMs: number;
  /** The machines that the fault affects: one side of a partition, both ends of a link, or a single machine. */
  readonly nodes: readonly NodeId[];
}

/** The faults that can affect clients: pauses, and faults on their links to members. */
const ofClients: readonly FaultKind[] = ["pause", "partition", "cut", "slow", "lossy"];
/** The faults that need two members. */
const betweenTwo: readonly FaultKind[] = ["partition", "cut", "slow", "lossy"];

const DEFAULT_FOR_MS = 5_000;
/** The range of the average time between two faults. */
const EVERY_MS = [150, 2_000] as const;
/** The range of a fault's duration. */
const LASTS_MS = [10, 3_000] as const;

/** Draws the plan for the members. */
export function faultPlan(
  { kinds = faultKinds, forMs = DEFAULT_FOR_MS }: FaultOptions,
  nodes: readonly NodeId[],
  chance: Random,
): Fault[] {
  const possible = nodes.length > 1 ? kinds : kinds.filter((kind) => !betweenTwo.includes(kind));
  return plan(possible, forMs, chance, (kind) => nodesOf(kind, nodes, chance));
}

/** Returns the plan for a client that connects at `now`. */
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

/** Draws a number from a range, with all orders of magnitude equally likely. */
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

/** Describes a fault for a world's log. */
export const textOf = ({ kind, forMs, nodes }: Fault): string =>
  `${kind} ${nodes.join(kind === "partition" ? ", " : " to ")} for ${forMs.toFixed(0)} ms`;
