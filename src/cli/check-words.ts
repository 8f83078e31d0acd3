/** The words of `coterie check`, and the search that they spell. */
import { availableParallelism } from "node:os";
import type { CrashNotificationTime, TimerMode } from "../check/model.ts";
import { isWorkEnough, type SystemSpec, systemFor } from "../check/suite.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Nodes } from "../experiment/scenario/index.ts";
import { type Family, protocolNamed, type RegistryEntry, variantNamed } from "../protocols/index.ts";
import { idsOf, requireFamilyWords, requireKnown } from "./sim-words.ts";

const DEFAULT_NODES = 3;
const DEFAULT_SEED = 1;
const DEFAULT_RUNS = 10_000;
const DEFAULT_STEPS = 500;
/** Each thread remembers for itself what handlers do, so memory grows with their number. */
const MAX_DEFAULT_WORKERS = 8;

export const strategies = ["bfs", "dfs", "random", "pct", "swarm"] as const;
export type StrategyName = (typeof strategies)[number];

export const isRandom = (strategy: StrategyName): strategy is Exclude<StrategyName, "bfs" | "dfs"> =>
  strategy !== "bfs" && strategy !== "dfs";

export interface CheckWords {
  readonly nodes?: number;
  readonly ring?: readonly NodeId[];
  readonly variant?: string;
  readonly options?: object;
  readonly call?: Nodes;
  readonly request?: Nodes;
  readonly send?: Nodes;
  readonly propose?: Nodes;
  readonly entries?: number;
  readonly messages?: number;
  readonly timers?: TimerMode;
  readonly begin?: "idle" | "down" | "together";
  readonly network?: "fifo" | "inbox" | "bag";
  readonly crashes?: number;
  readonly recoveries?: number;
  readonly losses?: number;
  readonly duplications?: number;
  readonly journal?: "kept" | "lost";
  /** Crashes may strike in the middle of a step. */
  readonly withinStep?: boolean;
  /** Left out: nobody is told of crashes. */
  readonly notices?: CrashNotificationTime;
  readonly property?: string;
  readonly strategy?: StrategyName;
  readonly seed?: number;
  readonly runs?: number;
  readonly steps?: number;
  readonly workers?: number;
  readonly fewestFaults?: true;
  readonly coverage?: true;
  readonly maxStates?: number;
  readonly maxDepth?: number;
  readonly maxInFlight?: number;
  readonly maxTimeouts?: number;
  /** In MB. */
  readonly maxMemory?: number;
}

/** Plain data, so that it reaches a thread. */
export interface CheckRequest {
  readonly spec: SystemSpec;
  readonly strategy: StrategyName;
  readonly seed: number;
  /** For random strategies, as are the next two. */
  readonly runs: number;
  readonly steps: number;
  /** How many threads share out the runs. */
  readonly workers: number;
  readonly fewestFaults: boolean;
  readonly coverage: boolean;
  /** Null: no bound of its own. */
  readonly maxMemoryBytes: number | null;
}

/** @throws UsageError that names the word. */
export function requestFrom(protocol: string, words: CheckWords): CheckRequest {
  const entry = protocolNamed(protocol);
  if (words.variant !== undefined) variantNamed(protocol, words.variant);
  requireFamilyWords(protocol, entry.family, words);
  requireStrategyWords(words);
  const { nodes = words.ring?.length ?? DEFAULT_NODES, ring } = words;
  const ids = idsOf(protocol, entry, { nodes, ...(ring === undefined ? {} : { ring }) });
  const onRing = entry.onRing === null || ring === undefined ? {} : entry.onRing(ring);
  const { count } = entry.family;
  const times = count === null ? undefined : words[count];
  const system: SystemSpec = {
    protocol,
    variant: words.variant ?? entry.check.variant ?? null,
    options: { ...onRing, ...words.options },
    nodes: ids.toSorted((a, b) => a - b),
    ...(times === undefined ? {} : { times }),
    property: words.property ?? null,
    ...given(words, passedOn),
    ...(words.notices === undefined ? {} : { crashNotifications: words.notices }),
  };
  const spec = { ...defaultBounds(entry, system), ...system, initiators: initiatorsFor(entry.family, words, system) };
  systemFor(spec); // Which refuses what makes no sense, here rather than on a thread.
  const { strategy = "bfs", seed = DEFAULT_SEED, runs = DEFAULT_RUNS, steps = DEFAULT_STEPS } = words;
  const { workers = workersFor(strategy, runs), maxMemory, fewestFaults = false, coverage = false } = words;
  const maxMemoryBytes = maxMemory === undefined ? null : maxMemory * 2 ** 20;
  return { spec, strategy, seed, runs, steps, workers, fewestFaults, coverage, maxMemoryBytes };
}

/** The bounds that a protocol has if nobody says. */
function defaultBounds(
  { check, variants }: RegistryEntry,
  { timers: said, variant = null }: SystemSpec,
): Partial<SystemSpec> {
  const { maxInFlight, maxTimeouts } = check;
  const own = variant === (check.variant ?? null) ? given(check, ["timers", "crashNotifications"]) : {};
  const timers = said ?? own.timers ?? "free";
  if (timers === "never" || (variant !== null && variants[variant]?.ends === true)) return own;
  return {
    ...own,
    ...(maxInFlight === undefined || timers === "quiet" ? {} : { maxInFlight }),
    ...(maxTimeouts === undefined ? {} : { maxTimeouts }),
  };
}

/** How many threads there are if nobody says. */
function workersFor(strategy: StrategyName, runs: number): number {
  return isRandom(strategy) ? Math.min(availableParallelism(), MAX_DEFAULT_WORKERS, runs) : 1;
}

/** The default initiators: none where starting is work enough, otherwise those of the family. */
function initiatorsFor(family: Family, words: CheckWords, system: SystemSpec): readonly NodeId[] {
  const { verb } = family;
  const { nodes } = system;
  const named = verb === null ? undefined : words[verb];
  if (named === undefined) {
    if (isWorkEnough(system)) return [];
    return family.initiators === "all" ? nodes : nodes.slice(0, 1);
  }
  if (named === "all") return nodes;
  const listed = typeof named === "number" ? [named] : named;
  for (const node of listed) requireKnown(`--${verb}`, nodes, node);
  return listed;
}

const passedOn = [
  "timers",
  "begin",
  "network",
  "crashes",
  "recoveries",
  "losses",
  "duplications",
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

/** Words that would go unheard are refused. */
function requireStrategyWords(words: CheckWords): void {
  const { strategy = "bfs", fewestFaults } = words;
  const strayed = (["seed", "runs", "steps"] as const).find((word) => words[word] !== undefined && !isRandom(strategy));
  if (strayed !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected --${strayed} to come with --strategy random, pct or swarm: ${strategy} looks at every run, whatever the seed`,
    );
  if (words.workers !== undefined && !isRandom(strategy))
    throw new UsageError(
      "bad-argument",
      `expected --workers to come with --strategy random, pct or swarm: ${strategy} has to know of each state whether it was seen, which one thread keeps`,
    );
  const bound = (["maxStates", "maxDepth"] as const).find((word) => words[word] !== undefined && isRandom(strategy));
  if (bound !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected --${bound === "maxStates" ? "max-states" : "max-depth"} to come with --strategy bfs or dfs: random runs are bounded by --runs and --steps`,
    );
  if (words.withinStep === true && (words.crashes ?? 0) === 0)
    throw new UsageError("bad-argument", "expected --within-step to come with --crashes, such as --crashes 1");
  const hasFaults = [words.crashes, words.recoveries, words.losses, words.duplications].some((most) => (most ?? 0) > 0);
  if (fewestFaults === true && !hasFaults)
    throw new UsageError(
      "bad-argument",
      "expected --fewest-faults to come with the faults there may be, such as --crashes 2 --losses 2",
    );
  if (fewestFaults === true && strategy !== "bfs")
    throw new UsageError("bad-argument", unexpected("--strategy", "bfs with --fewest-faults", strategy));
}
