/** Runs an exploration in the worker and describes its result. This module is loaded on demand. */
import { requestFrom } from "../../../../src/experiment/check-request.ts";
import { type Experiment, requireOptionsFor } from "../../../../src/experiment/experiment.ts";
import { counterexampleTrace, whyUnknown } from "../../../../src/experiment/exploration-report.ts";
import { answerTo, ownRuns } from "../../../../src/experiment/explore.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import type { CheckShown, OnProgress } from "./answers.ts";

export function checked(
  experiment: Experiment,
  onProgress: OnProgress,
): { readonly shown: CheckShown; readonly trace: Trace | null } {
  requireOptionsFor("explore", experiment);
  const request = requestFrom(experiment);
  const answer = answerTo({ request, shared: ownRuns() }, ({ phase, states, transitions, depth }) => {
    onProgress({ phase, states, transitions, depth, events: 0 });
    return true;
  });
  const trace = counterexampleTrace({ request, answer, seconds: 0 });
  const { verdict, property, states, transitions, depth, log, checked: all, faults } = answer;
  return {
    trace,
    shown: {
      verdict,
      property: property?.name ?? null,
      claim: property?.claim ?? null,
      why: verdict === "unknown" ? whyUnknown(request, answer) : null,
      states,
      transitions,
      depth,
      steps: log?.steps.map(({ deed, consequences }) => [deed, ...consequences].join("; ")) ?? [],
      checked: all.map(({ name, claim }) => ({ name, claim })),
      hasTrace: trace !== null,
      faults,
    },
  };
}
