import { describe, expect, it } from "vitest";
import { requestFrom } from "./check-request.ts";
import type { Experiment } from "./experiment.ts";
import {
  answerTo,
  answerTogether,
  type CheckAnswer,
  type CheckProgress,
  type CheckTask,
  noteViolated,
  progressTogether,
  sharedNumbers,
  sharedRuns,
} from "./explore.ts";

type Words = Omit<Experiment, "protocol">;

/** Bully with nodes that may start during an election. It can elect two leaders, but only in a late run. */
const late = { nodes: 4, timers: "quiet", begin: "down", strategy: "pct", seed: 1 } as const;
const sound = {
  nodes: 4,
  timers: "quiet",
  begin: "together",
  crashes: 2,
  failureDetector: "last",
  strategy: "swarm",
  runs: 60,
} as const;

const taskOf = (words: Words): CheckTask => ({
  request: requestFrom({ protocol: "bully", ...words }),
  shared: sharedRuns(),
});

/**
 * Runs searches that share the runs. Search `i + 1` begins in the middle of search `i`, after `begin[i]` of its runs.
 */
function answerOf(words: Words, begin: readonly number[]): { answer: CheckAnswer; parts: readonly CheckAnswer[] } {
  const task = taskOf(words);
  const parts: CheckAnswer[] = [];
  const work = (worker: number): void => {
    const answer = answerTo(task, ({ phase, runs }) => {
      if (phase === "searching" && runs === begin[worker]) work(worker + 1);
      return true;
    });
    parts.push(answer);
  };
  work(0);
  return { answer: answerTogether(task.request, parts), parts };
}

const gist = ({ verdict, property, violatingRun, shrunkFrom, loop, log, trace, reached }: CheckAnswer) => ({
  ...{ verdict, property, violatingRun, shrunkFrom, loop, log, trace, reached },
});

describe("threads that share the runs of a random search", () => {
  it("find the same violation as one thread", () => {
    const { answer: alone } = answerOf(late, []);
    const { answer, parts } = answerOf(late, [7, 12]);
    expect(alone).toMatchObject({ verdict: "violated", property: { name: "E1 safety" } });
    expect(alone.violatingRun).toBeGreaterThan(20);
    expect(parts.map(({ runs }) => runs)).toContain(7);
    expect(gist(answer)).toEqual(gist(alone));
    expect(answer.runs).toBe(alone.runs);
  });

  it("find nothing and do the same work if one thread finds nothing", () => {
    const { answer: alone } = answerOf(sound, []);
    const { answer, parts } = answerOf(sound, [10, 20]);
    expect(parts.map(({ runs }) => runs)).toEqual([30, 20, 10]);
    expect(alone).toMatchObject({ verdict: "unknown", property: null, violatingRun: null, runs: 60 });
    expect(gist(answer)).toEqual(gist(alone));
    const { runs, states, transitions, depth } = alone;
    expect(answer).toMatchObject({ runs, states, transitions, depth });
  });

  it("report the violation of the earliest run, even if another was found first", () => {
    const { answer: alone } = answerOf(late, []);
    const task = taskOf(late);
    const phases = new Set<string>();
    const note = ({ phase }: CheckProgress): boolean => phases.add(phase).size > 0;
    // A different thread is working on the earliest violating run, and has taken all earlier numbers.
    const numbers = sharedNumbers(task.shared, task.request.runs)[Symbol.iterator]();
    const earliest = alone.violatingRun ?? -1;
    for (let number = -1; number < earliest; ) number = numbers.next().value;
    const early = answerTo(task, note);
    expect(early).toMatchObject({ verdict: "violated" });
    expect(early.violatingRun).toBeGreaterThan(earliest);
    expect(phases).toContain("shrinking");
    expect(numbers.next().done).toBe(true);
    expect(gist(answerTogether(task.request, [early, alone]))).toEqual(gist(alone));
  });

  it("do not shrink a violation if an earlier run violates something", () => {
    const task = taskOf(late);
    noteViolated(task.shared, 0);
    const phases = new Set<string>();
    const inVain = answerTo(task, ({ phase }) => phases.add(phase).size > 0);
    expect(inVain.verdict).toBe("violated");
    expect([...phases]).toEqual(["searching"]);
  });

  it("combine their progress", () => {
    const part = { phase: "searching", runs: 2, states: 10, transitions: 8, depth: 3, memoryBytes: 500 } as const;
    const deeper = { ...part, depth: 6, memoryBytes: 400 };
    const counts = { runs: 4, states: 20, transitions: 16, depth: 6, memoryBytes: 500 };
    expect(progressTogether([part, deeper])).toEqual({ phase: "searching", ...counts });
    expect(progressTogether([part, { ...deeper, phase: "shrinking" }])).toMatchObject({ phase: "shrinking" });
    expect(progressTogether([{ ...part, runs: null }]).runs).toBeNull();
  });

  it("stop together", () => {
    const task = taskOf(sound);
    const stopped = answerTo(task, ({ runs }: CheckProgress) => (runs ?? 0) < 5);
    const other = answerTo(task, () => true);
    expect([stopped.runs, other.runs]).toEqual([5, 0]);
    expect(answerTogether(task.request, [other, stopped])).toMatchObject({ ended: "stopped", runs: 5 });
  });
});
