/**
 * Exhaustive exploration: every order of starts, deliveries, time-outs, commands and faults within the bounds, breadth
 * first, so what one state shows is shown by a shortest run. Then, where a property asks for it, the search for runs that
 * go on for ever without what was promised.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Property, StateProperty, Vocabulary } from "../core/protocol.ts";
import { failureProperty, type HandlerFailure } from "../driver/handler-failure.ts";
import { callback, natural, type Rules, requireOptions } from "../protocols/known-options.ts";
import { FailedMove } from "./failed-move.ts";
import type { Graph } from "./fairness.ts";
import { lasso } from "./liveness.ts";
import { Model, type ModelOptions } from "./model.ts";
import { faultKinds, modelRules, walkRules } from "./model-options.ts";
import { retrace, retraceToFailure, type Taken } from "./path.ts";
import { Properties } from "./properties.ts";
import type { Reach } from "./reach.ts";
import { StateSpace } from "./state-space.ts";
import { Column } from "./state-store.ts";

export type { Taken } from "./path.ts";

export interface ExploreOptions<V extends Vocabulary> extends ModelOptions<V>, Bounds {
  /** Asked now and then; false ends the search. */
  readonly mayGoOn?: (progress: Progress) => boolean;
}

export const exploreRules: Rules<ExploreOptions<Vocabulary>> & typeof walkRules = {
  ...modelRules,
  ...walkRules,
  maxStates: natural,
  maxDepth: natural,
  maxBytes: natural,
  mayGoOn: callback,
};

const ASK_EVERY = 1 << 13;

/** @throws UsageError for options that make no sense, and where delays and promises about whole runs meet. */
export function explore<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  requireOptions("explore", options, exploreRules);
  const { mayGoOn = () => true } = options;
  const asked = options.properties ?? options.protocol.properties;
  requireSingleStates(options, asked);
  const search = new BreadthFirst(options, asked);
  let isStopped = false;
  for (let expanded = 1; search.expandNext() && !isStopped; expanded++)
    isStopped = expanded % ASK_EVERY === 0 && !mayGoOn(search);
  const exploration = concluded(search, asked, isStopped, mayGoOn);
  return search.violated === null ? exploration : { ...exploration, depth: exploration.path.length };
}

/** An order of deliveries leaves out runs that never end. */
export function requireSingleStates<V extends Vocabulary>(
  options: ModelOptions<V>,
  properties: readonly Property<V>[],
): void {
  if (options.delays === undefined) return;
  const promise = properties.find(({ when }) => when === "leadsTo" || when === "eventually");
  if (promise === undefined) return;
  const wanted = "expected delays to come with properties of single states only";
  throw new UsageError(
    "bad-option",
    `${wanted}, got "${promise.name}": leave it out of properties or do without delays`,
  );
}

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

class BreadthFirst<V extends Vocabulary> implements Searched<V> {
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

export interface Progress {
  readonly states: number;
  readonly transitions: number;
  /** The number of transitions on the longest of the shortest paths so far. */
  readonly depth: number;
  /** The states are all there; now runs without end are looked for. */
  readonly isFollowing?: boolean;
}

/**
 * `holds`: every run within the fault budgets was looked at, and keeps every property. `violated`: `path` is a run that
 * breaks `property`, however much else was looked at. `unknown`: nothing was violated as far as was looked, and a bound
 * (`maxStates`, `maxDepth`, `maxBytes`, `maxInFlight`, `maxTimeouts`) or `mayGoOn` left something out. It is never a pass.
 */
export type Verdict = "holds" | "violated" | "unknown";

export interface Exploration<V extends Vocabulary> extends Progress {
  readonly verdict: Verdict;
  /** What is violated. */
  readonly property: Property<V> | null;
  /** A way to the violation: a shortest one where one state shows it. Empty for a `sometimes` that never comes true. */
  readonly path: readonly Taken<V>[];
  /**
   * For a run that never keeps what was promised: the index in `path` of the first move of the part that is repeated
   * without end; as great as `path` is long where the run stops there, since nothing is bound to happen any more.
   * Otherwise null.
   */
  readonly loop: number | null;
  /** For each property `sometimes` that was seen to come true, a shortest way there. */
  readonly witnesses: readonly Witness<V>[];
  /** A handler that threw, at the end of `path`; `property` then is "no handler throws". Null otherwise. */
  readonly failure: HandlerFailure | null;
  /** How often handlers ran: the rest was remembered. */
  readonly handlerRuns: number;
  /** Which handlers ran, and what was emitted. */
  readonly reach: Reach;
}

export interface Witness<V extends Vocabulary> {
  readonly property: StateProperty<V>;
  readonly path: readonly Taken<V>[];
}

/** A search that is over. */
export interface Searched<V extends Vocabulary> extends Progress {
  /** What one state violates, or a run that stops. */
  readonly violated: Property<V> | null;
  /** Whether what is violated is a promise, by a run that stops. */
  readonly isLivenessBroken?: boolean;
  readonly failure: HandlerFailure | null;
  /** The state that was looked at last, or in which a handler threw. */
  readonly last: number;
  /** A property `sometimes` that has not come true. */
  readonly missing: Property<V> | null;
  readonly reached: readonly { readonly property: StateProperty<V>; readonly state: number }[];
  /** Whether a bound of the search has left something out. */
  readonly isCut: boolean;
  readonly graph: Graph<V>;
  /** The run by which a state was found, and then, if it is asked for, the move whose handler throws. */
  path(state: number, toFailure?: boolean): Taken<V>[];
}

const pathToViolation = <V extends Vocabulary>(search: Searched<V>): Taken<V>[] =>
  search.path(search.last, search.failure !== null);

/** Looks for runs without end as well, unless something is violated already or the search was stopped. */
export function concluded<V extends Vocabulary>(
  search: Searched<V>,
  properties: readonly Property<V>[],
  isStopped: boolean,
  mayGoOn: (progress: Progress) => boolean,
): Exploration<V> {
  const { violated, graph, transitions, depth, failure } = search;
  const isWhole = !isStopped && !search.isCut && !graph.model.isCut;
  const found = violated ?? (isWhole ? search.missing : null);
  graph.model.steps.requireRepeatable();
  graph.model.leavesOutFailures = true; // Moves of states that were not expanded.
  const following = { states: graph.size, transitions, depth, isFollowing: true };
  const endless = found !== null || isStopped ? null : lasso(graph, properties, () => mayGoOn(following));
  const run = endless === "stopped" ? null : endless;
  const isClear = isWhole && endless !== "stopped";
  const path = run !== null ? retrace(graph.model, run.waypoints) : violated === null ? [] : pathToViolation(search);
  return {
    states: graph.size,
    transitions,
    depth,
    verdict: found !== null || run !== null ? "violated" : isClear ? "holds" : "unknown",
    property: found ?? run?.property ?? null,
    path,
    loop: run?.loop ?? (search.isLivenessBroken === true ? path.length : null),
    witnesses: search.reached.map(({ property, state }) => ({ property, path: search.path(state) })),
    failure,
    handlerRuns: graph.model.steps.handlerRuns,
    reach: graph.model.steps.reaching.reach,
  };
}

export interface FewestFaults<V extends Vocabulary> {
  /** So many faults break it; null if what was tried does not. */
  readonly breaking: number | null;
  /** So many faults, and fewer, are proven not to break it; −1 if not even none. */
  readonly harmless: number;
  /** The last one: of the violation, or with the most faults. */
  readonly exploration: Exploration<V>;
}

/**
 * Tries 0, 1, 2 … faults of all kinds together, until a property is violated or `atMost` is reached. The options' budgets
 * say which kinds of faults there are and how many of each at most. `breaking` is the fewest if `harmless` is one less:
 * otherwise a bound of the search has left open what fewer faults do.
 *
 * @throws UsageError if the options allow no fault
 */
export function fewestFaults<V extends Vocabulary>(
  options: ExploreOptions<V>,
  atMost: number = faultKinds.reduce((sum, kind) => sum + (options[kind] ?? 0), 0),
): FewestFaults<V> {
  requireOptions("fewestFaults", options, exploreRules);
  if (faultKinds.every((kind) => (options[kind] ?? 0) === 0))
    throw new UsageError("no-faults", unexpected("crashes, recoveries, losses or duplications", "above 0", "none"));
  let harmless = -1;
  let states = 0;
  let isStopped = false;
  const mayGoOn = (progress: Progress): boolean => {
    isStopped ||= options.mayGoOn?.(progress) === false;
    return !isStopped;
  };
  for (let faults = 0; ; faults++) {
    const exploration = explore({ ...options, faults, mayGoOn });
    if (exploration.verdict === "violated") return { breaking: faults, harmless, exploration };
    if (exploration.verdict === "holds") {
      // Where one fault more leads nowhere new, no run has room for it.
      harmless = exploration.states === states && harmless === faults - 1 ? atMost : faults;
    }
    states = exploration.states;
    if (isStopped || faults === atMost || harmless === atMost) return { breaking: null, harmless, exploration };
  }
}
