/**
 * Exhaustive exploration of every order of starts, deliveries, timeouts, commands and faults within the bounds. The
 * search is breadth first, so a counterexample to a property of single states is as short as possible. If a property
 * requires it, the search then looks for infinite runs that never fulfill an obligation.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Property, StateProperty, Vocabulary } from "../core/protocol.ts";
import { failureProperty, type HandlerFailure } from "../driver/handler-failure.ts";
import { callback, natural, type Rules, requireOptions } from "../protocols/known-options.ts";
import { FailedMove } from "./failed-move.ts";
import type { Graph } from "./fairness.ts";
import { lasso } from "./liveness.ts";
import { Model, type ModelOptions } from "./model.ts";
import { faultKinds, modelRules, requireTime, walkRules } from "./model-options.ts";
import { retrace, retraceToFailure, type Taken } from "./path.ts";
import { Properties } from "./properties.ts";
import type { Reach } from "./reach.ts";
import { StateSpace } from "./state-space.ts";
import { Column } from "./state-store.ts";

export type { Taken } from "./path.ts";

/** Options of `explore`: a model and the bounds of the search. */
export interface ExploreOptions<V extends Vocabulary> extends ModelOptions<V>, Bounds {
  /** Called regularly. Return false to stop the search. */
  readonly mayGoOn?: (progress: Progress) => boolean;
}

/** The validation rules for the options of every search. */
export const exploreRules: Rules<ExploreOptions<Vocabulary>> & typeof walkRules = {
  ...modelRules,
  ...walkRules,
  maxStates: natural,
  maxDepth: natural,
  maxBytes: natural,
  mayGoOn: callback,
};

const ASK_EVERY = 1 << 13;

/**
 * Explores every behavior of a protocol within bounds.
 *
 * @param options the model, the properties, and the bounds
 * @returns the verdict, with a counterexample if it is `violated`
 * @example
 * const { verdict, property, path } = explore({
 *   protocol: paxos(),
 *   nodes: [0, 1, 2],
 *   network: "bag",
 *   timers: "never",
 *   begin: "idle",
 *   asks: (node) => (node === 0 ? [{ type: "propose", value: "a" }] : []),
 * });
 * @throws UsageError if an option is invalid, or if `delays` is combined with properties of whole runs
 */
export function explore<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  requireOptions("explore", options, exploreRules);
  requireTime("explore", options);
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

/**
 * Checks that `delays` is not combined with properties of whole runs, because a fixed delivery order excludes infinite
 * runs.
 */
export function requireSingleStates<V extends Vocabulary>(
  options: ModelOptions<V>,
  properties: readonly Property<V>[],
): void {
  if (options.delays === undefined) return;
  const promise = properties.find(({ when }) => when === "leadsTo" || when === "eventually");
  if (promise === undefined) return;
  const wanted = "expected delays to be combined only with properties of single states";
  throw new UsageError(
    "bad-option",
    `${wanted}, got "${promise.name}": remove it from properties, or do not set delays`,
  );
}

const DEFAULT_MAX_STATES = 100_000_000;
/** The number of expanded states between two measurements of memory. */
const WEIGH_EVERY = 1 << 13;
/** The approximate heap memory of a cached handler run and its outcomes. */
export const BYTES_PER_HANDLER_RUN = 1_000;

/** Bounds that stop a search early. */
export interface Bounds {
  /** The maximum number of states. If the search reaches it without a violation, the verdict is `unknown`. */
  readonly maxStates?: number;
  /**
   * The maximum number of moves in a run. States that take more moves to reach are not explored. If there are any and
   * nothing is violated, the verdict is `unknown`.
   */
  readonly maxDepth?: number;
  /**
   * The approximate memory limit for states and cached steps. If it is reached without a violation, the verdict is
   * `unknown`.
   */
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
  /** The state that was evaluated last, or the state whose handler threw. */
  last = 0;
  /** Whether a bound on states, depth or memory has excluded anything. */
  isCut = false;
  readonly #maxStates: number;
  readonly #maxDepth: number;
  readonly #maxBytes: number;
  /** The predecessor of each state except the first. */
  readonly #parents = new Column();
  readonly #tuple: Int32Array;
  /** Whether any property concerns single states. */
  readonly #looks: boolean;
  /** The next state to expand. */
  #at = 0;
  /** The first state of the layer after the one being expanded. */
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

  /** Expands the next state. Returns false if there is none or the search is finished. */
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

  /** Returns a shortest run that leads to a state. */
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

  /**
   * Handles a successor beyond the maximum depth. Records whether the bound excludes a new state, but does not add the
   * state.
   */
  #peek(words: Int32Array, at: number, hash: number): boolean {
    this.isCut ||= this.space.store.findPacked(words, at, hash) < 0;
    return this.isCut;
  }

  /** Evaluates the state whose tuple has been read. */
  #look(state: number): void {
    this.last = state;
    if (!this.#looks) return;
    this.violated = this.properties.violatedBy(this.#tuple);
    for (const property of this.properties.foundIn(this.#tuple)) this.reached.push({ property, state });
  }
}

/** The progress of a search. */
export interface Progress {
  /** Distinct states found so far. */
  readonly states: number;
  /** Moves explored so far, including moves to states that were already known. */
  readonly transitions: number;
  /** The maximum depth so far. A state's depth is the length of the shortest path to it. */
  readonly depth: number;
  /** Whether all states have been found and the search for infinite runs has begun. */
  readonly isFollowing?: boolean;
}

/**
 * The result of a search. `holds`: every run within the fault budgets was explored, and all properties hold.
 * `violated`: `path` is a run that violates `property`, even if the search was incomplete. `unknown`: no violation was
 * found, but the search was incomplete because of a bound (`maxStates`, `maxDepth`, `maxBytes`, `maxInFlight`,
 * `maxTimeouts`) or `mayGoOn`. Never treat `unknown` as a pass.
 */
export type Verdict = "holds" | "violated" | "unknown";

/** The result of an exploration. */
export interface Exploration<V extends Vocabulary> extends Progress {
  /** The verdict. It is `holds` only if the search was complete. See `Verdict`. */
  readonly verdict: Verdict;
  /** The violated property, if any. */
  readonly property: Property<V> | null;
  /**
   * A run that leads to the violation. If a single state shows the violation, no run to it is shorter. Empty for a
   * `sometimes` property that never comes true.
   */
  readonly path: readonly Taken<V>[];
  /**
   * For a run that never fulfills an obligation: the index in `path` of the first move that repeats forever, or the
   * length of `path` if the run stops because no further moves have to happen. Otherwise null.
   */
  readonly loop: number | null;
  /** A shortest run to each `sometimes` property that came true. */
  readonly witnesses: readonly Witness<V>[];
  /** If a handler threw at the end of `path`, its failure; `property` is then "no handler throws". Otherwise null. */
  readonly failure: HandlerFailure | null;
  /** The number of times that a handler ran. All other steps used cached results. */
  readonly handlerRuns: number;
  /** The handlers that ran and the events that were emitted. */
  readonly reach: Reach;
}

/** A run that shows that a `sometimes` property comes true. */
export interface Witness<V extends Vocabulary> {
  /** The `sometimes` property. */
  readonly property: StateProperty<V>;
  /** The run from the initial state to the first state that has the property. */
  readonly path: readonly Taken<V>[];
}

/** A finished search. */
export interface Searched<V extends Vocabulary> extends Progress {
  /** A property that is violated in a single state or by a run that stops. */
  readonly violated: Property<V> | null;
  /** Whether the violated property concerns whole runs and is violated by a run that stops. */
  readonly isLivenessBroken?: boolean;
  /** The error from a handler that threw. Null if none did. */
  readonly failure: HandlerFailure | null;
  /** The state that was evaluated last, or the state whose handler threw. */
  readonly last: number;
  /** A `sometimes` property that has not come true. */
  readonly missing: Property<V> | null;
  /** Each `sometimes` property that has come true, with the first state that shows it. */
  readonly reached: readonly { readonly property: StateProperty<V>; readonly state: number }[];
  /** Whether a bound of the search has excluded anything. */
  readonly isCut: boolean;
  /** The explored states and their transitions, for the search for infinite runs. */
  readonly graph: Graph<V>;
  /** Returns the run on which a state was found and, if requested, the move whose handler throws. */
  path(state: number, toFailure?: boolean): Taken<V>[];
}

const pathToViolation = <V extends Vocabulary>(search: Searched<V>): Taken<V>[] =>
  search.path(search.last, search.failure !== null);

/**
 * Completes a search: also searches for infinite runs, unless a property is already violated or the search was stopped.
 */
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
  graph.model.leavesOutFailures = true; // The omitted moves belong to states that were not expanded.
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

/** The result of `fewestFaults`. */
export interface FewestFaults<V extends Vocabulary> {
  /** The smallest number of faults tried that violates a property. Null if none does. */
  readonly breaking: number | null;
  /** The largest number of faults proven not to violate any property. −1 if nothing is proven. */
  readonly harmless: number;
  /** The last exploration: the one that found the violation, or the one with the most faults. */
  readonly exploration: Exploration<V>;
}

/**
 * Tries 0, 1, 2 … faults of all kinds together, until a property is violated or `atMost` is reached. The budgets in the
 * options determine which kinds of faults occur and how many of each. If `harmless` is one less than `breaking`,
 * `breaking` is the minimum. Otherwise, a bound on the search prevented a conclusion about fewer faults.
 *
 * @param atMost the largest number of faults to try. Default: the sum of the budgets
 * @example
 * const system = systemFor({ protocol: "paxos", nodes: [0, 1, 2], initiators: [0], losses: 2, timers: "never" });
 * const { breaking, harmless } = fewestFaults(system); // 2 and 1
 * @throws UsageError `bad-option`; `no-faults` if the options allow no faults
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
      // If allowing one more fault adds no states, no run can contain that many faults.
      harmless = exploration.states === states && harmless === faults - 1 ? atMost : faults;
    }
    states = exploration.states;
    if (isStopped || faults === atMost || harmless === atMost) return { breaking: null, harmless, exploration };
  }
}
