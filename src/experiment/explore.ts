/** Explores an experiment, either on one thread or as one of several threads that share the runs of a random search. */
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
  /**
   * The current phase. `following`: all states have been found, and the search for infinite runs has begun.
   * `shrinking`: a violation was found and is being shrunk.
   */
  readonly phase: "searching" | "following" | "shrinking";
  /** The number of completed runs in a random search. Null for `bfs` and `dfs`. */
  readonly runs: number | null;
  /** The memory in use, in bytes, as measured by the caller. 0 if it is not measured. */
  readonly memoryBytes: number;
}

/** The result of an exploration. */
export interface CheckAnswer {
  /**
   * The verdict. `unknown` means that no violation was found but the search was incomplete; never treat it as a pass.
   */
  readonly verdict: Exploration<Vocabulary>["verdict"];
  /** The violated property. Null if none was violated. */
  readonly property: NamedProperty | null;
  /** The properties that were checked. */
  readonly checked: readonly NamedProperty[];
  /** The `sometimes` properties that became true in some run. */
  readonly reached: readonly string[];
  /** The number of distinct states. For a random search, the number of visited states, counting every visit. */
  readonly states: number;
  /** The number of explored moves. */
  readonly transitions: number;
  /** The number of moves in the longest of the shortest paths or, for a random search, in the longest run. */
  readonly depth: number;
  /** The number of completed runs in a random search. Null for `bfs` and `dfs`. */
  readonly runs: number | null;
  /** The number of the violating run in a random search, starting from 0. Null if there is none. */
  readonly violatingRun: number | null;
  /** Why the search ended early. Null if it did not. */
  readonly ended: "stopped" | "memory" | null;
  /** The memory in use at the end, in bytes. */
  readonly memoryBytes: number;
  /** The counterexample as a readable log. Null if nothing was violated. */
  readonly log: CounterexampleLog | null;
  /** The index of the move at which the infinitely repeating part begins. Null for a finite run. */
  readonly loop: number | null;
  /** The number of moves before shrinking. Null if the counterexample was not shrunk. */
  readonly shrunkFrom: number | null;
  /** The counterexample as a trace. Null if nothing was violated. */
  readonly trace: Counterexample<Vocabulary> | null;
  /**
   * The result of `--fewest-faults`. `breaking`: the number of faults that violates a property, or null. `harmless`:
   * the highest number of faults that is proven harmless, or −1 if not even zero faults is. Null without
   * `--fewest-faults`.
   */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
  /** The events and handlers that the search reached. */
  readonly reach: Reach;
  /** The network, timers, initial state and crash notifications of the system that was explored. */
  readonly system: Pick<ExploreOptions<Vocabulary>, "network" | "timers" | "begin"> & {
    readonly crashNotifications: CrashNotificationTime | null;
  };
}

/** A property without its functions. */
export type NamedProperty = Pick<Property<Vocabulary>, "name" | "claim" | "when">;

/** The work of one thread. It consists of plain data and shared memory, so it can be sent to a worker. */
export interface CheckTask {
  readonly request: CheckRequest;
  /** The run numbers shared by the threads of a random search. */
  readonly shared: SharedRuns;
}

type System = ExploreOptions<Vocabulary>;
type Found = Exploration<Vocabulary> & {
  readonly runs?: number;
  readonly violatingRun?: number | null;
  readonly faults?: NonNullable<CheckAnswer["faults"]>;
};

/**
 * Explores every run of an experiment within its bounds, or many random runs, on the current thread.
 *
 * @param mayGoOn called from time to time with the progress; return false to stop the search
 * @example
 * const { verdict, states } = explore({ protocol: "ricart-agrawala", nodes: 3, request: [0, 1] });
 * @throws UsageError that names the invalid option
 */
export function explore(experiment: Experiment, mayGoOn?: (progress: CheckProgress) => boolean): CheckAnswer {
  requireOptionsFor("explore", experiment);
  return answerTo({ request: requestFrom(experiment), shared: ownRuns() }, mayGoOn);
}

/**
 * Explores as one of the threads that share a search. It does not shrink its counterexample if another thread has found
 * a violation in an earlier run, because only the earliest one is reported.
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
 * Shrinks a violating run. Returns null if the run is not shrunk: breadth-first search already finds a shortest run,
 * and a run that repeats forever is left as it is.
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

/**
 * Combines the answers of all threads. As with a single thread, the violation in the earliest run is the one reported.
 * Counts are added up.
 */
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

/** Combines the progress of all threads. @param parts the progress of each thread that has reported */
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
    // Threads in the same process share its memory.
    memoryBytes: Math.max(...parts.map(({ memoryBytes }) => memoryBytes)),
  };
}

/** The number of the next run and the lowest number of a violating run. */
export type SharedRuns = Int32Array;

const NEXT = 0;
const LOWEST = 1;
const NONE = 2 ** 31 - 1;

/** Creates run numbers in shared memory, for several threads. */
export function sharedRuns(): SharedRuns {
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  shared[LOWEST] = NONE;
  return shared;
}

/** Creates run numbers for a single thread. Pages without cross-origin isolation do not have shared memory. */
export function ownRuns(): SharedRuns {
  const own = new Int32Array(2);
  own[LOWEST] = NONE;
  return own;
}

/**
 * Takes the remaining run numbers, one at a time. A thread that stops early because it found a violation leaves no
 * numbers for the others. By then, all lower numbers have been taken and their runs will be completed, so the earliest
 * violation is still found.
 */
export function* sharedNumbers(shared: SharedRuns, runs: number): Iterable<number> {
  const take = (): number => Atomics.add(shared, NEXT, 1);
  try {
    for (let number = take(); number < runs; number = take()) yield number;
  } finally {
    Atomics.store(shared, NEXT, runs);
  }
}

/** Lowers the number of the earliest violating run to `run`, unless it is already lower. */
export function noteViolated(shared: SharedRuns, run: number): void {
  let seen = Atomics.load(shared, LOWEST);
  while (run < seen) {
    const before = seen;
    seen = Atomics.compareExchange(shared, LOWEST, before, run);
    if (seen === before) return;
  }
}

/** Whether no run with a lower number is known to violate a property. */
const isLowest = (shared: SharedRuns, run: number): boolean => Atomics.load(shared, LOWEST) >= run;
