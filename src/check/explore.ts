/**
 * Exhaustive exploration: every order of starts, deliveries, time-outs, commands and faults within the bounds, breadth
 * first, so what one state shows is shown by a shortest run. Then, where a property asks for it, the search for runs that
 * go on for ever without what was promised.
 */
import { UsageError } from "../core/errors.ts";
import type { Property, Vocabulary } from "../core/protocol.ts";
import { callback, natural, type Rules, requireOptions } from "../protocols/known-options.ts";
import { type Bounds, BreadthFirst } from "./breadth-first.ts";
import { concluded, type Exploration, type Progress } from "./conclusion.ts";
import type { ModelOptions } from "./model.ts";
import { modelRules, walkRules } from "./model-options.ts";

export type { Exploration, Progress, Verdict, Witness } from "./conclusion.ts";
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

/** @throws UsageError for options that make no sense, and where symmetry or delays and promises about whole runs meet. */
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

/** A permutation of the nodes takes one node's promise for another's; an order of deliveries leaves out runs that never end. */
export function requireSingleStates<V extends Vocabulary>(
  options: ModelOptions<V>,
  properties: readonly Property<V>[],
): void {
  const word = options.symmetry === undefined ? "delays" : "symmetry";
  if (options[word] === undefined) return;
  const promise = properties.find(({ when }) => when === "leadsTo" || when === "eventually");
  if (promise === undefined) return;
  const wanted = `expected ${word} to come with properties of single states only`;
  throw new UsageError(
    "bad-option",
    `${wanted}, got "${promise.name}": leave it out of properties or do without ${word}`,
  );
}
