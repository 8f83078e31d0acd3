/**
 * Searches for an order of the operations on one object that is allowed by real time and by the model.
 *
 * Wing & Gong (1993) place one operation after another. Each is an operation whose call precedes the first return that
 * has not been reached, the *barrier*. Lowe (2017) remembers each configuration (the placed operations and the state)
 * that led nowhere. Horn & Kroening (2015) check objects separately and remove operations from a doubly linked list.
 * There are further optimizations, all of them sound:
 *
 * - An operation that never changes the state (a read) is placed as soon as it fits. In any completion it can be moved
 *   to the front, so there is nothing else to try.
 * - Equal operations are placed in the order of their calls if they also return in this order (`prior`).
 * - A pending operation is not placed if it changes nothing, or if the next operation leads to the same state without
 *   it: it might just as well not have happened.
 * - Operations that are needed first are tried first (`rank`), as far as the model can predict this. A correct guess
 *   saves the search.
 */
import { InvariantViolation } from "../core/errors.ts";
import { configurations } from "./configurations.ts";
import type { Entries } from "./entries.ts";
import type { Transitions } from "./transitions.ts";

/** An incomplete sequence that cannot be extended. */
export interface DeadEnd extends Way {
  /**
   * The entry of the first return that could not be reached. The operation that returns there has no valid position.
   */
  readonly barrier: number;
}

/** `placed`: an order was found. `impossible`: no order exists. `open`: there is more to try. */
export type Outcome = "placed" | "impossible" | "open";

/** A search that can be interrupted. */
export interface Search {
  /** Continues for about this many steps (operations tried). Returns `open` if there is more to try. */
  run(steps: number): Outcome;
  readonly steps: number;
  /** The number of remembered configurations. */
  readonly remembered: number;
  /** Returns the current sequence. It is complete once the outcome is `placed`. */
  way(): Way;
  /** Returns the dead ends that reached the latest barrier: one per state, longest first. This ends an open search. */
  deadEnds(): DeadEnd[];
}

const MAX_DEAD_ENDS = 5;

/** Prepares the search for one object. */
export function search(entries: Entries, transitions: Transitions): Search {
  const { calls, end, callEntry, classOf, observes, prior, rank, kindOf, kinds } = entries;
  const at = placement(entries);
  const tried = configurations(entries.words);
  /** Each level is a configuration: its number, its depth at the start, and its remaining candidates. */
  const levels = entries.operations.length + 1;
  const configuration = new Int32Array(levels);
  const bottom = new Int32Array(levels);
  const untried = new Int32Array(levels);
  const last = new Int32Array(levels);
  let candidates = new Int32Array(64);
  let level = -1;
  let steps = 0;
  let outcome: Outcome = "open";
  let furthest = 0;

  /** Places every observer that fits and collects the next candidates. Returns the barrier. */
  function settle(from: number): number {
    let top = from;
    let entry = at.first();
    for (let op = calls[entry] as number; op >= 0; op = calls[entry] as number) {
      if (observes[op] === 0) {
        if (isInTurn(op)) insert(op, from, top++);
      } else if (fits(op)) at.place(op, at.state);
      entry = at.after(entry);
    }
    for (let kind = 0; kind + 1 < kinds.length; kind++) {
      const op = at.nextOfKind(kind);
      if (op >= 0 && (callEntry[op] as number) <= entry) insert(op, from, top++);
    }
    untried[level] = from;
    last[level] = top;
    return entry;
  }

  function fits(observer: number): boolean {
    const target = transitions.step(at.state, classOf[observer] as number);
    if (target !== at.state && target >= 0)
      throw new InvariantViolation("changes-state", "an operation that `observes` has changed the state");
    return target >= 0;
  }

  const isInTurn = (op: number): boolean => (prior[op] as number) < 0 || at.isPlaced(prior[op] as number);

  /** Inserts a candidate. Candidates are sorted by rank. */
  function insert(op: number, from: number, top: number): void {
    if (top === candidates.length) {
      const wider = new Int32Array(2 * top);
      wider.set(candidates);
      candidates = wider;
    }
    let slot = top;
    while (slot > from && (rank[candidates[slot - 1] as number] as number) > (rank[op] as number)) {
      candidates[slot] = candidates[slot - 1] as number;
      slot -= 1;
    }
    candidates[slot] = op;
  }

  /** Begins a level by placing `op`, or begins the first level, which has no operation. Returns the level's barrier. */
  function enter(op: number, target: number): number {
    const from = level < 0 ? 0 : (last[level] as number);
    level += 1;
    bottom[level] = at.depth;
    if (op >= 0) at.place(op, target);
    return settle(from);
  }

  /** Continues with `op`, unless that leads to a configuration that has already been tried. */
  function explore(op: number, target: number): void {
    const from = level < 0 ? -1 : (configuration[level] as number);
    const barrier = enter(op, target);
    if (barrier === end) outcome = "placed";
    else {
      configuration[level] = tried.add(barrier, at.state, at.words, { from, op, length: at.returned });
      if (configuration[level] === -1) leave();
      else if (barrier > furthest) furthest = barrier;
    }
  }

  function leave(): void {
    while (at.depth > (bottom[level] as number)) at.withdraw();
    level -= 1;
  }

  /** Whether either the pending operation that was just placed or this one might just as well not have happened. */
  function isNeedless(op: number, target: number): boolean {
    if ((kindOf[op] as number) >= 0 && target === at.state) return true;
    const { latest } = at; // If an observer was placed in between, it is the latest operation.
    if (latest < 0 || (kindOf[latest] as number) < 0) return false;
    return transitions.step(at.stateBefore, classOf[op] as number) === target;
  }

  function run(quota: number): Outcome {
    const until = steps + quota;
    if (level < 0) explore(-1, 0);
    while (outcome === "open" && steps < until) {
      const slot = untried[level] as number;
      if (slot === last[level]) {
        if (level === 0) outcome = "impossible";
        else leave();
        continue;
      }
      untried[level] = slot + 1;
      steps += 1;
      const op = candidates[slot] as number;
      const target = transitions.step(at.state, classOf[op] as number);
      if (target >= 0 && !isNeedless(op, target)) explore(op, target);
    }
    return outcome;
  }

  function retrace(one: number): DeadEnd {
    while (level >= 0) leave();
    enter(-1, 0);
    for (const op of tried.route(one)) enter(op, transitions.step(at.state, classOf[op] as number));
    return { barrier: furthest, ...at.way() };
  }

  return {
    run,
    get steps() {
      return steps;
    },
    get remembered() {
      return tried.size;
    },
    way: at.way,
    deadEnds() {
      const longest = tried.longest(furthest, MAX_DEAD_ENDS).map(retrace);
      const pending = ({ order }: Way): number => order.filter((op) => (kindOf[op] as number) >= 0).length;
      const returned = (way: Way): number => way.order.length - pending(way);
      // Among sequences with the same number of returned operations, those with fewer pending operations come first.
      return longest.sort((a, b) => returned(b) - returned(a) || pending(a) - pending(b));
    },
  };
}

/** A sequence of placed operations. */
export interface Way {
  /** The operations, in the order they take effect. */
  readonly order: Int32Array;
  /** The state after each operation. */
  readonly states: Int32Array;
}

/** The operations that are placed at the current point in the search. */
export interface Placement {
  /** The number of placed operations. The next field is the number of those that returned. */
  readonly depth: number;
  readonly returned: number;
  readonly state: number;
  /** The most recently placed operation, or −1 if there is none. The next field is the state before it. */
  readonly latest: number;
  readonly stateBefore: number;
  /** The set of placed operations, encoded together with the first remaining return (see entries.ts). */
  readonly words: Int32Array;
  place(op: number, target: number): void;
  /** Removes the most recently placed operation. */
  withdraw(): void;
  isPlaced(op: number): boolean;
  /** Returns the next operation of this kind to place, or −1 if there is none. */
  nextOfKind(kind: number): number;
  /**
   * Returns the first remaining entry. `after` returns the entry that follows `entry`, which may just have been placed.
   */
  first(): number;
  after(entry: number): number;
  way(): Way;
}

const HEAD = 0;

function placement(entries: Entries): Placement {
  const { end, callEntry, returnEntry, wordOf, toggleOf, kindOf, kinds } = entries;
  const count = entries.operations.length;
  // The entries form a doubly linked list. A removed entry keeps its links, so it can be put back in place.
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
    // Look up the previous entry, because the return of an operation that was just placed may have directly followed
    // its call.
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
