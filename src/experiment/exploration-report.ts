/** What an exploration came to, as data. */
import { handlerNames } from "../check/coverage.ts";
import { isReached } from "../check/reach.ts";
import { systemFor } from "../check/suite.ts";
import { protocolNamed } from "../protocols/index.ts";
import { vectorClocks } from "../trace/causality.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import { type CheckRequest, isRandom } from "./check-request.ts";
import type { CheckAnswer } from "./explore.ts";
import { liarsIn } from "./recording-header.ts";

export interface CheckOutcome {
  readonly request: CheckRequest;
  readonly answer: CheckAnswer;
  readonly seconds: number;
}

/** The JSON of `coterie check`. */
export function explorationReport({ request, answer, seconds }: CheckOutcome): object {
  const { verdict, property, states, transitions, depth, runs, violatingRun, faults, coverage, trace } = answer;
  const { spec, strategy } = request;
  return {
    protocol: spec.protocol,
    nodes: spec.nodes.length,
    verdict,
    property: property?.name ?? null,
    claim: property?.claim ?? null,
    states,
    transitions,
    depth,
    seconds,
    strategy,
    runs,
    run: violatingRun === null ? null : violatingRun + 1,
    why: verdict === "unknown" ? whyUnknown(request, answer) : null,
    reached: { ...answer.reach, missing: missing(request, answer) },
    ...(faults === null ? {} : { faults }),
    ...(coverage === null ? {} : { coverage }),
    loopFrom: trace?.violation?.loopFrom ?? null,
    trace: trace?.entries ?? null,
  };
}

/** The counterexample as it stands in a file. */
export function counterexampleTrace({ request, answer }: CheckOutcome): Trace | null {
  if (answer.trace === null) return null;
  const { violation } = answer.trace;
  const { protocol, variant = null, options = {}, nodes, byzantine: liars } = request.spec;
  const seed = answer.runs === null ? null : request.seed;
  const made = { kind: "trace", version: 1, madeBy: "checker", form: "model" } as const;
  const entries = answer.trace.entries as readonly TraceEntry[];
  return {
    header: { ...made, protocol, variant, options, nodes, seed, ...liarsIn(liars), violation },
    entries,
    clocks: vectorClocks(entries),
  };
}

/** What was done in no run, though it is what the algorithm is for. Empty where a run breaks something. */
export function missing({ spec }: CheckRequest, { reach, verdict }: CheckAnswer): string[] {
  if (verdict === "violated") return [];
  const { done } = protocolNamed(spec.protocol).family;
  const isToSuspect = (spec.crashes ?? 0) > 0 && hears(spec);
  const suspects =
    isReached(reach, "suspected") || Object.keys(reach.handlers).some((name) => name.endsWith("suspect"));
  return [
    ...(isReached(reach, done.event) ? [] : [done.none]),
    ...(isToSuspect && !suspects && done.event !== "suspected" ? ["nobody was suspected of a crash"] : []),
  ];
}

/** Whether nodes could be told of a crash here: by a failure detector among their parts, or by crash notifications. */
function hears(spec: CheckRequest["spec"]): boolean {
  const hasDetector = handlerNames(systemFor(spec).protocol).some((each) => /\bdetector\b/.test(each));
  return hasDetector || protocolNamed(spec.protocol).check.crashNotification !== undefined;
}

/** What left something out. */
export function whyUnknown({ spec, strategy }: CheckRequest, { ended, states }: CheckAnswer): string {
  if (ended === "stopped") return "it was stopped before it had looked at everything";
  if (ended === "memory") return "it reached --max-memory";
  if (isRandom(strategy)) return "random runs find violations, and prove nothing";
  if (spec.maxStates !== undefined && states >= spec.maxStates) return "it reached --max-states";
  const bounds = cutOffBy(spec);
  if (bounds.length > 0) return `runs beyond ${bounds.join(" and ")} were cut off`;
  return "there are more states than can be held: give a smaller system";
}

export function cutOffBy({ maxDepth, maxInFlight, maxTimeouts }: CheckRequest["spec"]): string[] {
  return [
    ...(maxDepth === undefined ? [] : ["--max-depth"]),
    ...(maxInFlight === undefined ? [] : ["--max-in-flight"]),
    ...(maxTimeouts === undefined ? [] : ["--max-timeouts"]),
  ];
}
