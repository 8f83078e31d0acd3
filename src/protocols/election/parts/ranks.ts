/**
 * Ranks and ring orders for elections. A rank is any number that orders nodes, such as load or log length. Ties are
 * broken by id.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, real, type Shape, struct } from "../../../core/shape.ts";
import { nodeIds, option } from "../../options.ts";

/** A node with its rank. */
export interface Ranked {
  node: NodeId;
  rank: number;
}

export const rankedShape = struct<Ranked>({ node: natural, rank: real });

const ranksShape: Shape<readonly Ranked[]> = list(rankedShape, 1_000);
/** The `ranks` option, which several algorithms share. */
export const ranksOption = option(
  ranksShape,
  [],
  "the ranks of nodes whose rank differs from their id; ties are broken by id",
);

/** Whether node `a` ranks higher than `b`. Ties are broken by id. */
export const outranks = (a: Ranked, b: Ranked): boolean => a.rank > b.rank || (a.rank === b.rank && a.node > b.node);

/** Returns the highest-ranking node. Null if the list is empty. */
export const highestOf = (all: readonly Ranked[]): Ranked | null =>
  all.reduce<Ranked | null>((top, each) => (top === null || outranks(each, top) ? each : top), null);

/** Returns a function that gives each node's initial rank. The default is its id. */
export function settledRank(ranks: readonly Ranked[]): (node: NodeId) => number {
  const settled = new Map(ranks.map(({ node, rank }) => [node, rank]));
  return (node) => settled.get(node) ?? node;
}

/** The rank of a resigned node. It leads only if all nodes have resigned. */
const RESIGNED = -Number.MAX_VALUE;

/** Returns a node's rank in the next election. */
export const standingRank = ({ rank, resigned }: { rank: number; resigned: boolean }): number =>
  resigned ? RESIGNED : rank;

/** Whether the node resigned, or withdrew its resignation, after the current or latest election began. */
export const hasChangedSides = ({ stoodWith, resigned }: { stoodWith: number; resigned: boolean }): boolean =>
  (stoodWith === RESIGNED) !== resigned;

// Ring order: the order of the nodes on a ring, as given by an option, or in ascending order of id.

/** The `ring` option, which several algorithms share. */
export const ringOption = option(
  nodeIds(1_000_000),
  [],
  "every node once, clockwise; if empty, in ascending order of id",
);

/** Returns the neighbor `steps` steps away, clockwise. `steps` is between 1 and the number of peers. */
type Neighbour = (self: NodeId, peers: readonly NodeId[], steps: number) => NodeId;

/** Returns a function that finds neighbors. It throws a UsageError if the ring does not list every node once. */
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
