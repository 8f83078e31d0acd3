/**
 * Exhaustive exploration, depth first: of the states found, the last is expanded next. It visits the same states as
 * breadth first and finds sooner what lies deep; its counterexamples are as long as they come.
 */
import type { Property, StateProperty, Vocabulary } from "../../core/protocol.ts";
import { requireNatural } from "../budgets.ts";
import { type Exploration, type ExploreOptions, type Progress, requireSingleStates } from "../explore.ts";
import { lasso } from "../liveness.ts";
import { Model } from "../model.ts";
import { retrace, type Taken, type Waypoint } from "../path.ts";
import { StateStore } from "../state-store.ts";
import { Judge } from "./judge.ts";
import { Successors } from "./successors.ts";

const ASK_EVERY = 1 << 13;
const DEFAULT_MAX_STATES = 100_000_000;

/**
 * `depth` is that of the deepest state, `path` the way by which the search came to the violation.
 *
 * @throws UsageError for what `explore` refuses.
 */
export function exploreDepthFirst<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  const { mayGoOn = () => true } = options;
  const asked = options.properties ?? options.protocol.properties;
  requireSingleStates(options, asked);
  const search = new DepthFirst(options, asked);
  let isStopped = false;
  for (let expanded = 1; search.expandNext() && !isStopped; expanded++)
    isStopped = expanded % ASK_EVERY === 0 && !mayGoOn(search);
  const { model, store } = search;
  const isWhole = !isStopped && !search.isCut && !model.isCut;
  const found = search.violated ?? (isWhole ? search.judge.missing : null);
  const graph = { model, size: store.size, read: store.read.bind(store), find: store.find.bind(store), successors };
  const tuple = new Int32Array(model.width);
  function successors(state: number): number[] {
    const leadsTo: number[] = [];
    store.read(state, tuple);
    model.expand(tuple, () => {
      const next = store.find(model.next);
      if (next >= 0) leadsTo.push(next);
      return false;
    });
    return leadsTo;
  }
  const endless = found !== null || isStopped ? null : lasso(graph, asked, () => mayGoOn(search));
  const run = endless === "stopped" ? null : endless;
  const isClear = isWhole && endless !== "stopped";
  const path = run !== null ? retrace(model, run.waypoints) : search.violated === null ? [] : search.path(search.last);
  return {
    states: store.size,
    transitions: search.transitions,
    depth: search.depth,
    verdict: found !== null || run !== null ? "violated" : isClear ? "holds" : "unknown",
    property: found ?? run?.property ?? null,
    path,
    loop: run?.loop ?? (search.isPromiseBroken ? path.length : null),
    witnesses: search.reached.map(({ property, state }) => ({ property, path: search.path(state) })),
    handlerRuns: model.steps.handlerRuns,
  };
}

class DepthFirst<V extends Vocabulary> implements Progress {
  readonly model: Model<V>;
  readonly judge: Judge<V>;
  readonly store: StateStore;
  readonly reached: { readonly property: StateProperty<V>; readonly state: number }[] = [];
  transitions = 0;
  depth = 0;
  violated: Property<V> | null = null;
  /** Whether what is violated is a promise, by a run that stops. */
  isPromiseBroken = false;
  /** Whether a bound on states or depth has left something out. */
  isCut = false;
  /** The state that was found, or expanded, last. */
  last = 0;
  readonly #maxStates: number;
  readonly #maxDepth: number;
  readonly #parents = new Column();
  readonly #depths = new Column();
  readonly #successors: Successors<V>;
  readonly #open: number[] = [];
  #expanding = 0;

  constructor(options: ExploreOptions<V>, properties: readonly Property<V>[]) {
    requireNatural("maxStates", options.maxStates);
    requireNatural("maxDepth", options.maxDepth);
    this.#maxStates = options.maxStates ?? DEFAULT_MAX_STATES;
    this.#maxDepth = options.maxDepth ?? Number.POSITIVE_INFINITY;
    this.model = new Model(options);
    this.judge = new Judge(this.model, properties);
    this.#successors = new Successors(this.model);
    const first = this.model.initial();
    this.model.represent(first);
    this.store = new StateStore(this.model.width);
    this.#look(-1, first);
  }

  get states(): number {
    return this.store.size;
  }

  /** Expands the state that was found last of those not expanded yet; false if there is none, or no need. */
  expandNext(): boolean {
    const state = this.#open.pop();
    if (state === undefined || this.violated !== null || this.states >= this.#maxStates) return false;
    this.last = state;
    this.#expanding = state;
    const tuple = this.#back(state, 0) as Int32Array;
    this.#successors.gather(tuple);
    if (!this.#successors.isBound) {
      this.violated = this.judge.brokenBy((moves) => this.#back(state, moves));
      this.isPromiseBroken = this.violated !== null;
    }
    if (this.violated === null)
      this.model.expand(tuple, this.#depths.at(state) < this.#maxDepth ? this.#visit : this.#peek);
    this.isCut ||= this.states >= this.#maxStates;
    return true;
  }

  /** The run by which a state was found. */
  path(state: number): Taken<V>[] {
    const waypoints: Waypoint<V>[] = [];
    for (let at = state; at > 0; at = this.#parents.at(at)) waypoints.push({ tuple: this.#back(at, 0) as Int32Array });
    return retrace(this.model, waypoints.reverse());
  }

  readonly #visit = (): boolean => {
    this.transitions += 1;
    this.#look(this.#expanding, this.model.next);
    return this.violated !== null;
  };

  /** Instead of visiting, at the greatest depth: what would be new is left out. */
  readonly #peek = (): boolean => {
    this.isCut ||= this.store.find(this.model.next) < 0;
    return this.isCut;
  };

  /** Looks at a state, unless it is known. */
  #look(from: number, tuple: Int32Array): void {
    const found = this.store.add(tuple);
    if (found < 0) return;
    const depth = from < 0 ? 0 : this.#depths.at(from) + 1;
    this.#open.push(found);
    this.#parents.push(from);
    this.#depths.push(depth);
    this.depth = Math.max(this.depth, depth);
    this.last = found;
    this.violated = this.judge.violatedBy(tuple);
    for (const property of this.judge.foundIn(tuple)) this.reached.push({ property, state: found });
  }

  /** The state so many moves before this one on the way by which it was found; null before the first. */
  #back(state: number, moves: number): Int32Array | null {
    let at = state;
    for (let back = 0; back < moves && at >= 0; back++) at = this.#parents.at(at);
    if (at < 0) return null;
    const tuple = new Int32Array(this.model.width);
    this.store.read(at, tuple);
    return tuple;
  }
}

/** A number per state, in chunks that growing does not copy. */
class Column {
  readonly #chunks: Int32Array[] = [];
  #size = 0;

  push(value: number): void {
    const at = this.#size++ % CHUNK;
    if (at === 0) this.#chunks.push(new Int32Array(CHUNK));
    (this.#chunks.at(-1) as Int32Array)[at] = value;
  }

  at(index: number): number {
    return (this.#chunks[Math.floor(index / CHUNK)] as Int32Array)[index % CHUNK] as number;
  }
}
const CHUNK = 1 << 16;
