/**
 * Quorums are sets of nodes chosen so that any two of them intersect. Information stored at one quorum can therefore be
 * found at any other.
 */
import { UsageError, unexpected } from "./errors.ts";

/** The maximum number of members in a `join()` cluster, including learners. */
export const MAX_LISTED = 64;

/** Returns the smallest quorum size that makes any two quorums intersect. */
export const majority = (nodes: number): number => Math.floor(requireNodes(nodes) / 2) + 1;

/** Returns the number of Byzantine faults that N nodes tolerate: the largest f with N ≥ 3f + 1. */
export const toleratedByzantine = (nodes: number): number => Math.floor((requireNodes(nodes) - 1) / 3);

/**
 * Returns the smallest quorum size that makes any two quorums intersect in a correct node: ⌈(N + f + 1) / 2⌉, or 2f + 1
 * if N = 3f + 1.
 */
export const byzantineQuorum = (nodes: number): number => Math.ceil((nodes + toleratedByzantine(nodes) + 1) / 2);

function requireNodes(nodes: number): number {
  if (!Number.isSafeInteger(nodes) || nodes < 1)
    throw new UsageError("bad-quorum", unexpected("the number of nodes", "a whole number > 0", nodes));
  return nodes;
}
