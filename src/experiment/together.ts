/** What the threads of one check came to together. */
import { coverageTogether } from "../check/coverage.ts";
import { reachTogether } from "../check/reach.ts";
import { systemFor } from "../check/suite.ts";
import type { CheckRequest } from "./check-request.ts";
import type { CheckAnswer, CheckProgress } from "./explore.ts";

type Counted = Pick<CheckProgress, "states" | "transitions" | "depth" | "runs" | "memoryBytes">;

/** The violation in the earliest run is the answer, as it is where one thread makes all runs; what was done is summed. */
export function answerTogether({ spec }: CheckRequest, answers: readonly CheckAnswer[]): CheckAnswer {
  const earliest = answers.reduce((a, b) => (orderOf(b) < orderOf(a) ? b : a));
  const { protocol } = systemFor(spec);
  const reports = answers.flatMap(({ coverage }) => coverage ?? []);
  return {
    ...earliest,
    ...countedTogether(answers),
    reached: earliest.checked.flatMap(({ name }) =>
      answers.some(({ reached }) => reached.includes(name)) ? name : [],
    ),
    ended: answers.find(({ ended }) => ended !== null)?.ended ?? null,
    coverage: reports.length === 0 ? null : coverageTogether(protocol, reports),
    reach: reachTogether(
      protocol,
      answers.map(({ reach }) => reach),
    ),
  };
}

const orderOf = ({ violatingRun }: CheckAnswer): number => violatingRun ?? Number.POSITIVE_INFINITY;

/** @param parts how far each thread is that has said so. */
export function progressTogether(parts: readonly CheckProgress[]): CheckProgress {
  const isShrinking = parts.some(({ phase }) => phase === "shrinking");
  return { phase: isShrinking ? "shrinking" : "searching", ...countedTogether(parts) };
}

function countedTogether(parts: readonly Counted[]): Counted {
  const sum = (count: "states" | "transitions" | "runs"): number =>
    parts.reduce((total, part) => total + (part[count] ?? 0), 0);
  return {
    states: sum("states"),
    transitions: sum("transitions"),
    depth: Math.max(...parts.map(({ depth }) => depth)),
    runs: parts.every(({ runs }) => runs === null) ? null : sum("runs"),
    // Threads of one process share its memory.
    memoryBytes: Math.max(...parts.map(({ memoryBytes }) => memoryBytes)),
  };
}
