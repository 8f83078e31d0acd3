/** Explores an experiment, as a whole or as one of several threads that share the work. */
import { type Counterexample, counterexample } from "../check/counterexample.ts";
import {
  explore as breadthFirst,
  type Exploration,
  type ExploreOptions,
  fewestFaults,
  type Progress,
} from "../check/explore.ts";
import type { CrashNotificationTime } from "../check/model.ts";
import { type Reach, reachTogether } from "../check/reach.ts";
import { exploreDepthFirst } from "../check/search/dfs.ts";
import { walk } from "../check/search/walks.ts";
import { shrink } from "../check/shrink/shrink.ts";
import { systemFor } from "../check/suite.ts";
import type { Property, Vocabulary } from "../core/protocol.ts";
import { protocolNamed } from "../protocols/index.ts";
import { type CheckRequest, requestFrom } from "./check-request.ts";
import { type CounterexampleLog, logOf } from "./counterexample-log.ts";
import { type Experiment, requireOptionsFor } from "./experiment.ts";

export interface CheckProgress extends Progress {
  readonly phase: "searching" | "following" | "shrinking";
  readonly runs: number | null;
  readonly memoryBytes: number;
}

export interface CheckAnswer {
  readonly verdict: Exploration<Vocabulary>["verdict"];
  readonly property: NamedProperty | null;
  readonly checked: readonly NamedProperty[];
  /** Properties `sometimes` that came true somewhere. */
  readonly reached: readonly string[];
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  readonly runs: number | null;
  /** Of which run of a random search the counterexample is. */
  readonly violatingRun: number | null;
  /** What ended the search before it was through; null if nothing did. */
  readonly ended: "stopped" | "memory" | null;
  readonly memoryBytes: number;
  readonly log: CounterexampleLog | null;
  /** Index of the move with which the part begins that repeats for ever; null where none does. */
  readonly loop: number | null;
  /** Moves before shrinking; null where it was the shortest anyway. */
  readonly shrunkFrom: number | null;
  readonly trace: Counterexample<Vocabulary> | null;
  /** With `--fewest-faults`: so many break it, or null, and so many are proven not to, −1 if not even none. */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
  readonly reach: Reach;
  readonly system: Pick<ExploreOptions<Vocabulary>, "network" | "timers" | "begin"> & {
    readonly crashNotifications: CrashNotificationTime | null;
  };
}

export type NamedProperty = Pick<Property<Vocabulary>, "name" | "claim" | "when">;

/** Plain data and shared memory, so that it reaches a thread. */
export interface CheckTask {
  readonly request: CheckRequest;
  /** What the threads of a random search have in common. */
  readonly shared: SharedRuns;
}

type System = ExploreOptions<Vocabulary>;
type Found = Exploration<Vocabulary> & {
  readonly runs?: number;
  readonly violatingRun?: number | null;
  readonly faults?: NonNullable<CheckAnswer["faults"]>;
};

/** Every run within bounds, or many random ones, on this thread. @throws UsageError that names the word which makes no sense */
export function explore(experiment: Experiment, mayGoOn?: (progress: CheckProgress) => boolean): CheckAnswer {
  requireOptionsFor("explore", experiment);
  return answerTo({ request: requestFrom(experiment), shared: ownRuns() }, mayGoOn);
}

/** Of threads that share a search, those that find a violation in vain answer with a run that is not shrunk. */
export function answerTo(
  { request, shared }: CheckTask,
  mayGoOn: (progress: CheckProgress) => boolean = () => true,
  memoryUsed: () => number = () => 0,
): CheckAnswer {
  const system = systemFor(request.spec);
  let ended: CheckAnswer["ended"] = null;
  const goesOn = (phase: CheckProgress["phase"], progress: Progress & { readonly runs?: number }): boolean => {
    const memoryBytes = memoryUsed();
    const { states, transitions, depth, runs = null } = progress;
    if (!mayGoOn({ phase, states, transitions, depth, runs, memoryBytes })) ended = "stopped";
    else if (memoryBytes > (request.maxMemoryBytes ?? Number.POSITIVE_INFINITY)) ended = "memory";
    return ended === null;
  };
  const found = search(system, { request, shared }, (progress) =>
    goesOn(progress.isFollowing === true ? "following" : "searching", progress),
  );
  const endedSearch = ended;
  const { violatingRun = null } = found;
  if (violatingRun !== null) noteViolated(shared, violatingRun);
  const isWanted = (): boolean => violatingRun === null || isLowest(shared, violatingRun);
  const small = shrunk(system, request, found, () => isWanted() && goesOn("shrinking", found));
  const best = small ?? found;
  const { family } = protocolNamed(request.spec.protocol);
  const isViolated = found.verdict === "violated" && best.path.length > 0;
  return {
    verdict: found.verdict,
    property: found.property === null ? null : named(found.property),
    checked: (system.properties ?? system.protocol.properties).map(named),
    reached: found.witnesses.map(({ property }) => property.name),
    states: found.states,
    transitions: found.transitions,
    depth: found.depth,
    runs: found.runs ?? null,
    violatingRun,
    ended: endedSearch,
    memoryBytes: memoryUsed(),
    log: isViolated ? logOf({ protocol: system.protocol, family }, system.nodes, best.path) : null,
    loop: best.loop,
    shrunkFrom: small === null ? null : found.path.length,
    trace: isViolated ? counterexample(system, { ...found, ...best }) : null,
    faults: found.faults ?? null,
    reach: found.reach,
    system: {
      network: system.network,
      timers: system.timers,
      begin: system.begin,
      crashNotifications: system.crashNotification === undefined ? null : (system.crashNotifications ?? "any"),
    },
  };
}

function search(system: System, { request, shared }: CheckTask, mayGoOn: (progress: Progress) => boolean): Found {
  const { strategy, seed, runs, steps } = request;
  if (request.fewestFaults) {
    const { exploration, ...faults } = fewestFaults({ ...system, mayGoOn });
    return { ...exploration, faults };
  }
  if (strategy === "bfs") return breadthFirst({ ...system, mayGoOn });
  if (strategy === "dfs") return exploreDepthFirst({ ...system, mayGoOn });
  return walk({
    ...system,
    strategy,
    seed,
    numbers: sharedNumbers(shared, runs),
    stepsPerRun: steps,
    mayGoOn,
  });
}

/** Breadth first finds the shortest; what other searches find may be long. A run with a part that repeats is left as it is. */
function shrunk(
  system: System,
  { strategy }: CheckRequest,
  { verdict, property, path, loop }: Found,
  mayGoOn: () => boolean,
): Pick<Found, "path" | "loop"> | null {
  const repeats = loop !== null && loop < path.length;
  if (strategy === "bfs" || verdict !== "violated" || property === null || repeats) return null;
  const small = shrink({ ...system, mayGoOn }, path, property);
  return small === null ? null : { path: small.path, loop: loop === null ? null : small.length };
}

function named({ name, claim, when }: Property<Vocabulary>): NamedProperty {
  return { name, claim, when };
}

type Counted = Pick<CheckProgress, "states" | "transitions" | "depth" | "runs" | "memoryBytes">;

/** The violation in the earliest run is the answer, as it is where one thread makes all runs; what was done is summed. */
export function answerTogether({ spec }: CheckRequest, answers: readonly CheckAnswer[]): CheckAnswer {
  const earliest = answers.reduce((a, b) => (orderOf(b) < orderOf(a) ? b : a));
  const { protocol } = systemFor(spec);
  return {
    ...earliest,
    ...countedTogether(answers),
    reached: earliest.checked.flatMap(({ name }) =>
      answers.some(({ reached }) => reached.includes(name)) ? name : [],
    ),
    ended: answers.find(({ ended }) => ended !== null)?.ended ?? null,
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

/** The number of the next run, and the lowest of a run that violates something. */
export type SharedRuns = Int32Array;

const NEXT = 0;
const LOWEST = 1;
const NONE = 2 ** 31 - 1;

export function sharedRuns(): SharedRuns {
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  shared[LOWEST] = NONE;
  return shared;
}

/** Those of one thread alone: a page that nobody isolates has no shared memory. */
export function ownRuns(): SharedRuns {
  const own = new Int32Array(2);
  own[LOWEST] = NONE;
  return own;
}

/**
 * The numbers that are left, as they are asked for. Who leaves off before the end leaves none to the others: all lower
 * ones have been taken, and their runs are made to the end, so what one thread would have found first is found.
 */
export function* sharedNumbers(shared: SharedRuns, runs: number): Iterable<number> {
  const take = (): number => Atomics.add(shared, NEXT, 1);
  try {
    for (let number = take(); number < runs; number = take()) yield number;
  } finally {
    Atomics.store(shared, NEXT, runs);
  }
}

export function noteViolated(shared: SharedRuns, run: number): void {
  let seen = Atomics.load(shared, LOWEST);
  while (run < seen) {
    const before = seen;
    seen = Atomics.compareExchange(shared, LOWEST, before, run);
    if (seen === before) return;
  }
}

/** Whether no violation in an earlier run is known. */
const isLowest = (shared: SharedRuns, run: number): boolean => Atomics.load(shared, LOWEST) >= run;
