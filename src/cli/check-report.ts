/** What a check came to, for people. */

import type { CrashNotificationTime } from "../check/model.ts";
import { type CheckRequest, isRandom } from "../experiment/check-request.ts";
import { type CounterexampleLog, waitCycle } from "../experiment/counterexample-log.ts";
import { type CheckOutcome, cutOffBy, missing, whyUnknown } from "../experiment/exploration-report.ts";
import type { CheckAnswer, CheckProgress } from "../experiment/explore.ts";
import { figure, spans, wrapped } from "../experiment/paragraph.ts";
import { protocolNamed } from "../protocols/index.ts";
import { type Paint, table } from "./terminal.ts";

const INDENT = 2;

export function checkText({ request, answer, seconds }: CheckOutcome, paint: Paint): string {
  const { spec } = request;
  const form = typeof spec.variant === "string" ? `${spec.protocol} (${spec.variant})` : spec.protocol;
  const lines = [
    `${paint("bold", form)}: ${spec.nodes.length} nodes, ${scope(request)}`,
    ...assumptions(request, answer).map((words) => `  ${wrapped(words, INDENT)}`),
    "",
    ...verdictLines(request, answer, paint),
    ...reachLines(request, answer, paint),
    ...(answer.log === null ? [] : ["", ...logLines(answer, answer.log, paint)]),
    ...coverageLines(answer, paint),
    "",
    paint("dim", work(request, answer, seconds)),
  ];
  return `${lines.join("\n")}\n`;
}

function scope({ strategy, seed, runs, steps }: CheckRequest): string {
  if (strategy === "bfs") return "every run within the bounds, the shortest first";
  if (strategy === "dfs") return "every run within the bounds, depth first";
  const how = { random: "random runs", pct: "runs by random priorities (PCT)", swarm: "random runs of a swarm" }[
    strategy
  ];
  return `${figure(runs)} ${how} of at most ${figure(steps)} moves, seed ${seed}`;
}

function assumptions(request: CheckRequest, { system }: CheckAnswer): string[] {
  const { spec } = request;
  const links = {
    fifo: "every link keeps its order",
    inbox: "every node has one inbox, in the order of sending",
    bag: "messages overtake each other",
  };
  const timers = {
    free: "timers may run out at any time, however fast messages are",
    quiet: "timers run out only when no message is on its way, so none overtakes a message",
    rounds: "rounds end at all nodes together, when no message is on its way",
    never: "timers do not run out",
  };
  const begin = {
    idle: "nodes have been running quietly",
    down: "nodes start when they like",
    together: "all nodes start before anything else happens",
  };
  return [
    `${begin[system.begin]}${workOf(request)}`,
    links[system.network],
    timers[system.timers],
    faults(spec, system),
    ...cutOff(spec),
  ];
}

function cutOff({ maxDepth, maxInFlight, maxTimeouts }: CheckRequest["spec"]): string[] {
  const limits = [
    ...(maxDepth === undefined ? [] : [counted(maxDepth, { one: "move", more: "moves" })]),
    ...(maxInFlight === undefined
      ? []
      : [`${counted(maxInFlight, { one: "message", more: "messages" })} on their way`]),
    ...(maxTimeouts === undefined ? [] : [counted(maxTimeouts, { one: "time-out", more: "time-outs" })]),
  ];
  return limits.length === 0 ? [] : [`runs with more than ${limits.join(", or ")} are left out`];
}

function workOf({ spec: { protocol, initiators, nodes, times = 1 } }: CheckRequest): string {
  const { verb, count } = protocolNamed(protocol).family;
  if (verb === null || initiators?.length === 0) return "";
  const who =
    initiators === undefined || initiators.length === nodes.length
      ? "every node"
      : `${initiators.length === 1 ? "node" : "nodes"} ${spans(initiators)}`;
  const many = count === null ? "once" : counted(times, { one: singular[count], more: count });
  return `; ${who} may ${verb} ${many}`;
}

const singular = { entries: "entry", messages: "message", commands: "command", transactions: "transaction" } as const;

const toldOfCrashes: Readonly<Record<CrashNotificationTime, string>> = {
  any: "; everybody is told of a crash, at any time after it",
  last: "; everybody is told of a crash, after all that the crashed node sent to it",
};

function faults(spec: CheckRequest["spec"], { crashNotifications }: CheckAnswer["system"]): string {
  const budgets = [
    counted(spec.crashes ?? 0, { one: "crash", more: "crashes" }),
    counted(spec.recoveries ?? 0, { one: "recovery", more: "recoveries" }),
    counted(spec.losses ?? 0, { one: "lost message", more: "lost messages" }),
    counted(spec.duplications ?? 0, { one: "duplicated message", more: "duplicated messages" }),
  ].filter((words) => !words.startsWith("0 "));
  if (budgets.length === 0) return "no faults";
  const notified = (spec.crashes ?? 0) > 0 && crashNotifications !== null ? toldOfCrashes[crashNotifications] : "";
  const withinStep = (spec.crashes ?? 0) > 0 && spec.withinStep === true ? ", within a step, too" : "";
  const journal = spec.journal === "lost" ? "; a crash takes the journal with it" : "";
  return `at most ${budgets.join(", ")}${withinStep}${notified}${journal}`;
}

const counted = (count: number, { one, more }: { one: string; more: string }): string =>
  `${figure(count)} ${count === 1 ? one : more}`;

function verdictLines(request: CheckRequest, answer: CheckAnswer, paint: Paint): string[] {
  const { verdict, property, checked, reached } = answer;
  const claim = (words: string): string => `  ${wrapped(words, INDENT)}`;
  if (verdict === "violated" && property !== null) {
    const isSought = checked.some(({ name, when }) => name === property.name && when === "sometimes");
    const why = isSought ? "It was sought in every run, and none gets there." : "The initial state itself breaks it.";
    const never = answer.log === null ? [claim(why)] : [];
    return [
      `${paint(["bold", "red"], "✗ violated")}  ${paint("bold", property.name)}`,
      claim(property.claim),
      ...never,
      ...faultWords(answer).map(claim),
    ];
  }
  if (verdict === "holds")
    return [
      paint(["bold", "green"], "✓ holds"),
      ...faultWords(answer).map(claim),
      ...checked.map(({ name, claim: words }) => `  ${paint("bold", name)}: ${wrapped(words, INDENT)}`),
    ];
  const seen = reached.length === 0 ? [] : [claim(`seen to happen: ${reached.join(", ")}`)];
  return [
    `${paint(["bold", "yellow"], "? unknown")}  nothing was violated as far as was looked, which is no pass`,
    claim(whyUnknown(request, answer)),
    claim(whatNext(request, answer)),
    ...seen,
  ];
}

/** Of `--fewest-faults`. */
function faultWords({ faults }: CheckAnswer): string[] {
  if (faults === null) return [];
  const { breaking, harmless } = faults;
  const fault = { one: "fault", more: "faults" };
  const proven =
    harmless < 0 ? "" : harmless === 0 ? "; without any it holds" : `; with up to ${counted(harmless, fault)} it holds`;
  if (breaking === null) return harmless < 0 ? [] : [`with up to ${counted(harmless, fault)} of these kinds it holds`];
  if (breaking === 0) return ["it breaks without any fault"];
  return [`${counted(breaking, fault)} ${breaking === 1 ? "breaks" : "break"} it${proven}`];
}

function reachLines(request: CheckRequest, answer: CheckAnswer, paint: Paint): string[] {
  if (answer.verdict === "violated") return [];
  const { events, never } = answer.reach;
  const seen = Object.entries(events).map(([event, times]) => `${event} ${figure(times)}`);
  const lacking = missing(request, answer);
  return [
    ...lacking.map((what) => paint("yellow", `  in these runs ${what}: of that they say nothing`)),
    `  ${wrapped(`reached, in so many situations: ${seen.length === 0 ? "no event" : seen.join(", ")}`, INDENT)}`,
    ...(never.length === 0 ? [] : [`  ${wrapped(`never ran: ${never.join(", ")}`, INDENT)}`]),
  ];
}

function coverageLines({ coverage }: CheckAnswer, paint: Paint): string[] {
  if (coverage === null) return [];
  const rows = coverage.handlers.flatMap(({ handler, endings }) =>
    endings.map(({ what, runs }, i) => [i === 0 ? `  ${handler}` : "", figure(runs), what]),
  );
  const never = coverage.never.map((handler) => `  ${paint("yellow", handler)}  never ran`);
  return ["", "What ran, in how many situations, and how it ended", ...table(rows, (cell) => cell), ...never];
}

/** What the user can do about it. */
function whatNext({ spec, strategy }: CheckRequest, { ended, states }: CheckAnswer): string {
  if (isRandom(strategy))
    return "more --runs or another --seed may find some; --strategy bfs looks at every run, if there are not too many";
  const hasRunThrough = ended === null && (spec.maxStates === undefined || states < spec.maxStates);
  if (hasRunThrough && cutOffBy(spec).length > 0)
    return "higher bounds leave less out; --strategy pct looks at some long runs";
  return "with fewer nodes or faults it may be looked at as a whole; --max-depth looks at every short run of this system, --strategy pct at some long ones";
}

function logLines(answer: CheckAnswer, { steps, standing, waits }: CounterexampleLog, paint: Paint): string[] {
  const { loop, shrunkFrom, violatingRun } = answer;
  const width = String(steps.length).length + 2;
  const lines = steps.flatMap(({ deed, consequences }, at) => {
    const number = paint("dim", String(at + 1).padStart(width));
    const mark = loop === at ? [paint("yellow", `${" ".repeat(width)}  ┌ from here on again and again`)] : [];
    const led = consequences.join("; ");
    const fits = width + 2 + deed.length + 4 + led.length <= 80;
    const arrow = fits ? `  → ${led}` : `\n${" ".repeat(width + 4)}→ ${wrapped(led, width + 6)}`;
    const said = led === "" ? "" : paint("dim", arrow);
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
    ...(isOfWaiting(answer) ? waitLines(waits, standing) : []),
    "In the end",
    ...standing.flatMap(({ node, role, state }) => [
      `  node ${node}  ${role}`,
      ...stateLines(state).map((line) => paint("dim", line)),
    ]),
  ];
}

function ending(loop: number | null, length: number): string[] {
  if (loop === null) return [];
  return loop < length
    ? [`  … and so on from step ${loop + 1}, for ever`]
    : ["  … and nothing more is bound to happen"];
}

/** Nodes wait for each other in many states. It is why a run is a counterexample only where something should have happened and nothing more does. */
const isOfWaiting = ({ property, loop, log }: CheckAnswer): boolean =>
  (loop === null || log === null || loop >= log.steps.length) &&
  property?.when !== "always" &&
  property?.when !== "sometimes";

/** Who waits for whom, where somebody does: around a cycle, or for a node that is down. */
function waitLines(waits: CounterexampleLog["waits"], standing: CounterexampleLog["standing"]): string[] {
  const down = standing.filter(({ state }) => state === null).map(({ node }) => node);
  const cycle = waitCycle(waits);
  const steps = (cycle ?? []).map((node, i, all) => `${node} for ${all[i + 1] ?? all[0]}`);
  const round = cycle === null ? [] : [`Deadlock: node ${steps.join(", ").replace(" for", " waits for")}`];
  const dead = waits.flatMap(({ node, unanswered }) =>
    unanswered
      .filter((other) => down.includes(other))
      .map((other) => `Node ${node} waits for node ${other}, which is down`),
  );
  return round.length + dead.length === 0 ? [] : [...[...round, ...dead].map((line) => wrapped(line, 2)), ""];
}

/** A state, whole: a line for each part of an assembly. */
function stateLines(state: object | null): string[] {
  if (state === null) return [];
  const fields = Object.entries(state);
  const areParts = fields.every(([, value]) => typeof value === "object" && value !== null && !Array.isArray(value));
  const parts: [string, object][] = areParts && fields.length > 0 ? fields : [["", state]];
  return parts.map(([part, inner]) => {
    const text = Object.entries(inner).map(
      ([field, value]) => `${field}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    return `${" ".repeat(STATE_INDENT)}${wrapped([...(part === "" ? [] : [`${part}:`]), ...text].join(" "), STATE_INDENT + 2)}`;
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

export function progressText(progress: CheckProgress, seconds: number): string {
  const { phase, runs, states, transitions, depth, memoryBytes } = progress;
  if (phase === "shrinking") return `violated; looking for a shorter run, ${figure(seconds)} s`;
  if (phase === "following") return `${figure(states)} states; looking for runs without end, ${figure(seconds)} s`;
  const count = runs === null ? "" : `${figure(runs)} runs, `;
  const rate = figure(Math.round(states / Math.max(seconds, 0.001)));
  return `${count}${figure(states)} states, ${figure(transitions)} transitions, ${rate} states/s, depth ${depth}, ${megabytes(memoryBytes)}`;
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;
