/**
 * Can the operations of one object be put into an order that real time and the model allow?
 *
 * Wing & Gong (1993) place one operation after another: any whose call precedes the first return still to come, the
 * *barrier*. Lowe (2017) remembers each configuration, placed operations and state, that led nowhere. Horn & Kroening
 * (2015) check objects one by one and take operations out of a doubly linked list. On top of these, all sound:
 *
 * - An operation that never changes the state (a read) is placed as soon as it fits. In any completion it can be moved
 *   to the front, so there is nothing to try besides.
 * - Equal operations are placed in the order of their calls where that is the order of their returns as well (`prior`).
 * - A pending operation is not placed where it changes nothing, nor where the next one leads to the same state without
 *   it: it may as well not have happened.
 * - What is needed first is tried first (`rank`), as far as the model can foresee that: a guess that proves right saves
 *   the search.
 */
import { invariant } from "../../core/errors.ts";
import { configurations } from "./configurations.ts";
import type { Entries } from "./entries.ts";
import type { Transitions } from "./transitions.ts";

/** A way to place operations, as far as it went. */
export interface Placing {
  /** Numbers of operations, in the order in which they take effect. */
  readonly order: Int32Array;
  /** The state after each. */
  readonly states: Int32Array;
}

export interface DeadEnd extends Placing {
  /** The entry of the first return that could not be reached: the operation that returns there has no place. */
  readonly barrier: number;
}

export type Outcome = "placed" | "impossible" | "open";

export interface Search {
  /** Goes on for about so many steps (operations tried). `open`: there is more to try. */
  run(steps: number): Outcome;
  readonly steps: number;
  /** How many configurations are remembered. */
  readonly remembered: number;
  /** The current placing; complete once the outcome is `placed`. */
  placing(): Placing;
  /** Those dead ends that came furthest in time, one per state, most operations placed first. Ends an open search. */
  deadEnds(): DeadEnd[];
}

const HEAD = 0;
const MAX_DEAD_ENDS = 5;
/** So many are compared at most. */
const MAX_STATES = 64;

export function search(entries: Entries, transitions: Transitions): Search {
  const { calls, end, callEntry, returnEntry, classOf, observes, prior, rank, wordOf, toggleOf, kindOf, kinds } =
    entries;
  const count = entries.operations.length;
  const next = Int32Array.from({ length: end + 1 }, (_, entry) => Math.min(entry + 1, end));
  const previous = Int32Array.from({ length: end + 1 }, (_, entry) => Math.max(entry - 1, HEAD));
  const placed = new Uint8Array(count);
  /** Per kind: how many of its pending operations have been placed. */
  const used = new Int32Array(kinds.length - 1);
  const words = new Int32Array(entries.words);
  const tried = configurations(entries.words);

  const order = new Int32Array(count);
  const before = new Int32Array(count);
  let depth = 0;
  let state = 0;

  /** Each level is a configuration: where it began in `order`, its barrier, and what is left to try in it. */
  const bottom = new Int32Array(count + 1);
  const barriers = new Int32Array(count + 1);
  const untried = new Int32Array(count + 1);
  const last = new Int32Array(count + 1);
  const configuration = new Int32Array(count + 1);
  let candidates = new Int32Array(64);
  let level = -1;
  let steps = 0;
  let outcome: Outcome = "open";
  let furthest = 0;

  function place(op: number, target: number): void {
    order[depth] = op;
    before[depth] = state;
    depth += 1;
    state = target;
    toggle(op);
    placed[op] = 1;
    const kind = kindOf[op] as number;
    if (kind >= 0) (used[kind] as number)++;
    else {
      unlink(callEntry[op] as number);
      unlink(returnEntry[op] as number);
    }
  }

  function withdraw(): void {
    depth -= 1;
    const op = order[depth] as number;
    state = before[depth] as number;
    toggle(op);
    placed[op] = 0;
    const kind = kindOf[op] as number;
    if (kind >= 0) (used[kind] as number)--;
    else {
      relink(returnEntry[op] as number);
      relink(callEntry[op] as number);
    }
  }

  function toggle(op: number): void {
    (words[wordOf[op] as number] as number) ^= toggleOf[op] as number;
  }

  function unlink(entry: number): void {
    next[previous[entry] as number] = next[entry] as number;
    previous[next[entry] as number] = previous[entry] as number;
  }

  function relink(entry: number): void {
    next[previous[entry] as number] = entry;
    previous[next[entry] as number] = entry;
  }

  /** Places every observer that fits, gathers what may come next, and finds the barrier. */
  function settle(from: number): number {
    let top = from;
    let entry = next[HEAD] as number;
    for (let op = calls[entry] as number; op >= 0; op = calls[entry] as number) {
      if (observes[op] === 1 && fits(op)) {
        place(op, state);
        entry = next[previous[entry] as number] as number; // Its return may have been the next entry.
        continue;
      }
      if (observes[op] === 0 && isInTurn(op)) insert(op, from, top++);
      entry = next[entry] as number;
    }
    for (let kind = 0; kind + 1 < kinds.length; kind++) {
      const op = (kinds[kind] as number) + (used[kind] as number);
      if (op < (kinds[kind + 1] as number) && (callEntry[op] as number) <= entry) insert(op, from, top++);
    }
    barriers[level] = entry;
    untried[level] = from;
    last[level] = top;
    return entry;
  }

  function fits(observer: number): boolean {
    const target = transitions.step(state, classOf[observer] as number);
    invariant(target === state || target < 0, "an operation that `observes` has changed the state");
    return target === state;
  }

  const isInTurn = (op: number): boolean => (prior[op] as number) < 0 || placed[prior[op] as number] === 1;

  /** Sorted by rank. */
  function insert(op: number, from: number, top: number): void {
    if (top === candidates.length) {
      const wider = new Int32Array(2 * top);
      wider.set(candidates);
      candidates = wider;
    }
    let at = top;
    while (at > from && (rank[candidates[at - 1] as number] as number) > (rank[op] as number)) {
      candidates[at] = candidates[at - 1] as number;
      at -= 1;
    }
    candidates[at] = op;
  }

  /** Begins a level with `op`; the first with none. Returns its barrier. */
  function enter(op: number, target: number): number {
    const from = level < 0 ? 0 : (last[level] as number);
    level += 1;
    bottom[level] = depth;
    if (op >= 0) place(op, target);
    return settle(from);
  }

  /** Goes on with `op`, unless that leads to what has been tried before. */
  function explore(op: number, target: number): void {
    const from = level < 0 ? -1 : (configuration[level] as number);
    const barrier = enter(op, target);
    if (barrier === end) outcome = "placed";
    else {
      configuration[level] = tried.add(barrier, state, words, from, op);
      if (configuration[level] === -1) leave();
      else if (barrier > furthest) furthest = barrier;
    }
  }

  function leave(): void {
    while (depth > (bottom[level] as number)) withdraw();
    level -= 1;
  }

  /** Whether the pending operation just placed, or this one, may as well not have happened. */
  function isNeedless(op: number, target: number): boolean {
    if ((kindOf[op] as number) >= 0 && target === state) return true;
    if (depth === 0 || depth !== (bottom[level] as number) + 1) return false; // Something was observed in between.
    const latest = order[depth - 1] as number;
    return (
      (kindOf[latest] as number) >= 0 && transitions.step(before[depth - 1] as number, classOf[op] as number) === target
    );
  }

  function placing(): Placing {
    const states = Int32Array.from({ length: depth }, (_, at) => (at + 1 < depth ? (before[at + 1] as number) : state));
    return { order: order.slice(0, depth), states };
  }

  function deadEnds(): DeadEnd[] {
    const byState = new Map<number, DeadEnd>();
    for (let one = 0; one < tried.size && byState.size < MAX_STATES; one++) {
      if (tried.barrier(one) !== furthest) continue;
      const end = retrace(one);
      if (end.order.length > (byState.get(tried.state(one))?.order.length ?? -1)) byState.set(tried.state(one), end);
    }
    const ends = [...byState.values()].sort((a, b) => b.order.length - a.order.length);
    return ends.slice(0, MAX_DEAD_ENDS);
  }

  function retrace(one: number): DeadEnd {
    while (level >= 0) leave();
    enter(-1, 0);
    for (const op of tried.route(one)) enter(op, transitions.step(state, classOf[op] as number));
    return { barrier: furthest, ...placing() };
  }

  function run(quota: number): Outcome {
    const until = steps + quota;
    if (level < 0) explore(-1, 0);
    while (outcome === "open" && steps < until) {
      const at = untried[level] as number;
      if (at === last[level]) {
        if (level === 0) outcome = "impossible";
        else leave();
        continue;
      }
      untried[level] = at + 1;
      steps += 1;
      const op = candidates[at] as number;
      const target = transitions.step(state, classOf[op] as number);
      if (target < 0 || isNeedless(op, target)) continue;
      explore(op, target);
    }
    return outcome;
  }

  return {
    run,
    get steps() {
      return steps;
    },
    get remembered() {
      return tried.size;
    },
    placing,
    deadEnds,
  };
}
