/**
 * Finds the smallest run with a given failure. The run is repeated from its seed, shrunk if the checker can replay it,
 * and saved as a trace.
 */
import { counterexample } from "../../check/counterexample.ts";
import type { ModelOptions } from "../../check/model.ts";
import { walk } from "../../check/search/walks.ts";
import { type Shrunk, shrink } from "../../check/shrink/shrink.ts";
import { shrinkTrace } from "../../check/shrink/trace.ts";
import { systemFor } from "../../check/suite.ts";
import { UsageError } from "../../core/errors.ts";
import type { Vocabulary } from "../../core/protocol.ts";
import type { TraceEntry, TraceHeader } from "../../trace/entry.ts";
import { writeTrace } from "../../trace/file.ts";
import { vectorClocks } from "../../trace/steps.ts";
import type { CheckRequest } from "../check-request.ts";
import { liarsIn, protocolOf } from "../recording.ts";
import { play, type Staged, simulatedHeader } from "../simulate.ts";
import { type CampaignExperiment, WALK_SEED } from "./file.ts";

export interface SmallestRun {
  readonly seed: number;
  /** The number of moves before and after shrinking. Both are null if the checker's model cannot replay the run. */
  readonly moves: number | null;
  readonly shrunkTo: number | null;
  /** The text of a trace file that contains the shrunk run or, if it could not be shrunk, the original one. */
  readonly trace: string;
}

/**
 * The maximum number of replays. Once they are used up, shrinking stops with the best run so far. Limiting the number
 * of replays, rather than the time, gives equal results on every machine.
 */
const MAX_REPLAYS = 5_000;
/** The maximum number of entries in a run to be shrunk. */
const MAX_SHRUNK_ENTRIES = 20_000;

/**
 * Repeats a failing run and shrinks it.
 * @param what names the violated property or unmet expectation
 * @returns null for a soak, which has no trace
 */
export function smallestRun(experiment: CampaignExperiment, seed: number, what: string): SmallestRun | null {
  if (experiment.kind === "simulate") return simulated(experiment.made, seed, what);
  return experiment.kind === "walk" ? walked(experiment.request, seed) : null;
}

function simulated(staged: Staged, seed: number, what: string): SmallestRun {
  const made = { ...staged, scenario: { ...staged.scenario, seed } };
  const entries: TraceEntry[] = [];
  const slices = play(made, { deliveredOnly: false, see: (entry) => entries.push(entry) });
  let slice = slices.next(true);
  while (slice.done !== true) slice = slices.next(true);
  if (slice.value === null) throw new Error("the run was stopped, although its caller never stops it");
  const header = simulatedHeader(made, slice.value);
  const whole = { seed, moves: null, shrunkTo: null, trace: traceText(header, entries) };
  const protocol = protocolOf(header);
  const property = protocol.properties.find(({ name }) => name === what);
  if (property === undefined || entries.length > MAX_SHRUNK_ENTRIES) return whole;
  const nodes = made.cast.ids.toSorted((a, b) => a - b);
  const small = shrinkTrace<Vocabulary>({ protocol, nodes, maxReplays: MAX_REPLAYS }, entries as never[], property);
  return small === null ? whole : shrunkRun(header, small.options, small, seed);
}

function walked({ spec, strategy, steps }: CheckRequest, seed: number): SmallestRun | null {
  if (strategy === "bfs" || strategy === "dfs") throw new UsageError("bad-campaign", "expected a random strategy");
  const { mayGoOn: _never, ...system } = systemFor(spec);
  const found = walk({ ...system, strategy, seed: WALK_SEED, firstRun: seed, runs: 1, stepsPerRun: steps });
  if (found.property === null) return null;
  const { protocol, variant = null, options = {}, nodes, byzantine } = spec;
  const made = { kind: "trace", version: 1, madeBy: "checker", form: "model" } as const;
  const header = {
    ...made,
    protocol,
    variant,
    options,
    nodes,
    seed: WALK_SEED,
    ...liarsIn(byzantine),
    violation: null,
  };
  const isRepeating = found.loop !== null && found.loop < found.path.length;
  const small = isRepeating ? null : shrink({ ...system, maxReplays: MAX_REPLAYS }, found.path, found.property);
  if (small !== null) return shrunkRun(header, system, small, seed);
  const { entries, violation } = counterexample(system, found);
  const trace = traceText({ ...header, violation }, entries);
  return { seed, moves: found.path.length, shrunkTo: null, trace };
}

function shrunkRun(
  header: TraceHeader,
  options: ModelOptions<Vocabulary>,
  { path, property, originalLength }: Shrunk<Vocabulary>,
  seed: number,
): SmallestRun {
  const { entries, violation } = counterexample(options, { path, property, loop: null });
  const trace = traceText({ ...header, madeBy: "checker", violation }, entries);
  return { seed, moves: originalLength, shrunkTo: path.length, trace };
}

const traceText = (header: TraceHeader, entries: readonly TraceEntry[]): string =>
  writeTrace(header, entries, vectorClocks(entries));
