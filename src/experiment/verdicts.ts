/** What one run says of each property. */
import type { Property, Vocabulary } from "../core/protocol.ts";
import type { Simulation } from "../sim/simulation.ts";
import type { Violation } from "../sim/watcher.ts";

export interface PropertyVerdict {
  readonly name: string;
  readonly claim: string;
  /**
   * Of this run. What leads to something is violated if a node has waited for it for more than half of the run, and for
   * 10 s at least. `unknown`: what is claimed may still come, or nobody looked when it would have counted.
   */
  readonly verdict: "holds" | "violated" | "unknown";
  /** Why it is not known; `so far` of what holds in a run that was cut off; empty otherwise. */
  readonly why: string;
  /** When the violation was seen. */
  readonly at: number | null;
}

/** @param watched whether properties were looked at all the time, or only in the end */
export function verdictsOf(
  sim: Simulation<Vocabulary>,
  properties: readonly Property<Vocabulary>[],
  watched: boolean,
): PropertyVerdict[] {
  const violations = new Map(sim.verdict().map((violation) => [violation.property, violation]));
  const { isOver, seen, now } = sim;
  return properties.map((property) => {
    const { name, claim } = property;
    const violation = violations.get(name);
    const why = whyUnknown(property, violation, { isOver, watched, seen, now });
    if (why !== "") return { name, claim, verdict: "unknown", why, at: null };
    if (violation !== undefined) return { name, claim, verdict: "violated", why, at: violation.at };
    return { name, claim, verdict: "holds", why: isOver || property.when === "sometimes" ? "" : "so far", at: null };
  });
}

interface Seen {
  readonly isOver: boolean;
  readonly watched: boolean;
  readonly seen: ReadonlySet<string>;
  readonly now: number;
}

/** Far above every delay, time-out and back-off of the registry's protocols. */
const LONG_MS = 10_000;

/** Whether a promise is broken rather than on its way: timers that run for ever would hide it otherwise. */
const isLong = (since: number, now: number): boolean => now - since >= Math.max(LONG_MS, now / 2);

function whyUnknown(
  { name, when }: Property<Vocabulary>,
  violation: Violation | undefined,
  { isOver, watched, seen, now }: Seen,
): string {
  if (violation !== undefined) {
    // What is owed when the run is cut off may still come.
    if (isOver || when === "always" || when === "quiescent") return "";
    const { waiting } = violation;
    if (waiting === undefined) return "not so when the run was cut off";
    return isLong(waiting.since, now) ? "" : `node ${waiting.node} still waited when the run was cut off`;
  }
  if (when === "sometimes") return seen.has(name) ? "" : "not seen in this run";
  if (when === "eventually") return "";
  if (!watched) return "looked at only in the end";
  return when === "quiescent" && !seen.has(name) ? "the run was never at rest" : "";
}
