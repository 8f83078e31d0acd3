/**
 * Exhaustive exploration: every order of starts, deliveries, time-outs, commands and faults within the bounds, breadth
 * first, so what one state shows is shown by a shortest run. Then, where a property asks for it, the search for runs that
 * go on for ever without what was promised.
 */
import { UsageError } from "../core/errors.ts";
import type { Property, StateProperty, Vocabulary } from "../core/protocol.ts";
import { type Bounds, BreadthFirst, type Progress } from "./breadth-first.ts";
import { lasso } from "./liveness.ts";
import type { ModelOptions } from "./model.ts";
import { retrace, type Taken } from "./path.ts";

export type { Progress } from "./breadth-first.ts";
export type { Taken } from "./path.ts";

export interface ExploreOptions<V extends Vocabulary> extends ModelOptions<V>, Bounds {
  /** What to check; the protocol's own properties by default. */
  readonly properties?: readonly Property<V>[];
  /** Asked now and then; false ends the search. */
  readonly mayGoOn?: (progress: Progress) => boolean;
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
  /** How often handlers ran: the rest was remembered. */
  readonly handlerRuns: number;
}

export interface Witness<V extends Vocabulary> {
  readonly property: StateProperty<V>;
  readonly path: readonly Taken<V>[];
}

const ASK_EVERY = 1 << 13;

/** @throws UsageError for a bound that is not a whole number, and where symmetry and promises about whole runs meet. */
export function explore<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  const { mayGoOn = () => true } = options;
  const asked = options.properties ?? options.protocol.properties;
  requireSingleStates(options, asked);
  const search = new BreadthFirst(options, asked);
  let isStopped = false;
  for (let expanded = 1; search.expandNext(); expanded++) {
    if (expanded % ASK_EVERY !== 0 || mayGoOn(search)) continue;
    isStopped = true;
    break;
  }
  const { model, space, transitions } = search;
  const isWhole = !search.isCut && !model.isCut && !isStopped;
  const missing = isWhole ? search.properties.sought[0] : undefined;
  const found = search.violated ?? missing ?? null;
  const graph = {
    model,
    size: space.size,
    read: space.read.bind(space),
    find: space.find.bind(space),
    successors: space.successors.bind(space),
  };
  const endless = found !== null || isStopped ? null : lasso(graph, asked, () => mayGoOn(search));
  const run = endless === "stopped" ? null : endless;
  const isClear = isWhole && endless !== "stopped";
  const path = run === null ? search.path(search.violated === null ? 0 : search.last) : retrace(model, run.waypoints);
  return {
    states: space.size,
    transitions,
    depth: search.violated === null ? search.depth : path.length,
    verdict: found !== null || run !== null ? "violated" : isClear ? "holds" : "unknown",
    property: found ?? run?.property ?? null,
    path,
    loop: run?.loop ?? null,
    witnesses: search.reached.map(({ property, state }) => ({ property, path: search.path(state) })),
    handlerRuns: model.steps.handlerRuns,
  };
}

/** A permutation of the nodes takes one node's promise for another's. */
export function requireSingleStates<V extends Vocabulary>(
  options: ModelOptions<V>,
  properties: readonly Property<V>[],
): void {
  if (options.symmetry === undefined) return;
  const promise = properties.find(({ when }) => when === "leadsTo" || when === "inTheEnd");
  if (promise === undefined) return;
  const wanted = "expected symmetry to come with properties of single states only";
  throw new UsageError(
    "bad-option",
    `${wanted}, got "${promise.name}": leave it out of properties or do without symmetry`,
  );
}
