/** Requests to explore an experiment: the system, the search strategy and the bounds. */
import { handlesCrashNotifications, isWorkEnough, type SystemSpec, systemFor } from "../check/suite.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Family, protocolNamed, type RegistryEntry, variantNamed } from "../protocols/index.ts";
import {
  type Experiment,
  idsOf,
  liarsOf,
  optionsOf,
  requireFamilyOptions,
  requireKnown,
  timesOf,
} from "./experiment.ts";

const DEFAULT_NODES = 3;
const MAX_NODES = 64;
const DEFAULT_SEED = 1;
const DEFAULT_RUNS = 10_000;
const DEFAULT_STEPS = 500;
/**
 * The maximum number of threads to use by default. Each thread caches handler results separately, so memory use grows
 * with the number of threads.
 */
const MAX_DEFAULT_WORKERS = 8;

export type StrategyName = NonNullable<Experiment["strategy"]>;

export const isRandom = (strategy: StrategyName): strategy is Exclude<StrategyName, "bfs" | "dfs"> =>
  strategy !== "bfs" && strategy !== "dfs";

/** A request to explore an experiment. It is plain data, so it can be sent to a worker. */
export interface CheckRequest {
  readonly spec: SystemSpec;
  readonly strategy: StrategyName;
  readonly seed: number;
  /** The number of runs. Like `steps` and `workers`, it applies only to random strategies. */
  readonly runs: number;
  /** The maximum number of moves per run. */
  readonly steps: number;
  /** The number of threads that share the runs. */
  readonly workers: number;
  readonly fewestFaults: boolean;
  /** The memory limit in bytes. Null if unbounded. */
  readonly maxMemoryBytes: number | null;
}

/**
 * Converts an experiment into a request, with all defaults filled in.
 * @param cores the number of threads that can run in parallel
 * @throws UsageError that names the invalid option
 */
export function requestFrom(words: Experiment, cores = 1): CheckRequest {
  const { protocol } = words;
  const entry = protocolNamed(protocol);
  if (words.variant !== undefined) variantNamed(protocol, words.variant);
  requireFamilyOptions(words);
  requireStrategyWords(words);
  const { ring } = words;
  const ids = idsOf(words, entry, DEFAULT_NODES);
  if (ids.length > MAX_NODES)
    throw new UsageError("bad-argument", unexpected("--nodes", `a whole number from 1 to ${MAX_NODES}`, ids.length));
  const onRing = entry.onRing === null || ring === undefined ? {} : entry.onRing(ring);
  const times = timesOf(entry.family, words);
  const system: SystemSpec = {
    protocol,
    variant: words.variant ?? entry.check.variant ?? null,
    options: { ...onRing, ...optionsOf(words) },
    byzantine: liarsOf(words),
    nodes: ids.toSorted((a, b) => a - b),
    ...(times === undefined ? {} : { times }),
    property: words.property ?? null,
    ...given(words, passedOn),
    ...timeOf(words),
    ...(words.failureDetector === undefined ? {} : { crashNotifications: words.failureDetector }),
  };
  const spec = {
    ...defaultBounds(entry, system),
    ...system,
    initiators: initiatorsFor(entry.family, words, system),
    ...(words.voteNo === undefined ? {} : { refusers: listed("vote-no", words.voteNo, system.nodes) }),
  };
  systemFor(spec); // If the system is invalid, throw here rather than in a worker.
  if (words.failureDetector !== undefined && !handlesCrashNotifications(spec))
    throw new UsageError(
      "bad-argument",
      unexpected(
        "--failure-detector",
        "absent, or of a protocol and variant that handle notifications of crashes",
        spec.variant === null ? protocol : `${protocol}, variant ${spec.variant}`,
      ),
    );
  const { strategy = "bfs", seed = DEFAULT_SEED, runs = DEFAULT_RUNS, steps = DEFAULT_STEPS } = words;
  const { workers = workersFor(strategy, runs, cores), maxMemory, fewestFaults = false } = words;
  const maxMemoryBytes = maxMemory === undefined ? null : maxMemory * 2 ** 20;
  return { spec, strategy, seed, runs, steps, workers, fewestFaults, maxMemoryBytes };
}

function defaultBounds(
  { check, variants }: RegistryEntry,
  { timers: said, variant = null }: SystemSpec,
): Partial<SystemSpec> {
  const { maxInFlight, maxTimeouts } = check;
  // A protocol that works in rounds does so in every variant.
  const isHinted = variant === (check.variant ?? null) || check.timers === "rounds";
  const own = isHinted ? given(check, ["timers", "crashNotifications"]) : {};
  const timers = said ?? own.timers ?? "free";
  if (timers === "never" || (variant !== null && variants[variant]?.ends === true)) return own;
  return {
    ...own,
    ...(maxInFlight === undefined || timers !== "free" ? {} : { maxInFlight }),
    ...(maxTimeouts === undefined ? {} : { maxTimeouts }),
  };
}

/** Returns the bounds on time. @throws UsageError if the options for time and `--timers` do not match */
function timeOf(words: Experiment): Pick<SystemSpec, "time"> {
  const { timers, delay, unit, drift, pauses = 0, pause } = words;
  const needs = (wanted: string, because: string): UsageError =>
    new UsageError("bad-argument", `expected ${wanted} with ${because}`);
  if (timers !== "timed") {
    const strayed = (["delay", "unit", "drift", "pauses", "pause"] as const).find((word) => words[word] !== undefined);
    if (strayed !== undefined) throw needs("--timers timed", `--${strayed}`);
    return {};
  }
  const delayMs = typeof delay === "number" ? ([delay, delay] as const) : delay;
  if (!isRange(delayMs)) throw needs("--delay with a longest delay above 0, such as 10 or 1..10,", "--timers timed");
  if (pauses > 0 && pause === undefined) throw needs("--pause, such as --pause 100,", "--pauses");
  return {
    time: {
      unitMs: unit ?? delayMs[1],
      delayMs,
      ...(drift === undefined ? {} : { drift }),
      ...(pause === undefined ? {} : { pauseMs: pause }),
    },
  };
}

const isRange = (delay: unknown): delay is readonly [number, number] => Array.isArray(delay) && delay[1] > 0;

function workersFor(strategy: StrategyName, runs: number, cores: number): number {
  return isRandom(strategy) ? Math.min(cores, MAX_DEFAULT_WORKERS, runs) : 1;
}

/**
 * Returns the initiators. By default, these are the family's initiators, or no nodes if starting gives nodes enough
 * work.
 */
function initiatorsFor(family: Family, words: Experiment, system: SystemSpec): readonly NodeId[] {
  const { verb } = family;
  const { nodes } = system;
  const named = verb === null ? undefined : words[verb];
  if (named === undefined) {
    if (isWorkEnough(system)) return [];
    return family.initiators === "all" ? nodes : nodes.slice(0, 1);
  }
  return listed(verb as string, named, nodes);
}

function listed(word: string, named: NonNullable<Experiment["voteNo"]>, nodes: readonly NodeId[]): readonly NodeId[] {
  if (named === "all") return nodes;
  const ids = typeof named === "number" ? [named] : named;
  for (const node of ids) requireKnown(`--${word}`, nodes, node);
  return ids;
}

const passedOn = [
  "timers",
  "begin",
  "network",
  "crashes",
  "recoveries",
  "losses",
  "duplications",
  "pauses",
  "journal",
  "withinStep",
  "maxStates",
  "maxDepth",
  "maxInFlight",
  "maxTimeouts",
] as const;

function given<T extends object, K extends keyof T>(
  from: T,
  names: readonly K[],
): { [P in K]?: Exclude<T[P], undefined> } {
  return Object.fromEntries(
    names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]),
  ) as never;
}

/** Rejects options that the strategy would ignore. @throws UsageError if such an option is given */
function requireStrategyWords(words: Experiment): void {
  const { strategy = "bfs", fewestFaults } = words;
  const strayed = (["seed", "runs", "steps"] as const).find((word) => words[word] !== undefined && !isRandom(strategy));
  if (strayed !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected --strategy random, pct or swarm with --${strayed}, since ${strategy} searches every run`,
    );
  if (words.workers !== undefined && !isRandom(strategy))
    throw new UsageError(
      "bad-argument",
      `expected --strategy random, pct or swarm with --workers, since ${strategy} runs on one thread`,
    );
  const bound = (["maxStates", "maxDepth"] as const).find((word) => words[word] !== undefined && isRandom(strategy));
  if (bound !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected --strategy bfs or dfs with --${bound === "maxStates" ? "max-states" : "max-depth"}: random runs are bounded by --runs and --steps`,
    );
  if (words.withinStep === true && (words.crashes ?? 0) === 0)
    throw new UsageError("bad-argument", "expected --crashes with --within-step, such as --crashes 1");
  const { crashes, recoveries, losses, duplications, pauses } = words;
  const hasFaults = [crashes, recoveries, losses, duplications, pauses].some((most) => (most ?? 0) > 0);
  if (fewestFaults === true && !hasFaults)
    throw new UsageError("bad-argument", "expected faults with --fewest-faults, such as --crashes 2 --losses 2");
  if (fewestFaults === true && strategy !== "bfs")
    throw new UsageError("bad-argument", unexpected("--strategy", "bfs with --fewest-faults", strategy));
}
