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
import { InvariantViolation } from "../../core/errors.ts";
import { configurations } from "./configurations.ts";
import type { Entries } from "./entries.ts";
import { placement, type Way } from "./placement.ts";
import type { Transitions } from "./transitions.ts";

/** A way as far as it went. */
export interface DeadEnd extends Way {
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
  /** The current way; complete once the outcome is `placed`. */
  way(): Way;
  /** Those dead ends that came furthest in time, one per state, the longest first. Ends an open search. */
  deadEnds(): DeadEnd[];
}

const MAX_DEAD_ENDS = 5;

export function search(entries: Entries, transitions: Transitions): Search {
  const { calls, end, callEntry, classOf, observes, prior, rank, kindOf, kinds } = entries;
  const at = placement(entries);
  const tried = configurations(entries.words);
  /** Each level is a configuration: its number, at what depth it began, and which candidates are left to try in it. */
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

  /** Places every observer that fits and gathers what may come next. Returns the barrier. */
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

  /** Sorted by rank. */
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

  /** Begins a level with `op`; the first with none. Returns its barrier. */
  function enter(op: number, target: number): number {
    const from = level < 0 ? 0 : (last[level] as number);
    level += 1;
    bottom[level] = at.depth;
    if (op >= 0) at.place(op, target);
    return settle(from);
  }

  /** Goes on with `op`, unless that leads to what has been tried before. */
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

  /** Whether the pending operation just placed, or this one, may as well not have happened. */
  function isNeedless(op: number, target: number): boolean {
    if ((kindOf[op] as number) >= 0 && target === at.state) return true;
    const { latest } = at; // If something was observed in between, it is that.
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
      // Among as many that returned, the way that needs fewer pending operations goes first.
      return longest.sort((a, b) => returned(b) - returned(a) || pending(a) - pending(b));
    },
  };
}
