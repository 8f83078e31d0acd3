/** Replays a list of moves in the model, skipping impossible ones, to find out whether a property is violated. */
import { canonical } from "../../core/plain.ts";
import type { NodeId, Property, Tagged, Vocabulary } from "../../core/protocol.ts";
import { bodyOf } from "../../core/wrapping.ts";
import { failureIn } from "../../driver/handler-failure.ts";
import { FailedMove } from "../failed-move.ts";
import { Model, type ModelOptions, type Move } from "../model.ts";
import { type Taken, takenOf } from "../path.ts";
import { Judge } from "../properties.ts";
import { Successors, type Way } from "../search/successors.ts";
import { StateStore } from "../state-store.ts";

/** Replays lists of moves in one model. */
export class Replayer<V extends Vocabulary> {
  readonly #property: Property<V>;
  readonly model: Model<V>;
  /** The number of lists of moves that have been replayed. */
  replays = 0;
  readonly #judge: Judge<V>;
  readonly #successors: Successors<V>;
  readonly #states: Int32Array[] = [];
  /** If the violation is a failure, the handler that must throw at the end of a run. Otherwise null. */
  readonly #failing: string | null;

  constructor(options: ModelOptions<V>, property: Property<V>) {
    this.#property = property;
    const { counters: _counted, rounds: _closed, ...plain } = options;
    this.model = new Model({ ...plain, properties: [property] });
    this.#judge = new Judge(this.model, [property]);
    this.#successors = new Successors(this.model);
    this.#failing = failureIn(property)?.handler ?? null;
    this.model.leavesOutFailures = this.#failing === null;
  }

  /** Returns the moves that were possible, up to the violation. Null if no violation occurred. */
  replay(wanted: readonly Wanted<V>[]): Taken<V>[] | null {
    this.replays += 1;
    const path: Taken<V>[] = [];
    this.#states[0] = this.model.initial();
    for (const each of wanted) {
      if (this.#isViolated(path.length)) return path;
      this.#successors.gather(this.#states[path.length] as Int32Array);
      const at = closest(this.#successors, each);
      if (at < 0) continue;
      const ways = this.#waysOf(at);
      const state = this.#states[path.length] as Int32Array;
      if (ways === "failed") return [...path, takenOf(this.model, this.#successors.moves[at] as Move<V>, null, state)];
      const way = closestWay(ways, each);
      if (way === undefined) continue;
      this.#states[path.length + 1] = way.tuple;
      path.push(takenOf(this.model, this.#successors.moves[at] as Move<V>, way.outcome, way.tuple));
    }
    return this.#isViolated(path.length) ? path : null;
  }

  /** Returns the outcomes of a move. `failed`: the expected handler threw. */
  #waysOf(at: number): Way<V>[] | "failed" {
    try {
      return this.#successors.waysOf(at);
    } catch (error) {
      if (!(error instanceof FailedMove)) throw error;
      return error.failure.handler === this.#failing ? "failed" : [];
    }
  }

  /**
   * Returns a run that makes the first `kept` moves of a path and then reaches a violation in as few moves as possible.
   * Null if there is none with fewer than `path.length` moves within `maxStates` states, or if the property concerns
   * whole runs.
   */
  detour(path: readonly Wanted<V>[], kept: number, maxStates: number): Taken<V>[] | null {
    const { when } = this.#property;
    if (when === "leadsTo" || when === "eventually" || this.#failing !== null) return null;
    const start = path.slice(0, kept);
    this.replay(start);
    const from = this.#states[kept] as Int32Array;
    const isViolated = (tuple: Int32Array): boolean => this.#judge.violatedBy(tuple) !== null;
    const end = shortcut(this.model, from, isViolated, { maxMoves: path.length - kept - 1, maxStates });
    return end === null ? null : this.replay([...start, ...end]);
  }

  #isViolated(length: number): boolean {
    const last = this.#states[length] as Int32Array;
    const { when } = this.#property;
    if (when !== "leadsTo" && when !== "eventually") return this.#judge.violatedBy(last) !== null;
    this.#successors.gather(last);
    if (this.#successors.isBound) return false;
    return this.#judge.brokenBy((moves) => this.#states[length - moves] ?? null) !== null;
  }
}

/**
 * Returns the move closest to the wanted one: one with equal content at the same time, or failing that, one that
 * differs only in the time or in the content of a message or command of the same type. −1 if there is none.
 */
function closest<V extends Vocabulary>(successors: Successors<V>, { move }: Wanted<V>): number {
  let found = -1;
  const content = canonical([contentOf(move), move.afterMs ?? 0]);
  for (let at = 0; at < successors.count; at++) {
    const other = successors.moves[at] as Move<V>;
    if (!isAlike(move, other)) continue;
    if (canonical([contentOf(other), other.afterMs ?? 0]) === content) return at;
    if (found < 0) found = at;
  }
  return found;
}

/** Returns the outcome with the wanted choices and the wanted crash. If there is none, returns the first. */
function closestWay<V extends Vocabulary>(
  ways: readonly Way<V>[],
  { move, choices, sends }: Wanted<V>,
): Way<V> | undefined {
  const struck =
    move.crashesWithinStep === true ? ways.filter(({ outcome }) => outcome?.sends.length === sends?.length) : ways;
  const chosen = canonical(choices);
  return struck.find(({ outcome }) => canonical(outcome?.choices ?? []) === chosen) ?? struck[0] ?? ways[0];
}

/** Whether two moves differ at most in the content of a message or command. */
function isAlike<V extends Vocabulary>(a: Move<V>, b: Move<V>): boolean {
  if (a.kind !== b.kind || a.node !== b.node || senderOf(a) !== senderOf(b)) return false;
  if (a.crashesWithinStep !== b.crashesWithinStep) return false;
  if (a.kind === "timeout" && b.kind === "timeout") return a.timer === b.timer;
  return typeOf(contentOf(a)) === typeOf(contentOf(b));
}

const senderOf = <V extends Vocabulary>(move: Move<V>): NodeId | null => ("from" in move ? move.from : null);

const contentOf = <V extends Vocabulary>(move: Move<V>): Tagged | null =>
  "message" in move ? move.message : "command" in move ? move.command : null;

/** Returns the type of a content. For content from a part of an assembly, this includes the inner type. */
function typeOf(content: Tagged | null): string {
  return content === null ? "" : `${content.type} ${bodyOf(content)?.type ?? ""}`;
}

/** A move to make, with the handler's choices and, if known and relevant, the number of sends. */
export type Wanted<V extends Vocabulary> = Pick<Taken<V>, "move" | "choices"> & {
  readonly sends?: { readonly length: number };
};

/** Bounds on the search for a shorter path to the violation. */
export interface ShortcutOptions {
  readonly maxMoves: number;
  /** The maximum number of states. The search is abandoned when it reaches them. */
  readonly maxStates: number;
}

/** Returns a shortest sequence of moves from a state to a goal. Null if there is none within the bounds. */
function shortcut<V extends Vocabulary>(
  model: Model<V>,
  from: Int32Array,
  isWanted: (tuple: Int32Array) => boolean,
  { maxMoves, maxStates }: ShortcutOptions,
): Wanted<V>[] | null {
  const store = new StateStore(model.width);
  const found: { readonly parent: number; readonly depth: number }[] = [{ parent: -1, depth: 0 }];
  store.add(from);
  const tuple = new Int32Array(model.width);
  let goal = -1;
  for (let id = 0; id < found.length && goal < 0 && found.length < maxStates; id++) {
    const depth = (found[id]?.depth ?? 0) + 1;
    if (depth > maxMoves) return null;
    store.read(id, tuple);
    model.expand(tuple, () => {
      const added = store.add(model.next);
      if (added < 0) return false;
      found.push({ parent: id, depth });
      if (isWanted(model.next)) goal = added;
      return goal >= 0;
    });
  }
  return goal < 0 ? null : wayTo(goal);

  function wayTo(state: number): Wanted<V>[] {
    const parent = found[state]?.parent ?? -1;
    return parent < 0 ? [] : [...wayTo(parent), between(parent, state)];
  }

  function between(before: number, after: number): Wanted<V> {
    const [start, end] = [new Int32Array(model.width), new Int32Array(model.width)];
    store.read(before, start);
    store.read(after, end);
    let way: Wanted<V> | null = null;
    model.expand(start, (move, outcome) => {
      if (!end.every((value, i) => value === model.next[i])) return false;
      way = { move: move(), choices: outcome?.choices ?? [], sends: outcome?.sends ?? [] };
      return true;
    });
    return way as unknown as Wanted<V>;
  }
}
