/** Simulates experiments, one run or several, in slices: their driver can show how far they are, and stop them. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Draws } from "../sim/draws.ts";
import { LostMessages } from "../sim/tally.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import { type Experiment, requireOptionsFor } from "./experiment.ts";
import { MAX_SEED } from "./options.ts";
import { type Point, type RecordedPoint, snapshotFrom } from "./recording.ts";
import type { ParsedScenario } from "./scenario/parse.ts";
import type { Result } from "./scenario/result.ts";
import { type Cast, cast, type Progress, playScenario, runScenario } from "./scenario/run.ts";
import type { Scenario } from "./scenario/schema.ts";
import { continuationOf, scenarioOf } from "./simulation.ts";

/** One run. @throws UsageError that names the word which makes no sense */
export function simulate(experiment: Experiment): Result {
  requireOptionsFor("simulate", experiment);
  return runScenario(scenarioOf(experiment));
}

/** Looking at every node after every step would take longer than all the rest with more. */
const WATCHED_NODES = 1_000;

export interface Play {
  readonly see?: (entry: TraceEntry) => void;
  /** Told of each step of the scenario that is taken, and when. */
  readonly took?: (step: Scenario["steps"][number], atMs: number) => void;
  /** Keeps what is drawn. */
  readonly draws?: Draws;
  /** Leaves messages out of the count that never arrived. */
  readonly deliveredOnly: boolean;
}

/** A scenario, and who plays in it. */
export interface Staged extends ParsedScenario {
  readonly cast: Cast;
  /** The point of a recording that it continues from. */
  readonly from: RecordedPoint | null;
}

/** @throws UsageError */
export function staged(parsed: ParsedScenario): Staged {
  return { ...parsed, cast: cast(parsed.scenario), from: null };
}

/** The words that a recording answers by itself. */
const ofRecordings = ["nodes", "ring", "protocol", "variant", "options", "started"] as const;

type Continuation = Omit<Experiment, "protocol" | "until"> & { readonly protocol?: string; readonly until?: Point };

/**
 * A recording that continues differently, from the point that `until` names.
 * @param file where the recording was read, for errors
 * @throws UsageError that names the word
 */
export function continued(trace: Trace, file: string, { until, ...words }: Continuation): Staged {
  const stray = ofRecordings.find((word) => words[word] !== undefined);
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent beside --from: the recording has it`);
  if (until === undefined)
    throw new UsageError(
      "bad-argument",
      "expected --until beside --from: the point to go on from, such as 1500 or #57",
    );
  const recorded = snapshotFrom(trace, file, until);
  const { snapshot, origin, header, protocol } = recorded;
  const from = { ...recorded, snapshot: { ...snapshot, at: snapshot.at - origin } };
  const scenario = continuationOf(from, words);
  const options = header.options ?? {};
  return { scenario, place: () => file, cast: { ...cast({ ...scenario, options: {} }, protocol), options }, from };
}

/** Yields how far it has come, and takes whether to go on. */
export type Slices<P, T> = Generator<P, T, boolean>;

/** Null if it was stopped. */
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

/** What several runs came to. */
export interface Summary {
  readonly protocol: string;
  readonly nodes: number;
  readonly seed: number;
  readonly runs: number;
  readonly messages: Spread;
  readonly timeMs: Spread;
  readonly violations: readonly { readonly what: string; readonly seeds: readonly number[] }[];
}

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** The same scenario with one seed after the other. It yields how many runs are done; stopped, it sums those up. */
export function* playSeveral(staged: Staged, runs: number, how: Play): Slices<number, Summary> {
  const { seed, protocol } = staged.scenario;
  const most = MAX_SEED - runs + 1;
  if (seed > most)
    throw new UsageError(
      "bad-argument",
      unexpected("the seed", `at most ${most}, as each of the ${runs} runs has the next`, seed),
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

/** The names of violated properties, and of expectations that are not met. */
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
