/** Quorums: sets of nodes such that any two of them intersect, so that information stored at one quorum is found at any other. */
import { UsageError, unexpected } from "./errors.ts";

/** The size of the smallest set of nodes such that any two sets of this size intersect. */
export const majority = (nodes: number): number => Math.floor(requireNodes(nodes) / 2) + 1;

/** The number of Byzantine faults that N nodes tolerate: the largest f with N ≥ 3f + 1. */
export const toleratedByzantine = (nodes: number): number => Math.floor((requireNodes(nodes) - 1) / 3);

/** The least size such that any two sets of nodes intersect in a correct node: ⌈(N + f + 1) / 2⌉, or 2f + 1 if N = 3f + 1. */
export const byzantineQuorum = (nodes: number): number => Math.ceil((nodes + toleratedByzantine(nodes) + 1) / 2);

function requireNodes(nodes: number): number {
  if (!Number.isSafeInteger(nodes) || nodes < 1)
    throw new UsageError("bad-quorum", unexpected("the number of nodes", "a whole number > 0", nodes));
  return nodes;
}
