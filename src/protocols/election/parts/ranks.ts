/** What elections compare: a rank that may be anything that orders (load, length of a log), and ids where ranks are equal. */
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, real, struct } from "../../../core/shape.ts";

export interface Ranked {
  node: NodeId;
  rank: number;
}

export const rankedShape = struct<Ranked>({ node: natural, rank: real });

/** The option `ranks`: the rank of each node that has another than its id. */
export const ranksShape = list(rankedShape, 1_000);

export const outranks = (a: Ranked, b: Ranked): boolean => a.rank > b.rank || (a.rank === b.rank && a.node > b.node);

/** Null of nobody. */
export const highestOf = (all: readonly Ranked[]): Ranked | null =>
  all.reduce<Ranked | null>((top, each) => (top === null || outranks(each, top) ? each : top), null);

/** The rank that a node has as long as nobody has told it another. */
export function settledRank(ranks: readonly Ranked[]): (node: NodeId) => number {
  const settled = new Map(ranks.map(({ node, rank }) => [node, rank]));
  return (node) => settled.get(node) ?? node;
}
