/** `coterie check`: explores every run of a protocol within given bounds, or random runs. */
import { availableParallelism } from "node:os";
import type { Command } from "commander";
import { loadProtocol } from "../../cluster/protocol-file.ts";
import { type CheckRequest, requestFrom } from "../../experiment/check-request.ts";
import type { CounterexampleLog } from "../../experiment/counterexample-log.ts";
import { type Experiment, optionsFor } from "../../experiment/experiment.ts";
import {
  assumptionsOf,
  breakingFaults,
  type CheckOutcome,
  counterexampleTrace,
  deadlocks,
  explorationReport,
  missing,
  scopeOf,
  whatNext,
  whyUnknown,
} from "../../experiment/exploration-report.ts";
import {
  answerTogether,
  type CheckAnswer,
  type CheckProgress,
  type CheckTask,
  progressTogether,
  sharedRuns,
} from "../../experiment/explore.ts";
import { counted, figure } from "../../experiment/paragraph.ts";
import { drawnAs } from "../../protocols/message-inks.ts";
import { excerptOf } from "../../trace/excerpt.ts";
import { writeTrace } from "../../trace/file.ts";
import { drawSvg } from "../../trace/picture/svg.ts";
import { requireWritable, writeWhole } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { addOptions } from "../options.ts";
import {
  broken,
  ExitWith,
  type Invocation,
  indented,
  type Output,
  print,
  progressLine,
  type Report,
  styled,
} from "../output.ts";
import { Threads, workTogether } from "./threads.ts";

const LOG_EVERY_MS = 5_000;

interface CheckOptions extends Omit<Experiment, "protocol"> {
  readonly trace?: string;
  readonly svg?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description(
      "Searches for a run that violates a property of a protocol, trying every order of events and every fault.",
    )
    .argument("<protocol>", "name of a protocol (see `coterie protocols`), or your own file (./mine.ts)");
  addOptions(command, optionsFor.explore, "explore", COMMON);
  addOutput(command).action((protocol: string, options: CheckOptions) => check(protocol, options, invocation));
}

function addOutput(command: Command): Command {
  return command
    .option("--trace <file>", "write the counterexample as a trace")
    .option("--svg <file>", "draw the counterexample as a space-time diagram")
    .option("--json", "print the answer as JSON");
}

/** The options that `--help` describes. The others are only listed by name. */
const COMMON = [
  "nodes",
  "variant",
  "timers",
  "network",
  "crashes",
  "losses",
  "property",
  "strategy",
  "seed",
  "runs",
  "maxStates",
  "maxDepth",
];

const manual: Manual = {
  examples: [
    "coterie check bully --nodes 3",
    "coterie check bully --nodes 3 --timers quiet",
    "coterie check paxos --strategy pct --runs 100000 --losses 3",
    "coterie check ricart-agrawala --nodes 3 --crashes 1",
    "coterie check ./mine.ts --nodes 3",
  ],
  exitCodes: "0 holds; 1 violated, or unknown (not a pass); 2 invalid arguments",
  details: `The first example finds a violation caused by a timer that is faster than a message. The second assumes that messages are faster than
timers, and holds. The last one finds a violation, because nodes wait for the crashed node.

\`--timers quiet\` assumes that messages are faster than timers. A verdict of \`holds\` under this assumption is confirmed by simulated
runs with bounded delays, and does not cover runs that break the assumption. The report lists the events and handlers that were
reached; the verdict does not cover any others.

\`bfs\` and \`dfs\` visit every state. If there are too many states, set \`--max-depth\`, \`--max-in-flight\` or \`--max-timeouts\`, limit the
search with \`--max-states\` or \`--max-memory\`, or use fewer nodes and faults. \`random\`, \`pct\` and \`swarm\` try only some of the runs;
their result does not depend on \`--workers\`. Ctrl-C ends the search and reports the result so far; a second Ctrl-C ends it at once.

With \`--json\`:

\`\`\`json
{ "protocol", "nodes", "verdict": "holds" | "violated" | "unknown", "property", "claim", "states", "transitions", "depth",
  "seconds", "strategy", "runs", "run", "why", "reached", "loopFrom", "trace": [entry, …] | null }
\`\`\`

\`run\` is the number of the random run with the violation. \`why\` gives the reason for an unknown verdict. \`loopFrom\` is the index in
\`trace\` where the run starts to repeat forever. \`reached\` is \`{ "events": { event: situations }, "handlers": { handler: situations }, "never": [handler],
"missing": [text] }\`. \`--fewest-faults\` adds \`"faults": { "breaking": k | null, "harmless": k }\`.`,
};

async function check(protocol: string, options: CheckOptions, invocation: Invocation): Promise<void> {
  const { stdout } = invocation;
  const { trace: _trace, svg: _svg, json: _json, ...words } = options;
  const request = requestFrom({ ...words, protocol: await loadProtocol(protocol) }, availableParallelism());
  requireWritable({ "--trace": options.trace, "--svg": options.svg });
  const outcome = await searched(request, invocation);
  const run = counterexampleTrace(outcome);
  if (options.trace !== undefined && run !== null)
    writeWhole("--trace", options.trace, writeTrace(run.header, run.entries));
  if (options.svg !== undefined && run !== null)
    writeWhole("--svg", options.svg, drawSvg(excerptOf(run), drawnAs(run.header.protocol)));
  print(checkReport(outcome, hint(options, outcome.answer, stdout)), options, stdout);
  if (outcome.answer.verdict !== "holds") throw new ExitWith(1);
}

async function searched(request: CheckRequest, { stderr, usesThreads }: Invocation): Promise<CheckOutcome> {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1_000;
  const line = progressLine(stderr, LOG_EVERY_MS);
  const task: CheckTask = { request, shared: sharedRuns() };
  const show: Show = (parts) => line.show(() => progressText(progressTogether(parts), seconds()));
  try {
    const answers = usesThreads
      ? await workTogether(new Threads("check", request.workers), task, show)
      : [await here(task, show)];
    return { request, answer: answerTogether(request, answers), seconds: seconds() };
  } finally {
    line.clear();
  }
}

type Show = (parts: readonly CheckProgress[]) => void;

async function here(task: CheckTask, show: Show): Promise<CheckAnswer> {
  const { answerTo } = await import("../../experiment/explore.ts");
  const see = (progress: CheckProgress): boolean => {
    show([progress]);
    return true;
  };
  return answerTo(task, see, process.memoryUsage.rss);
}

/** Returns a suggestion for new users. Shown only on a terminal. */
function hint({ trace }: CheckOptions, answer: CheckAnswer, stdout: Output): string {
  if (answer.trace === null) return "";
  if (trace !== undefined) return `\`coterie trace ${trace} --svg\` draws it`;
  return stdout.isTTY ? "--trace FILE saves this run, and `coterie trace FILE --svg` draws it" : "";
}

/** @param hint printed below the report, unless it is empty */
export function checkReport(outcome: CheckOutcome, hint = ""): Report {
  const { request, answer, seconds } = outcome;
  const { spec } = request;
  const form = typeof spec.variant === "string" ? `${spec.protocol} (${spec.variant})` : spec.protocol;
  return {
    json: explorationReport(outcome),
    sections: [
      [
        `${styled("bold", form)}: ${spec.nodes.length} nodes, ${scopeOf(request)}`,
        ...assumptionsOf(request, answer).map(indented),
      ],
      [...verdictLines(request, answer), ...reachLines(request, answer)],
      ...(answer.log === null ? [] : [logLines(answer, answer.log)]),
      [styled("dim", work(request, answer, seconds))],
      hint === "" ? [] : [hint],
    ],
  };
}

function verdictLines(request: CheckRequest, answer: CheckAnswer): string[] {
  const { verdict, property, checked, reached } = answer;
  if (verdict === "violated" && property !== null) {
    const isSought = checked.some(({ name, when }) => name === property.name && when === "sometimes");
    const why = isSought ? "No run reaches it." : "The initial state violates it.";
    const never = answer.log === null ? [indented(why)] : [];
    return [
      `${styled(["bold", "red"], "✗ violated")}  ${styled("bold", property.name)}`,
      indented(property.claim),
      ...never,
      ...breakingFaults(answer).map(indented),
    ];
  }
  if (verdict === "holds")
    return [
      styled(["bold", "green"], "✓ holds"),
      ...breakingFaults(answer).map(indented),
      ...checked.map(({ name, claim: words }) => `  ${styled("bold", name)}: ${broken(words, 2)}`),
    ];
  const seen = reached.length === 0 ? [] : [indented(`reached: ${reached.join(", ")}`)];
  return [
    `${styled(["bold", "yellow"], "? unknown")}  no violation found, but the search was incomplete (not a pass)`,
    indented(whyUnknown(request, answer)),
    indented(whatNext(request, answer)),
    ...seen,
  ];
}

function reachLines(request: CheckRequest, answer: CheckAnswer): string[] {
  if (answer.verdict === "violated") return [];
  const { events, never } = answer.reach;
  const seen = Object.entries(events).map(([event, times]) => `${event} ${figure(times)}`);
  const lacking = missing(request, answer);
  return [
    ...lacking.map((what) => styled("yellow", `  in these runs ${what}: they show nothing about that`)),
    indented(`reached, with the number of situations: ${seen.length === 0 ? "no event" : seen.join(", ")}`),
    ...(never.length === 0 ? [] : [indented(`handlers that never ran: ${never.join(", ")}`)]),
  ];
}

function ending(loop: number | null, length: number): string[] {
  if (loop === null) return [];
  return loop < length ? [`  … and so on from step ${loop + 1}, forever`] : ["  … and nothing more has to happen"];
}

function logLines(answer: CheckAnswer, { steps, standing }: CounterexampleLog): string[] {
  const locked = deadlocks(answer).map((line) => broken(line, 2));
  const { loop, shrunkFrom, violatingRun } = answer;
  const width = String(steps.length).length + 2;
  const lines = steps.flatMap(({ deed, consequences }, at) => {
    const number = styled("dim", String(at + 1).padStart(width));
    const mark = loop === at ? [styled("yellow", `${" ".repeat(width)}  ┌ repeats from here on`)] : [];
    const led = consequences.join("; ");
    const fits = width + 2 + deed.length + 4 + led.length <= 80;
    const arrow = fits ? `  → ${led}` : `\n${" ".repeat(width + 4)}→ ${broken(led, width + 6)}`;
    const said = led === "" ? "" : styled("dim", arrow);
    return [...mark, `${number}  ${deed}${said}`];
  });
  return [
    ...lines,
    ...ending(loop, steps.length),
    "",
    ...(violatingRun === null ? [] : [`Found in run ${violatingRun + 1}.`]),
    ...(shrunkFrom === null || shrunkFrom === steps.length
      ? []
      : [`Shrunk from ${shrunkFrom} moves to ${steps.length}.`]),
    ...(locked.length === 0 ? [] : [...locked, ""]),
    "Final states",
    ...standing.flatMap(({ node, role, state }) => [
      `  node ${node}  ${role}`,
      ...stateLines(state).map((line) => styled("dim", line)),
    ]),
  ];
}

/** Returns the lines that show a complete state, one for each part of an assembly. */
function stateLines(state: object | null): string[] {
  if (state === null) return [];
  const fields = Object.entries(state);
  const areParts = fields.every(([, value]) => typeof value === "object" && value !== null && !Array.isArray(value));
  const parts: [string, object][] = areParts && fields.length > 0 ? fields : [["", state]];
  return parts.map(([part, inner]) => {
    const text = Object.entries(inner).map(
      ([field, value]) => `${field}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    return `${" ".repeat(STATE_INDENT)}${broken([...(part === "" ? [] : [`${part}:`]), ...text].join(" "), STATE_INDENT + 2)}`;
  });
}

const STATE_INDENT = 10;

function work({ workers }: CheckRequest, answer: CheckAnswer, seconds: number): string {
  const { states, transitions, depth, runs, memoryBytes } = answer;
  const made = runs === null ? "" : `${counted(runs, { one: "run", more: "runs" })}, `;
  const counts = `${made}${figure(states)} states${runs === null ? "" : " visited"}`;
  const rate = seconds < 0.1 ? "" : ` (${figure(Math.round(states / seconds))} states/s)`;
  const threads = workers === 1 ? "" : ` on ${workers} threads`;
  return `${counts}, ${figure(transitions)} transitions, depth ${depth}, ${figure(seconds)} s${rate}${threads}, ${megabytes(memoryBytes)}`;
}

/** Returns the line that shows the progress of a search. */
export function progressText(progress: CheckProgress, seconds: number): string {
  const { phase, runs, states, transitions, depth, memoryBytes } = progress;
  if (phase === "shrinking") return `violated; searching for a shorter run, ${figure(seconds)} s`;
  if (phase === "following") return `${figure(states)} states; searching for endless runs, ${figure(seconds)} s`;
  const count = runs === null ? "" : `${figure(runs)} runs, `;
  const rate = figure(Math.round(states / Math.max(seconds, 0.001)));
  return `${count}${figure(states)} states, ${figure(transitions)} transitions, ${rate} states/s, depth ${depth}, ${megabytes(memoryBytes)}`;
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;
