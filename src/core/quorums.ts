/** Quorums: sets of nodes of which any two meet, so that what one has seen another can learn. */
import { UsageError, unexpected } from "./errors.ts";

/** The least number of nodes of which any two sets meet. */
export const majority = (nodes: number): number => Math.floor(requireNodes(nodes) / 2) + 1;

/** How many arbitrary (Byzantine) faults N nodes stand: f with N ≥ 3f + 1. */
export const toleratedByzantine = (nodes: number): number => Math.floor((requireNodes(nodes) - 1) / 3);

/** The least number of nodes of which any two sets meet in a correct node: ⌈(N + f + 1) / 2⌉, 2f + 1 where N = 3f + 1. */
export const byzantineQuorum = (nodes: number): number => Math.ceil((nodes + toleratedByzantine(nodes) + 1) / 2);

function requireNodes(nodes: number): number {
  if (!Number.isSafeInteger(nodes) || nodes < 1)
    throw new UsageError("bad-quorum", unexpected("the number of nodes", "a whole number > 0", nodes));
  return nodes;
}
