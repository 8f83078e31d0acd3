/** What elections compare: a rank that may be anything that orders (load, length of a log), and ids where ranks are equal. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, real, type Shape, struct } from "../../../core/shape.ts";
import { nodeIds, option } from "../../options.ts";

export interface Ranked {
  node: NodeId;
  rank: number;
}

export const rankedShape = struct<Ranked>({ node: natural, rank: real });

const ranksShape: Shape<readonly Ranked[]> = list(rankedShape, 1_000);
export const ranksOption = option(
  ranksShape,
  [],
  "the rank of each node whose rank is not its id; ties are broken by id",
);

export const outranks = (a: Ranked, b: Ranked): boolean => a.rank > b.rank || (a.rank === b.rank && a.node > b.node);

/** Null of nobody. */
export const highestOf = (all: readonly Ranked[]): Ranked | null =>
  all.reduce<Ranked | null>((top, each) => (top === null || outranks(each, top) ? each : top), null);

/** The rank that a node has as long as nobody has told it another. */
export function settledRank(ranks: readonly Ranked[]): (node: NodeId) => number {
  const settled = new Map(ranks.map(({ node, rank }) => [node, rank]));
  return (node) => settled.get(node) ?? node;
}

/** With it a node takes part that has resigned: it leads only if everybody has. */
const RESIGNED = -Number.MAX_VALUE;

/** The rank with which a node takes part in the next election. */
export const standingRank = ({ rank, resigned }: { rank: number; resigned: boolean }): number =>
  resigned ? RESIGNED : rank;

/** Whether it resigned, or took that back, after the election under way or the last had begun. */
export const hasChangedSides = ({ stoodWith, resigned }: { stoodWith: number; resigned: boolean }): boolean =>
  (stoodWith === RESIGNED) !== resigned;

// The order in which nodes stand on a ring: as an option names it, or ascending by id.

export const ringOption = option(nodeIds(1_000_000), [], "every node once, clockwise; empty: ascending by id");

/** The neighbour at so many steps clockwise, of 1 to as many as there are peers. */
type Neighbour = (self: NodeId, peers: readonly NodeId[], steps: number) => NodeId;

/** @throws UsageError, by what it returns, for a ring that does not have every node once. */
export function ringOrder(option: string, ring: readonly NodeId[]): Neighbour {
  const places = new Map(ring.map((node, place) => [node, place]));
  return (self, peers, steps) => {
    if (peers.length === 0) return self;
    if (ring.length === 0) {
      const above = peers.findIndex((peer) => peer > self);
      return peers[(Math.max(above, 0) + steps - 1) % peers.length] as NodeId;
    }
    const place = places.get(self);
    if (place === undefined || places.size !== peers.length + 1 || places.size !== ring.length)
      throw new UsageError("bad-option", unexpected(option, "every node once", ring));
    return ring[(place + steps) % ring.length] as NodeId;
  };
}
