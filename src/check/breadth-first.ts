/** The search for states, breadth first: each is expanded once, in the order in which they were found. */
import type { Property, StateProperty, Vocabulary } from "../core/protocol.ts";
import { failureProperty, type HandlerFailure } from "../driver/handler-failure.ts";
import { Column } from "./column.ts";
import type { Searched } from "./conclusion.ts";
import { FailedMove } from "./failed-move.ts";
import type { Graph } from "./fairness.ts";
import { Model, type ModelOptions } from "./model.ts";
import { retrace, retraceToFailure, type Taken } from "./path.ts";
import { Properties } from "./properties.ts";
import { StateSpace } from "./state-space.ts";

const DEFAULT_MAX_STATES = 100_000_000;
/** After so many states, memory is looked at. */
const WEIGH_EVERY = 1 << 13;
/** About what a remembered handler run takes on the heap, with what it led to. */
export const BYTES_PER_HANDLER_RUN = 1_000;

/** What ends a search early. */
export interface Bounds {
  /** Where this bound is hit and nothing was violated, the verdict is `unknown`. */
  readonly maxStates?: number;
  /** States that take more moves than this to reach are not looked at; likewise. */
  readonly maxDepth?: number;
  /** About how much memory states and remembered steps may take; likewise. */
  readonly maxBytes?: number;
}

export class BreadthFirst<V extends Vocabulary> implements Searched<V> {
  readonly model: Model<V>;
  readonly properties: Properties<V>;
  readonly space: StateSpace<V>;
  readonly reached: { readonly property: StateProperty<V>; readonly state: number }[] = [];
  transitions = 0;
  depth = 0;
  violated: Property<V> | null = null;
  failure: HandlerFailure | null = null;
  /** The state that was looked at last, or in which a handler threw. */
  last = 0;
  /** Whether a bound on states, depth or memory has left something out. */
  isCut = false;
  readonly #maxStates: number;
  readonly #maxDepth: number;
  readonly #maxBytes: number;
  /** For each state but the first, the state from which it was found. */
  readonly #parents = new Column();
  readonly #tuple: Int32Array;
  /** Whether a property says something of single states. */
  readonly #looks: boolean;
  /** The state that is expanded next. */
  #at = 0;
  /** The first state of the layer below that which is being expanded. */
  #layerEnd = 1;

  constructor(options: ModelOptions<V> & Bounds, properties: readonly Property<V>[]) {
    this.#maxStates = options.maxStates ?? DEFAULT_MAX_STATES;
    this.#maxDepth = options.maxDepth ?? Number.POSITIVE_INFINITY;
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
    this.model = new Model({ ...options, properties });
    this.properties = new Properties(this.model, properties);
    this.#looks = properties.some(({ when }) => when !== "leadsTo" && when !== "eventually");
    this.space = new StateSpace(this.model, (parent, words, at, hash) =>
      this.depth < this.#maxDepth ? this.#arrive(parent, words, at, hash) : this.#peek(words, at, hash),
    );
    this.#tuple = this.model.initial();
    this.model.represent(this.#tuple);
    this.#look(this.space.add(this.#tuple));
  }

  get states(): number {
    return this.space.size;
  }

  get missing(): Property<V> | null {
    return this.properties.sought[0] ?? null;
  }

  get graph(): Graph<V> {
    const { model, space } = this;
    return {
      model,
      size: space.size,
      read: (state, into) => space.read(state, into),
      find: (tuple) => space.find(tuple),
      successors: (state) => space.successors(state),
    };
  }

  /** False if nothing is left to be expanded, or nothing more needs to be. */
  expandNext(): boolean {
    if (this.violated !== null || this.isCut) return false;
    if (this.#at === this.#layerEnd) {
      if (this.space.settle() || this.#at === this.space.size) return false;
      this.depth += 1;
      this.#layerEnd = this.space.size;
    }
    try {
      this.space.expand(this.#at);
    } catch (error) {
      if (!(error instanceof FailedMove)) throw error;
      this.failure = error.failure;
      this.violated = failureProperty(error.failure);
      this.last = this.#at;
      return false;
    }
    this.#at += 1;
    if (this.#at % WEIGH_EVERY === 0) this.isCut ||= this.#bytes > this.#maxBytes;
    return true;
  }

  /** A shortest run to a state. */
  path(state: number, toFailure = false): Taken<V>[] {
    const waypoints: { tuple: Int32Array }[] = [];
    for (let id = state; id > 0; id = this.#parents.at(id - 1)) {
      const tuple = new Int32Array(this.model.width);
      this.space.read(id, tuple);
      waypoints.push({ tuple });
    }
    return (toFailure ? retraceToFailure : retrace)(this.model, waypoints.reverse());
  }

  get #bytes(): number {
    return this.space.bytes + this.#parents.bytes + BYTES_PER_HANDLER_RUN * this.model.steps.handlerRuns;
  }

  #arrive(parent: number, words: Int32Array, at: number, hash: number): boolean {
    this.transitions += 1;
    const added = this.space.store.addPacked(words, at, hash);
    if (added < 0) return false;
    this.#parents.push(parent);
    if (this.#looks) this.space.readPacked(words, at, this.#tuple);
    this.#look(added);
    this.isCut ||= this.space.size >= this.#maxStates;
    return this.violated !== null || this.isCut;
  }

  /** Instead of arriving, at the greatest depth: what would be new is left out. */
  #peek(words: Int32Array, at: number, hash: number): boolean {
    this.isCut ||= this.space.store.findPacked(words, at, hash) < 0;
    return this.isCut;
  }

  /** At the state whose tuple has been read. */
  #look(state: number): void {
    this.last = state;
    if (!this.#looks) return;
    this.violated = this.properties.violatedBy(this.#tuple);
    for (const property of this.properties.foundIn(this.#tuple)) this.reached.push({ property, state });
  }
}
