/**
 * Reports on an exploration, as data and in sentences: scope, assumptions, faults that violate a property, waiting
 * nodes, and advice.
 */
import type { CrashNotificationTime } from "../check/model.ts";
import { handlerNames, isReached } from "../check/reach.ts";
import { systemFor } from "../check/suite.ts";
import { protocolNamed } from "../protocols/index.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import { vectorClocks } from "../trace/steps.ts";
import { type CheckRequest, isRandom } from "./check-request.ts";
import { type CounterexampleLog, waitCycle } from "./counterexample-log.ts";
import type { CheckAnswer } from "./explore.ts";
import { counted, figure, spans } from "./paragraph.ts";
import { liarsIn } from "./recording.ts";

export interface CheckOutcome {
  readonly request: CheckRequest;
  readonly answer: CheckAnswer;
  readonly seconds: number;
}

/** Returns the JSON output of `coterie check`. */
export function explorationReport({ request, answer, seconds }: CheckOutcome) {
  const { verdict, property, states, transitions, depth, runs, violatingRun, faults, trace } = answer;
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
    loopFrom: trace?.violation?.loopFrom ?? null,
    trace: trace?.entries ?? null,
  };
}

/** Returns the counterexample as a trace file. Null if there is none. */
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

/** Returns sentences about the algorithm's goals that no run reached. Empty if a property is violated. */
export function missing({ spec }: CheckRequest, { reach, verdict }: CheckAnswer): string[] {
  if (verdict === "violated") return [];
  const { done } = protocolNamed(spec.protocol).family;
  const isToSuspect = (spec.crashes ?? 0) > 0 && hears(spec);
  const suspects =
    isReached(reach, "suspected") || Object.keys(reach.handlers).some((name) => name.endsWith("suspect"));
  return [
    ...(isReached(reach, done.event) ? [] : [done.none]),
    ...(isToSuspect && !suspects && done.event !== "suspected" ? ["no node was suspected of a crash"] : []),
  ];
}

/** Whether nodes can learn of crashes, either from a failure detector among their parts or from crash notifications. */
function hears(spec: CheckRequest["spec"]): boolean {
  const hasDetector = handlerNames(systemFor(spec).protocol).some((each) => /\bdetector\b/.test(each));
  return hasDetector || protocolNamed(spec.protocol).check.crashNotification !== undefined;
}

/** Explains why the search was incomplete. */
export function whyUnknown({ spec, strategy }: CheckRequest, { ended, states }: CheckAnswer): string {
  if (ended === "stopped") return "it was stopped before the search was complete";
  if (ended === "memory") return "it reached --max-memory";
  if (isRandom(strategy)) return "random runs can find violations but prove nothing";
  if (spec.maxStates !== undefined && states >= spec.maxStates) return "it reached --max-states";
  const bounds = cutOffBy(spec);
  if (bounds.length > 0) return `runs beyond ${bounds.join(" and ")} were cut off`;
  return "there are more states than fit into memory: use a smaller system";
}

function cutOffBy({ maxDepth, maxInFlight, maxTimeouts }: CheckRequest["spec"]): string[] {
  return [
    ...(maxDepth === undefined ? [] : ["--max-depth"]),
    ...(maxInFlight === undefined ? [] : ["--max-in-flight"]),
    ...(maxTimeouts === undefined ? [] : ["--max-timeouts"]),
  ];
}

/** Describes the set of explored runs, in a phrase. */
export function scopeOf({ strategy, seed, runs, steps }: CheckRequest): string {
  if (strategy === "bfs") return "every run within the bounds, the shortest first";
  if (strategy === "dfs") return "every run within the bounds, depth first";
  const how = { random: "random runs", pct: "runs with random priorities (PCT)", swarm: "random runs (swarm)" }[
    strategy
  ];
  return `${figure(runs)} ${how} of at most ${figure(steps)} moves, seed ${seed}`;
}

/**
 * Returns the assumptions made about every explored run: how it begins, its network, its timers, its faults, and the
 * bounds.
 */
export function assumptionsOf(request: CheckRequest, { system }: CheckAnswer): string[] {
  const { spec } = request;
  const links = {
    fifo: "every link keeps its order",
    inbox: "every node has one inbox, in the order of sending",
    bag: "messages overtake each other",
  };
  const timers = {
    free: "timers may expire at any time",
    quiet: "timers expire only when no message is in transit",
    rounds: "rounds end at all nodes together, when no message is in transit",
    timed: timeIn(spec),
    never: "timers do not expire",
  };
  const begin = {
    idle: "all nodes run and are idle",
    down: "each node starts at any time",
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

/** Describes the bounds on time. */
function timeIn({ time }: CheckRequest["spec"]): string {
  if (time === undefined) return "time passes";
  const { unitMs, delayMs, drift = 0, pauseMs } = time;
  const delay = delayMs[0] === delayMs[1] ? `${delayMs[0]}` : `${delayMs[0]} to ${delayMs[1]}`;
  const clocks = typeof drift === "number" && drift > 0 ? `, clocks drift by up to ${drift}` : "";
  const pauses = pauseMs === undefined ? "" : `, pauses take up to ${pauseMs} ms`;
  return `messages take ${delay} ms${clocks}${pauses}; time passes in units of ${unitMs} ms`;
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

const notifiedOfCrashes: Readonly<Record<CrashNotificationTime, string>> = {
  any: "; every node is notified of a crash, at any time after it",
  last: "; every node is notified of a crash, after all messages from the crashed node",
};

function faults(spec: CheckRequest["spec"], { crashNotifications }: CheckAnswer["system"]): string {
  const budgets = [
    counted(spec.crashes ?? 0, { one: "crash", more: "crashes" }),
    counted(spec.recoveries ?? 0, { one: "recovery", more: "recoveries" }),
    counted(spec.losses ?? 0, { one: "lost message", more: "lost messages" }),
    counted(spec.duplications ?? 0, { one: "duplicated message", more: "duplicated messages" }),
    counted(spec.pauses ?? 0, { one: "pause", more: "pauses" }),
  ].filter((words) => !words.startsWith("0 "));
  if (budgets.length === 0) return "no faults";
  const notified = (spec.crashes ?? 0) > 0 && crashNotifications !== null ? notifiedOfCrashes[crashNotifications] : "";
  const withinStep = (spec.crashes ?? 0) > 0 && spec.withinStep === true ? ", also within a step" : "";
  const journal = spec.journal === "lost" ? "; a crash also loses the journal" : "";
  return `at most ${budgets.join(", ")}${withinStep}${notified}${journal}`;
}

/** Describes the result of `--fewest-faults`: how many faults violate a property. */
export function breakingFaults({ faults }: CheckAnswer): string[] {
  if (faults === null) return [];
  const { breaking, harmless } = faults;
  const fault = { one: "fault", more: "faults" };
  const proven =
    harmless < 0 ? "" : harmless === 0 ? "; it holds without any" : `; it holds with up to ${counted(harmless, fault)}`;
  if (breaking === null) return harmless < 0 ? [] : [`it holds with up to ${counted(harmless, fault)} of these kinds`];
  if (breaking === 0) return ["violated without any fault"];
  return [`${counted(breaking, fault)} ${breaking === 1 ? "breaks" : "break"} it${proven}`];
}

/** Returns advice for an unknown verdict. */
export function whatNext({ spec, strategy }: CheckRequest, { ended, states }: CheckAnswer): string {
  if (isRandom(strategy))
    return "more --runs or another --seed may find violations; --strategy bfs searches every run, if there are not too many";
  const hasRunThrough = ended === null && (spec.maxStates === undefined || states < spec.maxStates);
  if (hasRunThrough && cutOffBy(spec).length > 0) return "raise the bounds; --strategy pct searches some long runs";
  return "use fewer nodes or faults for a complete search; --max-depth searches every short run of this system, --strategy pct some long ones";
}

/**
 * Whether waiting explains the counterexample. Nodes wait in many states, but waiting matters only if a finite run
 * fails to reach a goal.
 */
const isOfWaiting = ({ property, loop, log }: CheckAnswer): boolean =>
  (loop === null || log === null || loop >= log.steps.length) &&
  property?.when !== "always" &&
  property?.when !== "sometimes";

/**
 * Describes the nodes that are waiting at the end of a counterexample, either for each other in a cycle or for a
 * stopped node.
 */
export function deadlocks(answer: CheckAnswer): string[] {
  if (answer.log === null || !isOfWaiting(answer)) return [];
  const { standing, waits }: CounterexampleLog = answer.log;
  const down = standing.filter(({ state }) => state === null).map(({ node }) => node);
  const cycle = waitCycle(waits);
  const steps = (cycle ?? []).map((node, i, all) => `${node} for ${all[i + 1] ?? all[0]}`);
  const round = cycle === null ? [] : [`Deadlock: node ${steps.join(", ").replace(" for", " waits for")}`];
  const dead = waits.flatMap(({ node, unanswered }) =>
    unanswered
      .filter((other) => down.includes(other))
      .map((other) => `Node ${node} waits for node ${other}, which is down`),
  );
  return [...round, ...dead];
}
