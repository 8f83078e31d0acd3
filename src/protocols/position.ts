/**
 * Where a node stands among the others, what it has and what it waits for, told from its state: what the drawing of a
 * topology is made from. Plain data, so a page of a live cluster can be sent it, and no reader knows an algorithm.
 */
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol, View, Vocabulary } from "../core/protocol.ts";

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
  /** Who serves it, where there are many that serve, and a picture of a real process names no leader. */
  readonly follows?: NodeId;
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

/** The picture of a real process, whose state nobody else has: it tells where the node stands, too, if that is anything special. */
export type PlacedView = View & { readonly position?: Position };

/** With the leader that only the position names. */
export function ledView(view: PlacedView): View {
  const leader = view.leader ?? view.position?.follows;
  return leader === undefined ? view : { ...view, leader };
}

/** The protocol with such pictures. */
export function withPositions<P extends Pick<Protocol<Vocabulary>, "view">>(
  protocol: P,
  rule: PositionRule,
  options: unknown,
): P {
  const view = (state: object, self: NodeId): PlacedView => {
    // It may be a piece of the state, which goes on changing.
    const [shown, position] = [protocol.view(state, self), clone(rule(state, self, options))];
    return Object.keys(position).length === 0 ? shown : { ...shown, position };
  };
  return { ...protocol, view };
}
