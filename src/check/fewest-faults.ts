/** How many faults it takes to break a protocol: explored with none, with one, with two, and so on. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Vocabulary } from "../core/protocol.ts";
import { requireOptions } from "../protocols/known-options.ts";
import { faultKinds } from "./budgets.ts";
import { type Exploration, type ExploreOptions, explore, exploreRules, type Progress } from "./explore.ts";

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
