/** What a search that has looked at every state, or at as many as it could, says in the end. */
import type { Property, StateProperty, Vocabulary } from "../core/protocol.ts";
import type { HandlerFailure } from "../driver/handler-failure.ts";
import type { Graph } from "./fairness.ts";
import { lasso } from "./liveness.ts";
import { retrace, type Taken } from "./path.ts";
import type { Reach } from "./reach.ts";

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
