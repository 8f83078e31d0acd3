/** The tokens of all entries so far. No crash takes one of them back: what was written under it is still there. */
import type { EventOf, NodeId, Vocabulary } from "../../../core/protocol.ts";

/** Of one node, in the order of its entries. */
export type Granted = readonly number[];

interface Entering extends Vocabulary {
  event: { type: "entered"; token: number };
}

export const grantedTokens = {
  empty: [] as Granted,
  after: (before: Granted, event: { readonly type: string }): Granted =>
    event.type === "entered" ? [...before, (event as EventOf<Entering>).token] : before,
} as const;

/** Whether each was given once. A list is replaced when it grows, so the same lists are counted once and not at every step. */
export function eachOnce(): (world: { nodes: readonly NodeId[]; history<H>(node: NodeId): H }) => boolean {
  let last: readonly Granted[] = [];
  let answer = true;
  return ({ nodes, history }) => {
    const lists = nodes.map((node) => history<Granted>(node));
    if (lists.length === last.length && lists.every((list, index) => list === last[index])) return answer;
    const all = lists.flat();
    last = lists;
    answer = new Set(all).size === all.length;
    return answer;
  };
}

/** A fencing token is one safe integer, epoch · 2²⁸ + entries: 2²⁵ epochs of 2²⁸ entries each. */
export const ENTRIES = 2 ** 28;
export const EPOCHS = 2 ** 25;

export const fence = (epoch: number, entries: number): number => epoch * ENTRIES + entries;
export const epochOf = (token: number): number => Math.floor(token / ENTRIES);
/** Nobody but a liar speaks of such an epoch or such a count: their tokens would be no safe integers. */
export const isBeyond = (epoch: number, entries = 0): boolean => epoch >= EPOCHS || entries >= ENTRIES;
