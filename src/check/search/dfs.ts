/**
 * Exhaustive depth-first exploration: the most recently found state is expanded next. It visits the same states as a
 * breadth-first search and finds deep violations sooner, but its counterexamples are not as short as possible.
 */
import type { Property, StateProperty, Vocabulary } from "../../core/protocol.ts";
import { failureProperty, type HandlerFailure } from "../../driver/handler-failure.ts";
import { requireOptions } from "../../protocols/known-options.ts";
import {
  BYTES_PER_HANDLER_RUN,
  concluded,
  type Exploration,
  type ExploreOptions,
  exploreRules,
  requireSingleStates,
  type Searched,
} from "../explore.ts";
import { FailedMove } from "../failed-move.ts";
import type { Graph } from "../fairness.ts";
import { Model } from "../model.ts";
import { requireTime } from "../model-options.ts";
import { retrace, retraceToFailure, type Taken, type Waypoint } from "../path.ts";
import { Judge } from "../properties.ts";
import { Column, StateStore } from "../state-store.ts";
import { Successors } from "./successors.ts";

const ASK_EVERY = 1 << 13;
const DEFAULT_MAX_STATES = 100_000_000;

/**
 * Explores depth first. `depth` is the depth of the deepest state, and `path` is the run on which the violation was
 * found.
 *
 * @example
 * const { verdict } = exploreDepthFirst(systemFor({ protocol: "ricart-agrawala", nodes: [0, 1, 2] }));
 * @throws UsageError in the same cases as `explore`
 */
export function exploreDepthFirst<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  requireOptions("exploreDepthFirst", options, exploreRules);
  requireTime("exploreDepthFirst", options);
  const { mayGoOn = () => true } = options;
  const asked = options.properties ?? options.protocol.properties;
  requireSingleStates(options, asked);
  const search = new DepthFirst(options, asked);
  let isStopped = false;
  for (let expanded = 1; search.expandNext() && !isStopped; expanded++)
    isStopped = expanded % ASK_EVERY === 0 && !mayGoOn(search);
  return concluded(search, asked, isStopped, mayGoOn);
}

class DepthFirst<V extends Vocabulary> implements Searched<V> {
  readonly model: Model<V>;
  readonly judge: Judge<V>;
  readonly store: StateStore;
  readonly reached: { readonly property: StateProperty<V>; readonly state: number }[] = [];
  transitions = 0;
  depth = 0;
  violated: Property<V> | null = null;
  /** Whether the violated property concerns whole runs and is violated by a run that stops. */
  isLivenessBroken = false;
  failure: HandlerFailure | null = null;
  /** Whether a bound on states or depth has excluded anything. */
  isCut = false;
  /** The state that was found or expanded most recently. */
  last = 0;
  readonly #maxStates: number;
  readonly #maxDepth: number;
  readonly #maxBytes: number;
  readonly #parents = new Column();
  readonly #depths = new Column();
  readonly #successors: Successors<V>;
  readonly #open: number[] = [];
  #expanding = 0;

  constructor(options: ExploreOptions<V>, properties: readonly Property<V>[]) {
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
    this.#maxStates = options.maxStates ?? DEFAULT_MAX_STATES;
    this.#maxDepth = options.maxDepth ?? Number.POSITIVE_INFINITY;
    this.model = new Model({ ...options, properties });
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

  get missing(): Property<V> | null {
    return this.judge.missing;
  }

  get graph(): Graph<V> {
    const { model, store } = this;
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
    const read = (state: number, into: Int32Array): void => store.read(state, into);
    return { model, size: store.size, read, find: (sought) => store.find(sought), successors };
  }

  /**
   * Expands the most recently found state that has not been expanded. Returns false if there is none or the search is
   * finished.
   */
  expandNext(): boolean {
    const state = this.#open.pop();
    if (state === undefined || this.violated !== null || this.states >= this.#maxStates) return false;
    this.last = state;
    this.#expanding = state;
    const tuple = this.#back(state, 0) as Int32Array;
    this.#successors.gather(tuple);
    if (!this.#successors.isBound) {
      this.violated = this.judge.brokenBy((moves) => this.#back(state, moves));
      this.isLivenessBroken = this.violated !== null;
    }
    if (this.violated === null) this.#expand(state, tuple);
    const isFull = this.states >= this.#maxStates || this.#bytes > this.#maxBytes;
    this.isCut ||= isFull;
    return !isFull;
  }

  get #bytes(): number {
    const columns = this.#parents.bytes + this.#depths.bytes;
    return this.store.bytes + columns + BYTES_PER_HANDLER_RUN * this.model.steps.handlerRuns;
  }

  #expand(state: number, tuple: Int32Array): void {
    try {
      this.model.expand(tuple, this.#depths.at(state) < this.#maxDepth ? this.#visit : this.#peek);
    } catch (error) {
      if (!(error instanceof FailedMove)) throw error;
      this.failure = error.failure;
      this.violated = failureProperty(error.failure);
      this.last = state;
    }
  }

  /** Returns the run on which a state was found. */
  path(state: number, toFailure = false): Taken<V>[] {
    const waypoints: Waypoint<V>[] = [];
    for (let at = state; at > 0; at = this.#parents.at(at)) waypoints.push({ tuple: this.#back(at, 0) as Int32Array });
    return (toFailure ? retraceToFailure : retrace)(this.model, waypoints.reverse());
  }

  readonly #visit = (): boolean => {
    this.transitions += 1;
    this.#look(this.#expanding, this.model.next);
    return this.violated !== null;
  };

  /**
   * Handles a successor beyond the maximum depth. Records whether the bound excludes a new state, but does not add the
   * state.
   */
  readonly #peek = (): boolean => {
    this.isCut ||= this.store.find(this.model.next) < 0;
    return this.isCut;
  };

  /** Evaluates a state, unless it is already known. */
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

  /**
   * Returns the state this many moves before the given one, on the run that found it. Null if there were fewer moves.
   */
  #back(state: number, moves: number): Int32Array | null {
    let at = state;
    for (let back = 0; back < moves && at >= 0; back++) at = this.#parents.at(at);
    if (at < 0) return null;
    const tuple = new Int32Array(this.model.width);
    this.store.read(at, tuple);
    return tuple;
  }
}
