/** Explores an experiment, on one thread or as one of several threads that share the runs of a random search. */
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

/** The progress of an exploration. */
export interface CheckProgress extends Progress {
  /** `following`: all states are known, and the search for infinite runs has begun. `shrinking`: a violation was found. */
  readonly phase: "searching" | "following" | "shrinking";
  /** Completed runs of a random search. Null for `bfs` and `dfs`. */
  readonly runs: number | null;
  readonly memoryBytes: number;
}

/** The result of an exploration. */
export interface CheckAnswer {
  /** `unknown` means that no violation was found but the search was incomplete. It is never a pass. */
  readonly verdict: Exploration<Vocabulary>["verdict"];
  /** The violated property. Null if none was violated. */
  readonly property: NamedProperty | null;
  readonly checked: readonly NamedProperty[];
  /** The `sometimes` properties that became true in some run. */
  readonly reached: readonly string[];
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  readonly runs: number | null;
  /** The number, from 0, of the violating run of a random search. */
  readonly violatingRun: number | null;
  /** Why the search ended early. Null if it did not. */
  readonly ended: "stopped" | "memory" | null;
  readonly memoryBytes: number;
  readonly log: CounterexampleLog | null;
  /** The index of the move at which the infinitely repeating part begins. Null for a finite run. */
  readonly loop: number | null;
  /** The number of moves before shrinking. Null if the counterexample was not shrunk. */
  readonly shrunkFrom: number | null;
  /** The counterexample as a trace. */
  readonly trace: Counterexample<Vocabulary> | null;
  /**
   * With `--fewest-faults`: the number of faults that violates a property, or null; and the highest number that is proven
   * harmless, −1 if not even a run without faults is.
   */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
  /** The events and handlers that the search reached. */
  readonly reach: Reach;
  readonly system: Pick<ExploreOptions<Vocabulary>, "network" | "timers" | "begin"> & {
    readonly crashNotifications: CrashNotificationTime | null;
  };
}

export type NamedProperty = Pick<Property<Vocabulary>, "name" | "claim" | "when">;

/** The work of one thread. Plain data and shared memory, so that it can be sent to a worker. */
export interface CheckTask {
  readonly request: CheckRequest;
  /** The run numbers that the threads of a random search share. */
  readonly shared: SharedRuns;
}

type System = ExploreOptions<Vocabulary>;
type Found = Exploration<Vocabulary> & {
  readonly runs?: number;
  readonly violatingRun?: number | null;
  readonly faults?: NonNullable<CheckAnswer["faults"]>;
};

/**
 * Explores every run of an experiment within its bounds, or many random runs, on this thread.
 * @param mayGoOn called from time to time with the progress; return false to stop the search
 * @throws UsageError that names the invalid option
 */
export function explore(experiment: Experiment, mayGoOn?: (progress: CheckProgress) => boolean): CheckAnswer {
  requireOptionsFor("explore", experiment);
  return answerTo({ request: requestFrom(experiment), shared: ownRuns() }, mayGoOn);
}

/**
 * Explores as one of the threads that share a search. It does not shrink its counterexample if another thread found a
 * violation in an earlier run, because only the earliest one is reported.
 */
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

/**
 * Shrinks a violating run. Null if it cannot be shrunk: breadth-first search finds a shortest run anyway, and a run with a
 * repeating part is left as it is.
 */
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

/** Combines the answers of all threads. The violation of the earliest run counts, as with one thread. The counts are added up. */
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

/** @param parts the progress of each thread that has reported */
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

/** The number of the next run, and the lowest number of a violating run. */
export type SharedRuns = Int32Array;

const NEXT = 0;
const LOWEST = 1;
const NONE = 2 ** 31 - 1;

/** Run numbers in shared memory, for several threads. */
export function sharedRuns(): SharedRuns {
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  shared[LOWEST] = NONE;
  return shared;
}

/** Run numbers for one thread. Pages without cross-origin isolation have no shared memory. */
export function ownRuns(): SharedRuns {
  const own = new Int32Array(2);
  own[LOWEST] = NONE;
  return own;
}

/**
 * Takes the remaining run numbers, one at a time. A thread that stops early, because it found a violation, leaves none to the
 * others. All lower numbers are taken by then and their runs are completed, so the earliest violation is still found.
 */
export function* sharedNumbers(shared: SharedRuns, runs: number): Iterable<number> {
  const take = (): number => Atomics.add(shared, NEXT, 1);
  try {
    for (let number = take(); number < runs; number = take()) yield number;
  } finally {
    Atomics.store(shared, NEXT, runs);
  }
}

/** Lowers the number of the earliest violating run to `run`, unless it is lower already. */
export function noteViolated(shared: SharedRuns, run: number): void {
  let seen = Atomics.load(shared, LOWEST);
  while (run < seen) {
    const before = seen;
    seen = Atomics.compareExchange(shared, LOWEST, before, run);
    if (seen === before) return;
  }
}

/** Whether no earlier run is known to violate something. */
const isLowest = (shared: SharedRuns, run: number): boolean => Atomics.load(shared, LOWEST) >= run;
