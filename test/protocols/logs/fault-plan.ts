/**
 * The faults of one run of a replicated log. They are drawn from its seed before the run: first the kinds, then their
 * rates. As a result, some runs have many faults of one kind and none of the others.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Random } from "../../../src/core/random.ts";
import type { CrashFate, PartitionShape } from "../../../src/sim/index.ts";

/**
 * With `crash`, a machine loses power and its disk loses unsynced writes. With `kill`, its process ends but the journal
 * survives. Both may interrupt a step. With `blackout`, all machines lose power at once. `members` and `transfer` are
 * requests of an operator, not faults.
 */
const kinds = [
  "crash",
  "kill",
  "blackout",
  "pause",
  "groups",
  "shape",
  "cut",
  "one-way",
  "bad-link",
  "clock",
  "members",
  "transfer",
] as const;
export type FaultKind = (typeof kinds)[number];

export type Fault = { readonly at: number; readonly forMs: number } & (
  | { readonly kind: "crash"; readonly node: NodeId; readonly fate: CrashFate; readonly withinStep: boolean }
  | { readonly kind: "blackout"; readonly fate: CrashFate }
  | { readonly kind: "pause"; readonly node: NodeId }
  | { readonly kind: "groups"; readonly groups: readonly (readonly NodeId[])[] }
  | { readonly kind: "shape"; readonly shape: PartitionShape }
  | { readonly kind: "cut"; readonly links: readonly (readonly [from: NodeId, to: NodeId])[] }
  | { readonly kind: "bad-link"; readonly from: NodeId; readonly to: NodeId; readonly model: BadLink }
  | { readonly kind: "clock"; readonly node: NodeId; readonly rate: number }
  | { readonly kind: "members"; readonly voters: readonly NodeId[]; readonly learners: readonly NodeId[] }
  | { readonly kind: "transfer"; readonly to: NodeId }
);

interface BadLink {
  readonly delay: readonly [number, number];
  readonly lossRate: number;
  readonly duplicateRate: number;
}

export interface FaultsWanted {
  readonly nodes: readonly NodeId[];
  readonly forMs: number;
  /** The commands that the log accepts. */
  readonly hasMembers: boolean;
  readonly hasTransfer: boolean;
  readonly hasPauses: boolean;
  /** The range of clock speeds. */
  readonly clocks: readonly [least: number, most: number];
}

/** The range of the average time between two faults. */
const EVERY_MS = [80, 1_000] as const;
/** The duration of a fault. */
const LASTS_MS = [10, 2_000] as const;

export function faultPlan(wanted: FaultsWanted, chance: Random): Fault[] {
  const { hasMembers, hasTransfer, hasPauses } = wanted;
  const has: Partial<Record<FaultKind, boolean>> = { members: hasMembers, transfer: hasTransfer, pause: hasPauses };
  const possible = kinds.filter((kind) => has[kind] ?? true);
  const drawn = possible.filter(() => chance.below(2) === 0);
  const present = drawn.length === 0 ? [chance.pick(possible)] : drawn;
  const everyMs = spread(EVERY_MS, chance);
  const plan: Fault[] = [];
  for (let at = chance.between(0, everyMs); at < wanted.forMs; at += chance.between(0, 2 * everyMs))
    plan.push({ at, forMs: spread(LASTS_MS, chance), ...fault(chance.pick(present), wanted, chance) } as Fault);
  return plan;
}

/** Draws a number such that each order of magnitude is equally likely. */
function spread([least, most]: readonly [number, number], chance: Random): number {
  return least * (most / least) ** chance.between(0, 1);
}

function fault(kind: FaultKind, { nodes, clocks }: FaultsWanted, chance: Random): object {
  const [one, two, ...rest] = shuffled(nodes, chance) as [NodeId, NodeId, ...NodeId[]];
  const all = [one, two, ...rest];
  switch (kind) {
    case "crash":
    case "kill": {
      const fate = { journal: kind === "crash" ? "synced" : "kept" };
      return { kind: "crash", node: one, fate, withinStep: chance.below(2) === 0 };
    }
    case "blackout":
      return { kind, fate: { journal: "synced" } };
    case "pause":
      return { kind, node: one };
    case "groups": {
      const first = 1 + chance.below(all.length - 1);
      const second = first + chance.below(all.length - first);
      return { kind, groups: [all.slice(0, first), all.slice(first, second)] };
    }
    case "shape":
      return { kind, shape: shape(all, chance) };
    case "cut":
      return {
        kind,
        links: [
          [one, two],
          [two, one],
        ],
      };
    case "one-way":
      return { kind: "cut", links: [[one, two]] };
    case "bad-link":
      return { kind, from: one, to: two, model: badLink(chance) };
    case "clock":
      return { kind, node: one, rate: spread(clocks, chance) };
    case "members": {
      const voters = 2 + chance.below(all.length - 1);
      const learners = voters + chance.below(all.length - voters + 1);
      return { kind, voters: ascending(all.slice(0, voters)), learners: ascending(all.slice(voters, learners)) };
    }
    case "transfer":
      return { kind, to: one };
  }
}

function shape(all: readonly NodeId[], chance: Random): PartitionShape {
  const shapes = ["bridge", "one-way", ...(all.length > 3 ? ["majority-ring"] : [])] as const;
  const drawn = chance.pick(shapes);
  if (drawn === "bridge") return { shape: "bridge", bridge: all[0] as NodeId };
  if (drawn === "majority-ring") return { shape: "majority-ring" };
  const first = 1 + chance.below(all.length - 1);
  return { shape: "one-way", from: all.slice(0, first), to: all.slice(first) };
}

function badLink(chance: Random): BadLink {
  const least = spread([1, 300], chance);
  return {
    delay: [least, least * chance.between(1, 3)],
    lossRate: chance.pick([0, 0.1, 0.5]),
    duplicateRate: chance.pick([0, 0.5]),
  };
}

const ascending = (nodes: readonly NodeId[]): NodeId[] => [...nodes].sort((a, b) => a - b);

function shuffled(nodes: readonly NodeId[], chance: Random): NodeId[] {
  const all = [...nodes];
  for (let i = all.length - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [all[i], all[j]] = [all[j] as NodeId, all[i] as NodeId];
  }
  return all;
}
