/** `coterie check`: every behaviour of a protocol within bounds, or as many as time allows. */

import { availableParallelism } from "node:os";
import type { Command } from "commander";
import { InvariantViolation } from "../core/errors.ts";
import { type CheckRequest, requestFrom } from "../experiment/check-request.ts";
import type { Experiment } from "../experiment/experiment.ts";
import { type CheckOutcome, counterexampleTrace, whyUnknown } from "../experiment/exploration-report.ts";
import type { CheckAnswer, CheckProgress, CheckTask } from "../experiment/explore.ts";
import { optionsFor } from "../experiment/options.ts";
import { sharedRuns } from "../experiment/shared-runs.ts";
import { answerTogether, progressTogether } from "../experiment/together.ts";
import { protocolNames } from "../protocols/index.ts";
import { drawnAs } from "../protocols/message-inks.ts";
import { excerptOf } from "../trace/excerpt.ts";
import { writeTrace } from "../trace/file.ts";
import { drawSvg } from "../trace/picture/svg.ts";
import { checkReport, progressText } from "./check-report.ts";
import { addOptions } from "./experiment-options.ts";
import { workTogether } from "./interruptible.ts";
import type { Invocation, Output } from "./invocation.ts";
import { progressLine } from "./progress.ts";
import { print } from "./report.ts";
import { requireWritable, writeWhole } from "./written-file.ts";

const LOG_EVERY_MS = 5_000;

interface CheckOptions extends Omit<Experiment, "protocol"> {
  readonly trace?: string;
  readonly svg?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Looks for a run that violates a property of a protocol: in every order of events, with every fault.")
    .argument("<protocol>", protocolNames.join(", "));
  addOptions(command, optionsFor.explore, "explore");
  addOutput(command)
    .addHelpText("after", EXPLANATION)
    .action((protocol: string, options: CheckOptions) => check(protocol, options, invocation));
}

function addOutput(command: Command): Command {
  return command
    .option("--trace <file>", "write the counterexample as a trace, for `coterie trace`")
    .option("--svg <file>", "draw the counterexample as a space-time diagram")
    .option("--json", "print the answer as JSON");
}

const EXPLANATION = `
Example:
  $ coterie check bully --nodes 3                          violated: a timer that is faster than a message
  $ coterie check bully --nodes 3 --timers quiet     holds
  $ coterie check ricart-agrawala --nodes 3 --crashes 1    violated: who waits for the crashed one
  $ coterie check paxos --strategy pct --runs 100000 --losses 3

--timers quiet leaves out what the order of two timers decides, and exchanges that take longer than a timer: a bound on
delay allows both. "holds" with it is backed by simulated runs with delays within their bounds, and proves no more.

What was reached stands below the verdict: what nodes emitted, in how many situations, and which handlers never ran. A
verdict says nothing of what was not reached.

bfs and dfs search on one thread besides the terminal's: every state has to be compared with all others. random, pct and
swarm share their runs out among threads; what they find is the same however many --workers there are.

Where ballots, clocks or messages grow for ever, or are too many, bfs and dfs do not come to an end by themselves. Bound
them with --max-depth, --max-in-flight or --max-timeouts, stop them with --max-states or --max-memory, give fewer nodes and
faults, or try --strategy pct, which looks at some runs and is soon done.

Ctrl-C ends the search with what it has; a second one ends it at once.

With --json: { "protocol", "nodes", "verdict": "holds" | "violated" | "unknown", "property", "claim", "states",
  "transitions", "depth", "seconds", "strategy", "runs", "run", "why", "reached", "loopFrom", "trace": [entry, …] | null }
"run" says in which of the random runs it was found, "why" what left something out where the verdict is unknown.
"reached": { "events": { event: situations }, "handlers": { handler: situations }, "never": [handler], "missing": [text] }
"missing" says what was done in no run, though it is what the algorithm is for, such as "nobody entered".
"loopFrom" is the index of the entry of "trace" from which on it repeats for ever. --fewest-faults adds
"faults": { "breaking": k | null, "harmless": k }, --coverage adds
"coverage": { "handlers": [{ "handler", "runs", "endings": [{ "what", "runs" }] }], "never": [handler] }.
Exit codes: 0 holds; 1 violated, or unknown, which is never a pass; 2 wrong arguments.`;

async function check(protocol: string, options: CheckOptions, invocation: Invocation): Promise<void> {
  const { stdout } = invocation;
  const { trace: _trace, svg: _svg, json: _json, ...words } = options;
  const request = requestFrom({ ...words, protocol }, availableParallelism());
  requireWritable({ "--trace": options.trace, "--svg": options.svg });
  const outcome = await searched(request, invocation);
  const run = counterexampleTrace(outcome);
  if (options.trace !== undefined && run !== null)
    writeWhole("--trace", options.trace, writeTrace(run.header, run.entries));
  if (options.svg !== undefined && run !== null)
    writeWhole("--svg", options.svg, drawSvg(excerptOf(run), drawnAs(run.header.protocol)));
  print(checkReport(outcome, hint(options, outcome.answer, stdout)), options, stdout);
  const { verdict, property } = outcome.answer;
  if (verdict === "violated") throw new InvariantViolation("violated", `violated: ${property?.name}`);
  if (verdict === "unknown") throw new InvariantViolation("unknown", `unknown: ${whyUnknown(request, outcome.answer)}`);
}

async function searched(request: CheckRequest, { stderr, usesThreads }: Invocation): Promise<CheckOutcome> {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1_000;
  const line = progressLine(stderr, LOG_EVERY_MS);
  const task: CheckTask = { request, shared: sharedRuns() };
  const show: Show = (parts) => line.show(() => progressText(progressTogether(parts), seconds()));
  try {
    const answers = usesThreads ? await onThreads(task, show) : [await here(task, show)];
    return { request, answer: answerTogether(request, answers), seconds: seconds() };
  } finally {
    line.clear();
  }
}

type Show = (parts: readonly CheckProgress[]) => void;

async function onThreads(task: CheckTask, show: Show): Promise<readonly CheckAnswer[]> {
  const thread = new URL("./check-thread.js", import.meta.url);
  const { workers } = task.request;
  return (await workTogether<CheckTask, CheckProgress, CheckAnswer>(thread, task, workers, show)).answer;
}

async function here(task: CheckTask, show: Show): Promise<CheckAnswer> {
  const { answerTo } = await import("../experiment/explore.ts");
  const see = (progress: CheckProgress): boolean => {
    show([progress]);
    return true;
  };
  return answerTo(task, see, process.memoryUsage.rss);
}

/** What a newcomer might want next; not for a file or a pipe. */
function hint({ trace }: CheckOptions, answer: CheckAnswer, stdout: Output): string {
  if (answer.trace === null) return "";
  if (trace !== undefined) return `\`coterie trace ${trace} --svg\` draws it`;
  return stdout.isTTY ? "--trace FILE keeps this run, for `coterie trace FILE --svg` to draw" : "";
}
