/** Simulates experiments, one run or several, in slices, so that the caller can show progress and stop a run. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Cost, NodeId } from "../core/protocol.ts";
import { type Family, hasToStart, type Outcome, protocolNamed, variantNamed } from "../protocols/index.ts";
import type { Delay } from "../sim/delay.ts";
import type { Draws } from "../sim/draws.ts";
import { LostMessages } from "../sim/tally.ts";
import type { TraceEntry, TraceHeader } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import {
  type Experiment,
  idsOf,
  liarsOf,
  MAX_SEED,
  optionsOf,
  requireFamilyOptions,
  requireKnown,
  requireOptionsFor,
  timesOf,
} from "./experiment.ts";
import { liarsIn, type Point, type RecordedPoint, snapshotFrom } from "./recording.ts";
import type { ParsedScenario } from "./scenario/parse.ts";
import type { Result } from "./scenario/result.ts";
import { type Cast, cast, type Progress, playScenario, runScenario } from "./scenario/run.ts";
import { askWords, type Scenario, type ScenarioSource, scenarioSchema } from "./scenario/schema.ts";

/**
 * Simulates one run of an experiment and returns its result.
 *
 * @example
 * const { outcome, messages } = simulate({ protocol: "bully", nodes: 5, call: [2], seed: 1 });
 * console.log(outcome, messages.total); // Every node knows leader 4, after 14 messages.
 * @throws UsageError that names the invalid option
 */
export function simulate(experiment: Experiment): Result {
  requireOptionsFor("simulate", experiment);
  return runScenario(scenarioOf(experiment));
}

/**
 * The maximum number of nodes for which properties are checked after every step. With more nodes, the checks would take
 * longer than the rest of the run.
 */
const WATCHED_NODES = 1_000;

export interface Play {
  readonly see?: (entry: TraceEntry) => void;
  /** Called with each step of the scenario that is taken, and its virtual time. */
  readonly took?: (step: Scenario["steps"][number], atMs: number) => void;
  /** Stores the random draws of the run. */
  readonly draws?: Draws;
  /** Whether to count only messages that arrived. */
  readonly deliveredOnly: boolean;
}

/** A scenario with its cast: the protocol and the nodes that it runs with. */
export interface Staged extends ParsedScenario {
  readonly cast: Cast;
  /** The point of a recording that the run continues from. Null if the run starts from the beginning. */
  readonly from: RecordedPoint | null;
}

/** Adds the cast to a scenario. @throws UsageError if the protocol rejects the scenario's options */
export function staged(parsed: ParsedScenario): Staged {
  return { ...parsed, cast: cast(parsed.scenario), from: null };
}

/** The options that are determined by a recording. */
const ofRecordings = ["nodes", "ring", "protocol", "variant", "options", "started"] as const;

type Continuation = Omit<Experiment, "protocol" | "until"> & { readonly protocol?: string; readonly until?: Point };

/**
 * Prepares a run that continues a recording differently, from the point given in `until`.
 * @param file the path of the recording, for error messages
 * @throws UsageError that names the invalid option
 */
export function continued(trace: Trace, file: string, { until, ...words }: Continuation): Staged {
  const stray = ofRecordings.find((word) => words[word] !== undefined);
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent with --from, since the recording sets it`);
  if (until === undefined)
    throw new UsageError(
      "bad-argument",
      "expected --until with --from: the point to continue from, such as 1500 or #57",
    );
  const recorded = snapshotFrom(trace, file, until);
  const { snapshot, origin, header, protocol } = recorded;
  const from = { ...recorded, snapshot: { ...snapshot, at: snapshot.at - origin } };
  const scenario = continuationOf(from, words);
  const options = header.options ?? {};
  return { scenario, place: () => file, cast: { ...cast({ ...scenario, options: {} }, protocol), options }, from };
}

/** A computation that yields its progress. The caller passes to `next()` whether the computation should continue. */
export type Slices<P, T> = Generator<P, T, boolean>;

/** Runs the scenario. Returns null if the caller stopped it. */
export function* play(
  { scenario, place, cast, from }: Staged,
  { see, took, draws, deliveredOnly }: Play,
): Slices<Progress, Result | null> {
  const lost = deliveredOnly ? new LostMessages() : null;
  const trace = (entry: TraceEntry): void => {
    see?.(entry);
    lost?.see(entry);
  };
  const slices = playScenario(scenario, {
    place,
    cast,
    properties: cast.ids.length > WATCHED_NODES ? "at the end" : "every step",
    ...(see === undefined && lost === null ? {} : { trace }),
    ...(took === undefined ? {} : { took }),
    ...(draws === undefined ? {} : { draws }),
    ...(from === null ? {} : { from }),
  });
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return lost === null ? value : { ...value, messages: lost.without(value.messages) };
    if (!(yield value)) return null;
  }
}

/** The results of several runs, with the seeds of those that failed. */
export interface Summary {
  readonly protocol: string;
  readonly nodes: number;
  readonly seed: number;
  readonly runs: number;
  readonly messages: Spread;
  readonly timeMs: Spread;
  readonly violations: readonly { readonly what: string; readonly seeds: readonly number[] }[];
}

/** The distribution of a number over several runs. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/**
 * Runs a scenario with consecutive seeds, yielding the number of completed runs. If it is stopped, it summarizes the
 * runs completed so far.
 */
export function* playSeveral(staged: Staged, runs: number, how: Play): Slices<number, Summary> {
  const { seed, protocol } = staged.scenario;
  const most = MAX_SEED - runs + 1;
  if (seed > most)
    throw new UsageError(
      "bad-argument",
      unexpected("the seed", `at most ${most}, since each of the ${runs} runs uses the next seed`, seed),
    );
  const messages: number[] = [];
  const times: number[] = [];
  const failures = new Map<string, number[]>();
  let goesOn = true;
  for (let done = 0; done < runs && goesOn; done++) {
    const slices = play({ ...staged, scenario: { ...staged.scenario, seed: seed + done } }, how);
    let slice = slices.next(true);
    while (slice.done !== true) slice = slices.next(yield done);
    if (slice.value === null) break;
    messages.push(slice.value.messages.total);
    times.push(slice.value.timeMs);
    for (const what of failuresOf(slice.value)) failures.set(what, [...(failures.get(what) ?? []), seed + done]);
    goesOn = yield done + 1;
  }
  return {
    protocol,
    nodes: staged.cast.ids.length,
    seed,
    runs: messages.length,
    messages: spreadOf(messages),
    timeMs: spreadOf(times),
    violations: [...failures].map(([what, seeds]) => ({ what, seeds })),
  };
}

/**
 * Returns the names of violated properties and of unmet expectations. Violations that the scenario expects do not count
 * as failures.
 */
export function failuresOf({ properties, expectations }: Result): string[] {
  const unmet = expectations.filter(({ passed }) => !passed);
  if (unmet.length === 0) return [];
  const violated = properties.flatMap(({ name, verdict }) => (verdict === "violated" ? [name] : []));
  const others = unmet.flatMap(({ what }) => (what === "violated" && violated.length > 0 ? [] : [what]));
  return [...(unmet.some(({ what }) => what === "violated") ? violated : []), ...others];
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (place: number): number => sorted[Math.round(place * (sorted.length - 1))] ?? 0;
  return { min: at(0), median: at(0.5), max: at(1) };
}

/** The options of an experiment whose protocol is already known. */
type Words = Omit<Experiment, "protocol">;

const DEFAULT_NODES = 5;
/** The default end of a run if all nodes start at time 0. Protocols with periodic timers are never idle. */
const DEFAULT_UNTIL_MS = 10_000;
/** The end of all other runs, unless they become idle earlier. A node may retransmit to a stopped node forever. */
const RESTS_WITHIN_MS = 600_000;
/**
 * The run may last at least this number of message delays per node and use, even if that exceeds `RESTS_WITHIN_MS`,
 * because runs on large rings or slow links take longer.
 */
const DELAYS_PER_USE = 10;
const DEFAULT_DELAY_MS = 10;

/**
 * Returns the scenario for a simulated run of this experiment, with all defaults filled in.
 * @throws UsageError that names the invalid option
 */
export function scenarioOf(words: Experiment): Scenario {
  const { protocol } = words;
  const entry = protocolNamed(protocol);
  if (words.variant !== undefined) variantNamed(protocol, words.variant);
  requireFamilyOptions(words);
  const ids = idsOf(words, entry, DEFAULT_NODES);
  const down = [...new Set(words.crash)];
  for (const node of down) requireKnown("--crash", ids, node);
  if (down.length >= ids.length)
    throw new UsageError("bad-argument", unexpected("--crash", "some of the nodes, not all", down.join(",")));
  const isStarted = words.started === true || hasToStart(protocol, words.variant);
  const source: ScenarioSource = {
    name: protocol,
    protocol,
    ...(words.variant === undefined ? {} : { variant: words.variant }),
    options: optionsOf(words),
    byzantine: { ...liarsOf(words) },
    nodes: words.ring === undefined ? ids.length : [...words.ring],
    seed: words.seed ?? 1,
    network: networkOf(words),
    begin: { nodes: isStarted ? "started" : "idle", down },
    steps: workload(entry.family, words, ids, words.started === true),
    until:
      words.until ??
      (isStarted ? DEFAULT_UNTIL_MS : restsWithin(words, ids.length * (timesOf(entry.family, words) ?? 1))),
  };
  const scenario = scenarioSchema.parse(source);
  cast(scenario); // Throws if an option is not one of the protocol's.
  return scenario;
}

/**
 * Returns the scenario that continues a recording from a snapshot. At that point, the nodes in `crash` crash and the
 * initiators act.
 * @throws UsageError that names the invalid option
 */
export function continuationOf(
  { header, snapshot }: Pick<RecordedPoint, "header" | "snapshot">,
  words: Words,
): Scenario {
  const { family } = protocolNamed(header.protocol);
  requireFamilyOptions({ ...words, protocol: header.protocol });
  const ids = header.nodes;
  const alive = new Set(snapshot.nodes.filter(({ state }) => state !== null).map(({ id }) => id));
  for (const node of words.crash ?? []) {
    requireKnown("--crash", ids, node);
    if (!alive.has(node))
      throw new UsageError("bad-argument", unexpected("--crash", "nodes that are alive there", node));
  }
  return scenarioSchema.parse({
    name: header.protocol,
    protocol: header.protocol,
    ...(header.variant === null ? {} : { variant: header.variant }),
    nodes: [...ids],
    seed: words.seed ?? 1,
    network: networkOf(words),
    steps: [
      ...(words.crash === undefined ? [] : [{ crash: [...new Set(words.crash)] }]),
      ...(workload(family, words, ids, true) ?? []),
    ],
    until: snapshot.at + (words.for ?? DEFAULT_UNTIL_MS),
  } satisfies ScenarioSource);
}

/**
 * Returns the end of a run that begins at time 0.
 * @throws UsageError for a number of entries, which only recordings have
 */
export function endOf(until: Point | undefined): { until?: number } {
  if (until === undefined) return {};
  if ("ms" in until && until.ms > 0) return { until: until.ms };
  if ("ms" in until) throw new UsageError("bad-argument", unexpected("--until", "milliseconds above 0", until.ms));
  const expected = "a time in milliseconds, since a number of entries requires --from";
  throw new UsageError("bad-argument", unexpected("--until", expected, `#${until.entries}`));
}

function restsWithin({ delay = DEFAULT_DELAY_MS, processing = 0 }: Words, uses: number): number {
  return Math.max(RESTS_WITHIN_MS, uses * DELAYS_PER_USE * (usualMs(delay) + usualMs(processing)));
}

function usualMs(delay: Delay): number {
  if (typeof delay === "number") return delay;
  if ("normal" in delay) return delay.normal.meanMs + delay.normal.deviationMs;
  return "logNormal" in delay ? delay.logNormal.medianMs : delay[1];
}

function networkOf({ delay, loss, duplicate, reorder, processing }: Words): NonNullable<ScenarioSource["network"]> {
  return {
    ...(delay === undefined ? {} : { delayMs: asWritten(delay) }),
    ...(loss === undefined ? {} : { lossRate: loss }),
    ...(duplicate === undefined ? {} : { duplicateRate: duplicate }),
    ...(reorder === undefined ? {} : { order: "none" }),
    ...(processing === undefined ? {} : { processingMs: asWritten(processing) }),
  };
}

type WrittenDelay = NonNullable<NonNullable<ScenarioSource["network"]>["delayMs"]>;
const asWritten = (delay: Delay): WrittenDelay => delay as WrittenDelay;

function workload(family: Family, words: Words, ids: readonly NodeId[], isBusy: boolean): ScenarioSource["steps"] {
  const { verb } = family;
  if (verb === null) return [];
  const down = new Set(words.crash);
  const given = words[verb];
  const times = timesOf(family, words);
  if (given === undefined && times === undefined && isBusy) return []; // The nodes have work to do without requests.
  requireUp(`--${verb}`, given, ids, down);
  requireUp("--vote-no", words.voteNo, ids, down);
  const lowest = ids.reduce((low, id) => (down.has(id) || id > low ? low : id), Number.POSITIVE_INFINITY);
  const nodes = given ?? (family.initiators === "all" ? "all" : lowest);
  return [
    ...(words.voteNo === undefined ? [] : [{ voteNo: words.voteNo }]),
    { [verb]: nodes, ...(times === undefined ? {} : { times }) },
  ];
}

function requireUp(word: string, nodes: Words["voteNo"], ids: readonly NodeId[], down: ReadonlySet<NodeId>): void {
  for (const node of typeof nodes === "object" ? nodes : []) {
    requireKnown(word, ids, node);
    if (down.has(node))
      throw new UsageError("bad-argument", unexpected(word, "nodes that are not down by --crash", node));
  }
}

/** Returns the JSON output of `coterie sim`. */
export function simulationReport({ scenario, cast }: Staged, result: Result) {
  const { protocol, seed, name } = scenario;
  const { timeMs, messages, datagrams, lost, outcome, nodesAlive, expectations } = result;
  const sent = "delivered" in outcome ? { messages, datagrams } : { messages };
  const properties = result.properties.map(({ name: claimed, verdict, why }) =>
    why === "" ? { name: claimed, verdict } : { name: claimed, verdict, why },
  );
  const nodes = cast.ids.length;
  const run = { protocol, nodes, seed, timeMs, ...sent, lost, outcome, properties, nodesAlive };
  return name === protocol ? run : { ...run, scenario: name, expectations };
}

/** Returns the header for the run's trace file. */
export function simulatedHeader({ scenario, cast, from }: Staged, { properties }: Result): TraceHeader {
  const violated = properties
    .filter(({ verdict }) => verdict === "violated")
    .toSorted((a, b) => Number(a.at) - Number(b.at))[0];
  return {
    kind: "trace",
    version: 1,
    madeBy: "simulator",
    protocol: scenario.protocol,
    form: from?.header.form ?? "model",
    variant: scenario.variant ?? null,
    options: cast.options,
    nodes: cast.ids.toSorted((a, b) => a - b),
    seed: scenario.seed,
    ...liarsIn(scenario.byzantine),
    ...(Object.keys(scenario.begin.states).length === 0 ? {} : { states: scenario.begin.states }),
    violation: violated === undefined ? null : { property: violated.name, claim: violated.claim, loopFrom: null },
  };
}

/** Summarizes the unmet expectations in one sentence. Null if all are met. */
export function disappointment({ expectations }: Pick<Result, "expectations">): string | null {
  const unmet = expectations.filter(({ passed }) => !passed);
  const [first] = unmet;
  if (first === undefined) return null;
  const violated = (unmet.find(({ what }) => what === "violated")?.actual ?? []) as readonly string[];
  return unmet.length === 1 && violated.length > 0
    ? `violated: ${violated.join(", ")}`
    : `${unmet.length} of ${expectations.length} expectations not met, first ${first.what}`;
}

/** Groups nodes that have equal values, in the order of each group's first node. */
export function alike<T>(byNode: Readonly<Record<NodeId, T>>): { value: T; nodes: NodeId[] }[] {
  const groups = new Map<string, { value: T; nodes: NodeId[] }>();
  for (const [id, value] of Object.entries(byNode)) {
    const key = JSON.stringify(value);
    const group = groups.get(key) ?? { value, nodes: [] };
    group.nodes.push(Number(id));
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** Whether the algorithm terminated without any faults other than nodes that were down from the beginning. */
function isUndisturbed({ network, byzantine, steps }: Scenario, { isOver }: Result): boolean {
  const { lossRate = 0, duplicateRate = 0, links = [] } = network;
  const isCalm = lossRate === 0 && duplicateRate === 0 && links.length === 0 && Object.keys(byzantine).length === 0;
  return isOver && isCalm && steps.every((step) => askWords.some((word) => step[word] !== undefined));
}

/**
 * Returns the number of entries or multicasts, for algorithms whose published costs are per use. Returns 1 for other
 * algorithms and for disturbed runs.
 */
export function usesIn(scenario: Scenario, result: Result): number {
  return isUndisturbed(scenario, result) ? usesOf(result.outcome) : 1;
}

function usesOf(outcome: Outcome): number {
  if ("entries" in outcome) return outcome.entries.filter(({ enteredAt }) => enteredAt !== null).length;
  return "delivered" in outcome ? new Set(Object.values(outcome.delivered).flat()).size : 1;
}

/**
 * Returns the message counts given in the literature, each with the case that it applies to (best, worst…). The reader
 * decides which case applies to the run.
 */
export function publishedCosts(
  costs: readonly Cost[],
  nodes: number,
  scenario: Scenario,
  result: Result,
): { readonly when: string; readonly count: number }[] {
  if (!isUndisturbed(scenario, result) || nodes === 1 || usesOf(result.outcome) === 0) return [];
  return costs.map(({ when, messages }) => ({ when, count: messages(nodes) })).filter(({ count }) => count >= 0);
}
