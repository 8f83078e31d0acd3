/** `coterie check`: every behaviour of a protocol within bounds, or as many as time allows. */
import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import type { TimerMode } from "../check/model.ts";
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { protocolNames } from "../protocols/index.ts";
import { vectorClocks } from "../trace/causality.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { excerptOf } from "../trace/excerpt.ts";
import { type Trace, writeTrace } from "../trace/file.ts";
import type { TraceHeader } from "../trace/header.ts";
import { drawSvg } from "../trace/picture/svg.ts";
import { wholeNumber } from "./arguments.ts";
import { type CheckOutcome, checkText, missing, progressText, whyUnknown } from "./check-report.ts";
import type { CheckAnswer, CheckProgress, CheckTask } from "./check-search.ts";
import { answerTogether, progressTogether } from "./check-together.ts";
import { type CheckRequest, type CheckWords, requestFrom, strategies } from "./check-words.ts";
import { workTogether } from "./interruptible.ts";
import type { Invocation, Output } from "./invocation.ts";
import { progressLine } from "./progress.ts";
import { sharedRuns } from "./shared-runs.ts";
import { jsonObject, nodeList, nodesOrAll } from "./sim-words.ts";
import { paintFor } from "./terminal.ts";

const MAX_NODES = 64;
const MANY = 1_000_000_000;
const MAX_WORKERS = 64;
const LOG_EVERY_MS = 5_000;

interface CheckOptions extends Omit<CheckWords, "notices"> {
  readonly failureDetector?: CheckWords["notices"];
  readonly trace?: string;
  readonly svg?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Looks for a run that violates a property of a protocol: in every order of events, with every fault.")
    .argument("<protocol>", protocolNames.join(", "));
  addOutput(addSearch(addFaults(addSystem(command))))
    .addHelpText("after", EXPLANATION)
    .action((protocol: string, options: CheckOptions) => check(protocol, options, invocation));
}

const timerModes: readonly TimerMode[] = ["free", "quiet", "never"];

/** @throws UsageError */
function timerMode(text: string): TimerMode {
  const found = timerModes.find((mode) => mode === text);
  if (found !== undefined) return found;
  const renamed = text === "synchronous" ? ": what was called synchronous is called quiet" : "";
  throw new UsageError("bad-argument", `${unexpected("--timers", "free, quiet or never", text)}${renamed}`);
}

const whole = (word: string, min = 0) => wholeNumber(word, min, MANY);

function addSystem(command: Command): Command {
  return command
    .option("--nodes <n>", "how many nodes, with ids from 0 (default: 3)", wholeNumber("--nodes", 1, MAX_NODES))
    .option("--ring <list>", "ids in the order of the ring, such as 1,15,9,4", nodeList("--ring"))
    .option("--variant <name>", "another form of the protocol")
    .option("--options <json>", "the protocol's own options", jsonObject("--options"))
    .option(
      "--call <list|all>",
      "election: who may call it (default: the lowest; nobody where starting is enough)",
      nodesOrAll("--call"),
    )
    .option("--request <list|all>", "mutual exclusion: who may ask to enter (default: all)", nodesOrAll("--request"))
    .option("--entries <k>", "mutual exclusion: how often each enters (default: 1)", whole("--entries", 1))
    .option("--send <list|all>", "multicast: who may send (default: all)", nodesOrAll("--send"))
    .option("--messages <k>", "multicast: how many messages each (default: 1)", whole("--messages", 1))
    .option("--propose <list|all>", "consensus: who may propose (default: the lowest)", nodesOrAll("--propose"));
}

function addFaults(command: Command): Command {
  return command
    .option(
      "--timers <when>",
      "free: at any time; quiet: when no message is on its way; never (default: free)",
      timerMode,
    )
    .addOption(
      new Option(
        "--begin <how>",
        "idle: running quietly; down: each starts when it likes; together: all start first",
      ).choices(["idle", "down", "together"]),
    )
    .addOption(
      new Option("--network <kind>", "fifo: links keep their order; inbox; bag: no order (default: fifo)").choices([
        "fifo",
        "inbox",
        "bag",
      ]),
    )
    .option("--crashes <k>", "at most so many nodes crash (default: 0)", whole("--crashes"))
    .option("--within-step", "crashes strike within a step, too: what it was still to send is never sent")
    .option("--recoveries <k>", "at most so many of them start again (default: 0)", whole("--recoveries"))
    .option("--losses <k>", "at most so many messages are lost (default: 0)", whole("--losses"))
    .option("--duplications <k>", "at most so many arrive twice (default: 0)", whole("--duplications"))
    .addOption(new Option("--journal <fate>", "what a crash leaves of it (default: kept)").choices(["kept", "lost"]))
    .option("--fewest-faults", "try none, then one, then two of these faults, until something breaks")
    .addOption(
      new Option(
        "--failure-detector [when]",
        "every alive node is notified of a crash, if the protocol handles that: at any time, or last, after all messages of the crashed node have arrived (default without a word: any)",
      )
        .choices(["any", "last"])
        .preset("any"),
    );
}

function addSearch(command: Command): Command {
  return command
    .option("--property <name>", "check this one only")
    .addOption(new Option("--strategy <name>", "bfs and dfs see every run, the others some").choices([...strategies]))
    .option("--seed <n>", "random strategies: equal seeds give equal runs (default: 1)", whole("--seed"))
    .option("--runs <k>", "random strategies: how many runs (default: 10,000)", whole("--runs", 1))
    .option("--steps <k>", "random strategies: how many moves per run at most (default: 500)", whole("--steps", 1))
    .option(
      "--workers <n>",
      "random strategies: how many threads share out the runs (default: the number of cores, at most 8)",
      wholeNumber("--workers", 1, MAX_WORKERS),
    )
    .option("--max-states <n>", "stop after so many states", whole("--max-states", 1))
    .option("--max-depth <n>", "look at runs of so many moves at most", whole("--max-depth", 1))
    .option("--max-in-flight <n>", "leave out runs with more messages on their way", whole("--max-in-flight"))
    .option("--max-timeouts <n>", "leave out runs with more time-outs", whole("--max-timeouts"))
    .option("--max-memory <MB>", "stop when the process has grown so large", whole("--max-memory", 1));
}

function addOutput(command: Command): Command {
  return command
    .option("--trace <file>", "write the counterexample as a trace, for `coterie trace`")
    .option("--svg <file>", "draw the counterexample as a space-time diagram")
    .option("--coverage", "say which handlers ran, and in how many ways they ended")
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
  const { failureDetector: notices, ...words } = options;
  const request = requestFrom(protocol, notices === undefined ? words : { ...words, notices });
  const outcome = await searched(request, invocation);
  const run = traceOf(outcome);
  if (options.trace !== undefined && run !== null) write("--trace", options.trace, writeTrace(run.header, run.entries));
  if (options.svg !== undefined && run !== null) write("--svg", options.svg, drawSvg(excerptOf(run)));
  if (options.json === true) stdout.write(`${JSON.stringify(machineReadable(outcome))}\n`);
  else stdout.write(`${checkText(outcome, paintFor(stdout))}${hint(options, outcome.answer, stdout)}`);
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
  const { answerTo } = await import("./check-search.ts");
  return answerTo(task, (progress) => {
    show([progress]);
    return true;
  });
}

function machineReadable({ request, answer, seconds }: CheckOutcome): object {
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
function traceOf({ request, answer }: CheckOutcome): Trace | null {
  if (answer.trace === null) return null;
  const { violation } = answer.trace;
  const { protocol, variant = null, options = {}, nodes } = request.spec;
  const seed = answer.runs === null ? null : request.seed;
  const made = { kind: "trace", version: 1, madeBy: "checker", form: "model" } as const;
  const entries = answer.trace.entries as readonly TraceEntry[];
  const header: TraceHeader = { ...made, protocol, variant, options, nodes, seed, violation };
  return { header, entries, clocks: vectorClocks(entries) };
}

function write(word: string, file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-argument", `${unexpected(word, "a file that can be written", file)} (${code})`);
  }
}

/** What a newcomer might want next; not for a file or a pipe. */
function hint({ trace }: CheckOptions, answer: CheckAnswer, stdout: Output): string {
  if (answer.trace === null) return "";
  if (trace !== undefined) return `\n\`coterie trace ${trace} --svg\` draws it\n`;
  return stdout.isTTY ? "\n--trace FILE keeps this run, for `coterie trace FILE --svg` to draw\n" : "";
}
