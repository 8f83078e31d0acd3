/**
 * Where a node stands among the others, what it has and what it waits for, told from its state: what the drawing of a
 * topology is made from. Plain data, so a page of a live cluster can be sent it, and no reader knows an algorithm.
 */
import type { NodeId } from "../core/protocol.ts";

/** What is left out is not so, or not known. */
export interface Position {
  /** What it has that only one node should have, in a word: `token`, `privilege`. */
  readonly holds?: string;
  /** Whose requests wait until this node answers, or has back what it gave. First come first. */
  readonly queue?: readonly NodeId[];
  /** Who has what this node gives: its vote, its promise, the permission. */
  readonly grantedTo?: NodeId;
  /** Whose vote it needs, its own among them. */
  readonly votingSet?: readonly NodeId[];
  /** The nodes that it waits for, where it knows that itself. */
  readonly waitsFor?: readonly NodeId[];
  /** The neighbour towards the root or the privilege; on a star the one in the middle. Itself, if it is there. */
  readonly towards?: NodeId;
  /** On the identifier circle one number, clockwise; on the plane two. From 0 to below 1. */
  readonly at?: readonly number[];
  /** Where the part of the identifier circle begins to which the node belongs. */
  readonly region?: number;
}

/** Of a node, by the state of the algorithm itself, without the parts beside it (null: not known), and the options of the run. */
export type PositionRule = (state: unknown, node: NodeId, options: unknown) => Position;

/** A rule for the states of one algorithm. */
export const positioned =
  <State>(rule: (state: State, node: NodeId) => Position): PositionRule =>
  (state, node) =>
    state === null ? {} : rule(state as State, node);

/** What stands under the name of a part; the whole, where there is no such part. */
export function partIn(whole: unknown, part: string): unknown {
  const isAssembly = typeof whole === "object" && whole !== null && Object.hasOwn(whole, part);
  return isAssembly ? (whole as Record<string, unknown>)[part] : whole;
}

/** With what there is alone. */
export function present(position: { readonly [K in keyof Position]: Position[K] | null | undefined }): Position {
  return Object.fromEntries(Object.entries(position).filter(([, value]) => value != null)) as Position;
}
