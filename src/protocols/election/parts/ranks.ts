/** What elections compare: a rank that may be anything that orders (load, length of a log), and ids where ranks are equal. */
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, real, type Shape, struct } from "../../../core/shape.ts";
import { option } from "../../options.ts";

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
