/**
 * The jobs of a campaign. A job performs the runs of consecutive seeds and returns their results. It does not depend on
 * any other job.
 */
import { z } from "zod";
import { walk } from "../../check/search/walks.ts";
import { systemFor } from "../../check/suite.ts";
import { UsageError } from "../../core/errors.ts";
import { hash } from "../../core/plain.ts";
import type { CheckRequest } from "../check-request.ts";
import { failuresOf, play, type Staged } from "../simulate.ts";
import { type Campaign, type CampaignExperiment, type Chunk, type Soak, seedsOf, WALK_SEED } from "./file.ts";
import type { SmallestRun } from "./smallest.ts";

/** The maximum number of seeds to list for the same failure. */
const NAMED_SEEDS = 10;

const range = z.strictObject({ min: z.number(), max: z.number(), sum: z.number() });
const failure = z.strictObject({
  what: z.string().max(1_000),
  count: z.int().positive(),
  seeds: z.array(z.int()).max(NAMED_SEEDS),
  smallest: z.strictObject({ seed: z.int(), size: z.number() }),
});
const chunkResult = z.strictObject({
  experiment: z.int().min(0),
  chunk: z.int().min(0),
  runs: z.int().positive(),
  digest: z.int(),
  size: range,
  timeMs: range.nullable(),
  failures: z.array(failure).max(1_000),
});

/**
 * The result of one job. `size` counts the messages in simulated runs or the moves in walks, and is 0 for a soak.
 * `timeMs` is the virtual time of simulated runs, and null for the others. Equal digests mean that every run had the
 * same result.
 */
export type ChunkResult = z.infer<typeof chunkResult>;
/** The smallest, the largest and the sum of a set of numbers. */
export type Range = ChunkResult["size"];
export type Failure = ChunkResult["failures"][number];

export interface RunResult {
  readonly size: number;
  readonly timeMs: number | null;
  /** The names of violated properties and unmet expectations. */
  readonly failures: readonly string[];
}

/** A function, provided by the caller, that runs a soak. Resolves to null if the soak was stopped. */
export type RunSoak = (soak: Soak, seed: number) => Promise<RunResult | null>;

/** Validates a result from an external source. @returns null if it is not a result of this campaign */
export function asChunkResult(campaign: Campaign, value: unknown): ChunkResult | null {
  const checked = chunkResult.safeParse(value);
  if (!checked.success) return null;
  const { experiment, chunk, runs } = checked.data;
  return isChunkOf(campaign, { experiment, chunk }) && seedsOf(campaign, { experiment, chunk }).count === runs
    ? checked.data
    : null;
}

/** Whether the campaign contains this chunk. */
function isChunkOf({ experiments }: Campaign, { experiment, chunk }: Chunk): boolean {
  const { chunkSize = 1, seeds = { count: 0 } } = experiments[experiment] ?? {};
  return Number.isInteger(chunk) && chunk >= 0 && chunk * chunkSize < seeds.count;
}

/**
 * Runs one job.
 * @param mayGoOn called after every run and occasionally during a simulated run
 * @returns null if the job was stopped
 */
export async function runChunk(
  campaign: Campaign,
  chunk: Chunk,
  runSoak: RunSoak,
  mayGoOn: () => boolean,
): Promise<ChunkResult | null> {
  const { from, count } = seedsOf(campaign, chunk);
  const experiment = campaign.experiments[chunk.experiment] as CampaignExperiment;
  const tally = new Tally();
  const runs = runsOf(experiment, { from, count }, runSoak, mayGoOn);
  for await (const run of runs) {
    if (run === null || !mayGoOn()) return null;
    tally.add(from + tally.runs, run);
  }
  return tally.runs < count ? null : { ...chunk, ...tally.result() };
}

type Seeds = CampaignExperiment["seeds"];

function runsOf(
  experiment: CampaignExperiment,
  seeds: Seeds,
  runSoak: RunSoak,
  mayGoOn: () => boolean,
): Iterable<RunResult> | AsyncIterable<RunResult | null> {
  if (experiment.kind === "simulate") return simulatedRuns(experiment.made, seeds, mayGoOn);
  if (experiment.kind === "walk") return walks(experiment.request, seeds, mayGoOn);
  return soaks(experiment.soak, seeds, runSoak);
}

function* simulatedRuns(made: Staged, { from, count }: Seeds, mayGoOn: () => boolean): Generator<RunResult> {
  for (let seed = from; seed < from + count; seed++) {
    const slices = play({ ...made, scenario: { ...made.scenario, seed } }, { deliveredOnly: false });
    let slice = slices.next(true);
    while (slice.done !== true) slice = slices.next(mayGoOn());
    if (slice.value === null) return;
    const { messages, timeMs } = slice.value;
    yield { size: messages.total, timeMs, failures: failuresOf(slice.value) };
  }
}

/** Performs random walks. The seed of a walk is its run number, so that all runs share one cache of handler results. */
function* walks(
  { spec, strategy, steps }: CheckRequest,
  { from, count }: Seeds,
  mayGoOn: () => boolean,
): Generator<RunResult> {
  if (strategy === "bfs" || strategy === "dfs") throw new UsageError("bad-campaign", "expected a random strategy");
  const system = systemFor(spec);
  let next = from;
  while (next < from + count && mayGoOn()) {
    const done: RunResult[] = [];
    let moves = 0;
    const found = walk({
      ...system,
      strategy,
      seed: WALK_SEED,
      firstRun: next,
      runs: from + count - next,
      stepsPerRun: steps,
      mayGoOn: ({ transitions }) => {
        done.push({ size: transitions - moves, timeMs: null, failures: [] });
        moves = transitions;
        return mayGoOn();
      },
    });
    next += done.length;
    // A violation ends the walk, so the loop continues with the next run.
    const last = found.property === null ? undefined : done.pop();
    yield* done;
    if (last !== undefined) yield { ...last, failures: [(found.property as { name: string }).name] };
  }
}

async function* soaks(soak: Soak, { from, count }: Seeds, run: RunSoak): AsyncGenerator<RunResult | null> {
  for (let seed = from; seed < from + count; seed++) yield await run(soak, seed);
}

class Tally {
  runs = 0;
  #digest = 0;
  readonly #size = emptyRange();
  readonly #timeMs = emptyRange();
  #isTimed = true;
  readonly #failures = new Map<string, Failure>();

  add(seed: number, { size, timeMs, failures }: RunResult): void {
    this.runs += 1;
    this.#digest = hash([this.#digest, seed, size, timeMs, failures]);
    widen(this.#size, size);
    if (timeMs === null) this.#isTimed = false;
    else widen(this.#timeMs, timeMs);
    for (const what of failures) {
      const one: Failure = { what, count: 1, seeds: [seed], smallest: { seed, size } };
      const before = this.#failures.get(what);
      this.#failures.set(what, before === undefined ? one : failureTogether(before, one));
    }
  }

  result(): Omit<ChunkResult, keyof Chunk> {
    const failures = [...this.#failures.values()];
    return {
      runs: this.runs,
      digest: this.#digest,
      size: this.#size,
      timeMs: this.#isTimed ? this.#timeMs : null,
      failures,
    };
  }
}

/** Merges two records of the same failure. `a` has the lower seeds. */
function failureTogether(a: Failure, b: Failure): Failure {
  return {
    what: a.what,
    count: a.count + b.count,
    seeds: [...a.seeds, ...b.seeds].slice(0, NAMED_SEEDS),
    smallest: b.smallest.size < a.smallest.size ? b.smallest : a.smallest,
  };
}

const emptyRange = (): Range => ({ min: Number.MAX_VALUE, max: 0, sum: 0 });

function widen(range: Range, value: number): void {
  range.min = Math.min(range.min, value);
  range.max = Math.max(range.max, value);
  range.sum += value;
}

interface Spread {
  readonly min: number;
  readonly mean: number;
  readonly max: number;
}

/** The noun used for counts of runs. */
export const RUNS = { one: "run", more: "runs" };

export interface CampaignSummary {
  readonly campaign: string;
  readonly runs: number;
  /** The combined digest. Equal digests mean that every run of every experiment had the same result. */
  readonly digest: string;
  readonly experiments: readonly ExperimentSummary[];
}

export interface ExperimentSummary {
  readonly name: string;
  readonly kind: CampaignExperiment["kind"];
  readonly seeds: CampaignExperiment["seeds"];
  readonly runs: number;
  readonly digest: string;
  /** The number of messages in simulated runs. Null for other experiments. */
  readonly messages: Spread | null;
  /** The virtual time of simulated runs. Null for other experiments. */
  readonly timeMs: Spread | null;
  /** The number of moves in walks. Null for other experiments. */
  readonly moves: Spread | null;
  readonly failures: readonly (Failure & { readonly kept: SmallestRun | null })[];
}

/** Summarizes the results of each experiment. @param results each chunk once, in any order */
export function experimentSummaries(campaign: Campaign, results: readonly ChunkResult[]): readonly ExperimentSummary[] {
  const ordered = results.toSorted((a, b) => a.experiment - b.experiment || a.chunk - b.chunk);
  return campaign.experiments.map(({ name, kind, seeds }, at) => {
    const own = ordered.filter(({ experiment }) => experiment === at);
    const runs = own.reduce((sum, each) => sum + each.runs, 0);
    const size = spreadOf(
      own.map((each) => each.size),
      runs,
    );
    const timeMs = spreadOf(
      own.flatMap((each) => each.timeMs ?? []),
      runs,
    );
    return {
      name,
      kind,
      seeds,
      runs,
      digest: digestOf(own.map(({ digest }) => digest)),
      messages: kind === "simulate" ? size : null,
      timeMs: kind === "simulate" ? timeMs : null,
      moves: kind === "walk" ? size : null,
      failures: failuresTogether(own).map((failure) => ({ ...failure, kept: null })),
    };
  });
}

/** Adds up the results of the experiments. */
export function campaignSummary(campaign: Campaign, experiments: readonly ExperimentSummary[]): CampaignSummary {
  return {
    campaign: campaign.name,
    runs: experiments.reduce((sum, { runs }) => sum + runs, 0),
    digest: digestOf(experiments.map(({ digest }) => digest)),
    experiments,
  };
}

function failuresTogether(ordered: readonly ChunkResult[]): readonly Failure[] {
  const together = new Map<string, Failure>();
  for (const failure of ordered.flatMap(({ failures }) => failures)) {
    const before = together.get(failure.what);
    together.set(failure.what, before === undefined ? failure : failureTogether(before, failure));
  }
  return [...together.values()];
}

function spreadOf(ranges: readonly Range[], runs: number): Spread | null {
  if (ranges.length === 0 || runs === 0) return null;
  const { min, max, sum } = ranges.reduce(
    (a, b) => ({ min: Math.min(a.min, b.min), max: Math.max(a.max, b.max), sum: a.sum + b.sum }),
    emptyRange(),
  );
  return { min, mean: sum / runs, max };
}

const digestOf = (parts: readonly unknown[]): string => hash(parts).toString(16).padStart(14, "0");
