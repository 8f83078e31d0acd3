/** Operations placed one after another, each with the state after it, and taken back in the opposite order. */
import type { Entries } from "./entries.ts";

/** A way to place operations. */
export interface Way {
  /** Numbers of operations, in the order in which they take effect. */
  readonly order: Int32Array;
  /** The state after each. */
  readonly states: Int32Array;
}

export interface Placement {
  /** How many are placed, and how many of them returned. */
  readonly depth: number;
  readonly returned: number;
  readonly state: number;
  /** The last one placed, or −1, and the state before it. */
  readonly latest: number;
  readonly stateBefore: number;
  /** Which are placed, together with the first return that is left (entries.ts). */
  readonly words: Int32Array;
  place(op: number, target: number): void;
  /** Takes the latest back. */
  withdraw(): void;
  isPlaced(op: number): boolean;
  /** The operation of that kind whose turn it is, or −1. */
  nextOfKind(kind: number): number;
  /** The first entry of those that are left, and the one that follows `entry`, which may just have been placed. */
  first(): number;
  after(entry: number): number;
  way(): Way;
}

const HEAD = 0;

export function placement(entries: Entries): Placement {
  const { end, callEntry, returnEntry, wordOf, toggleOf, kindOf, kinds } = entries;
  const count = entries.operations.length;
  // Entries in a doubly linked list. One that is taken out keeps its own links, so it can be put back where it was.
  const next = new Int32Array(end + 1).map((_, entry) => Math.min(entry + 1, end));
  const previous = new Int32Array(end + 1).map((_, entry) => Math.max(entry - 1, HEAD));
  const isPlaced = new Uint8Array(count);
  const usedOfKind = new Int32Array(kinds.length - 1);
  const words = new Int32Array(entries.words);
  const order = new Int32Array(count);
  const before = new Int32Array(count);
  let depth = 0;
  let returned = 0;
  let state = 0;

  function unlink(entry: number): void {
    next[previous[entry] as number] = next[entry] as number;
    previous[next[entry] as number] = previous[entry] as number;
  }

  function relink(entry: number): void {
    next[previous[entry] as number] = entry;
    previous[next[entry] as number] = entry;
  }

  function mark(op: number, placed: 0 | 1): void {
    isPlaced[op] = placed;
    (words[wordOf[op] as number] as number) ^= toggleOf[op] as number;
  }

  return {
    get depth() {
      return depth;
    },
    get returned() {
      return returned;
    },
    get state() {
      return state;
    },
    get latest() {
      return depth === 0 ? -1 : (order[depth - 1] as number);
    },
    get stateBefore() {
      return depth === 0 ? state : (before[depth - 1] as number);
    },
    words,
    place(op, target) {
      order[depth] = op;
      before[depth] = state;
      depth += 1;
      state = target;
      mark(op, 1);
      const kind = kindOf[op] as number;
      if (kind >= 0) (usedOfKind[kind] as number)++;
      else {
        unlink(callEntry[op] as number);
        unlink(returnEntry[op] as number);
        returned += 1;
      }
    },
    withdraw() {
      depth -= 1;
      const op = order[depth] as number;
      state = before[depth] as number;
      mark(op, 0);
      const kind = kindOf[op] as number;
      if (kind >= 0) (usedOfKind[kind] as number)--;
      else {
        relink(returnEntry[op] as number);
        relink(callEntry[op] as number);
        returned -= 1;
      }
    },
    isPlaced: (op) => isPlaced[op] === 1,
    nextOfKind(kind) {
      const op = (kinds[kind] as number) + (usedOfKind[kind] as number);
      return op < (kinds[kind + 1] as number) ? op : -1;
    },
    first: () => next[HEAD] as number,
    // By way of the one before: the return of an operation just placed may have followed its call.
    after: (entry) =>
      isPlaced[entries.calls[entry] as number] === 1
        ? (next[previous[entry] as number] as number)
        : (next[entry] as number),
    way: () => ({
      order: order.slice(0, depth),
      states: Int32Array.from({ length: depth }, (_, at) => (at + 1 < depth ? (before[at + 1] as number) : state)),
    }),
  };
}
