/** Simulates experiments, one run or several, in slices: their driver can show how far they are, and stop them. */
import { LostMessages } from "../sim/tally.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { type Experiment, requireWordsOf } from "./experiment.ts";
import type { RecordedPoint } from "./recording.ts";
import type { ParsedScenario } from "./scenario/parse.ts";
import { type Progress, playScenario, type Result, runScenario } from "./scenario/run.ts";
import { type Cast, cast } from "./scenario/soundness.ts";
import { scenarioOf } from "./simulation.ts";

/** One run. @throws UsageError that names the word which makes no sense */
export function simulate(experiment: Experiment): Result {
  requireWordsOf("simulate", experiment);
  return runScenario(scenarioOf(experiment));
}

/** Looking at every node after every step would take longer than all the rest with more. */
const WATCHED_NODES = 1_000;

export interface Play {
  readonly see?: (entry: TraceEntry) => void;
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

/** Yields how far it has come, and takes whether to go on. */
export type Slices<P, T> = Generator<P, T, boolean>;

/** Null if it was stopped. */
export function* play(
  { scenario, place, cast, from }: Staged,
  { see, deliveredOnly }: Play,
): Slices<Progress, Result | null> {
  const lost = deliveredOnly ? new LostMessages() : null;
  const trace = (entry: TraceEntry): void => {
    see?.(entry);
    lost?.see(entry);
  };
  const slices = playScenario(scenario, {
    place,
    properties: cast.ids.length > WATCHED_NODES ? "at the end" : "every step",
    ...(see === undefined && lost === null ? {} : { trace }),
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
function failuresOf({ properties, expectations }: Result): string[] {
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
