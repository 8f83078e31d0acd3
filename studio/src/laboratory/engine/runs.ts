/** Makes the run that a place of the laboratory names: from words, a scenario or a counterexample, with what was done to it. */
import { UsageError } from "../../../../src/core/errors.ts";
import type { Experiment } from "../../../../src/experiment/experiment.ts";
import { snapshotFrom } from "../../../../src/experiment/recording.ts";
import { playScenario, type Result } from "../../../../src/experiment/scenario/run.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { play, type Staged, staged } from "../../../../src/experiment/simulate.ts";
import { continuationOf, scenarioOf } from "../../../../src/experiment/simulation.ts";
import { publishedCosts, simulatedHeader } from "../../../../src/experiment/simulation-report.ts";
import type { PropertyVerdict } from "../../../../src/experiment/verdicts.ts";
import { flagOf, words as known } from "../../../../src/experiment/words.ts";
import { hasToStart } from "../../../../src/protocols/index.ts";
import { vectorClocks } from "../../../../src/trace/causality.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import type { NetworkTurn } from "./drawing.ts";
import { turnedBy } from "./network-turns.ts";
import { type Fork, forksOf, hashOf, MAX_FORKS, MAX_LINK, ownWords, type Words } from "./recipe.ts";

export interface Run {
  readonly title: string;
  readonly about: string;
  readonly trace: Trace;
  /** Of a simulated run; those of a counterexample follow from its trace. */
  readonly verdicts: readonly PropertyVerdict[];
  /** What was done to the network. */
  readonly networks: readonly NetworkTurn[];
  readonly formulas: readonly { readonly when: string; readonly count: number }[];
  readonly forks: readonly Fork[];
  /** Those that were given, and what was added. */
  readonly words: Words;
}

/** So long a fork goes on, and what starts and does not come to rest, in milliseconds. */
const FORK_MS = 1_000;
const UNTIL_MS = 1_000;

/** @throws UsageError that names the word. */
export function experimentOf(words: Words): Experiment {
  const given = Object.entries(words).filter(([word, text]) => !ownWords.includes(word) && text !== "");
  const read = given.map(([word, text]) => {
    const found = Object.hasOwn(known, word) ? known[word as keyof typeof known] : undefined;
    if (found === undefined) throw new UsageError("bad-argument", `expected a word of an experiment, got ${word}`);
    return [word, found.read(text === "on" && found.preset !== undefined ? found.preset : text, flagOf(word))];
  });
  return { protocol: words.protocol ?? "", ...Object.fromEntries(read) };
}

export type OnEvents = (events: number) => void;

/** Where runs come from that words alone do not make. */
export interface Sources {
  /** What stands in a file of that name. */
  scenario(name: string): Promise<Staged>;
  /** The trace that the checker finds. */
  counterexample(words: Words): Promise<Trace | null>;
  /** What was opened by that name. */
  recording(name: string): Trace;
}

/** @param onEvents is told now and then how many events there are */
export async function runOf(words: Words, sources: Sources, onEvents: OnEvents = () => {}): Promise<Run> {
  const length = hashOf({ page: "run", words }).length;
  if (length > MAX_LINK)
    throw new UsageError("bad-argument", `expected a link of at most ${MAX_LINK} characters, got ${length}`);
  const forks = forksOf(words.fork ?? "");
  if (forks.length > MAX_FORKS)
    throw new UsageError(
      "bad-argument",
      `expected at most ${MAX_FORKS} acts upon a run, got ${forks.length}: undo some`,
    );
  return forks.reduce(forked, await madeBy(words, sources, onEvents));
}

async function madeBy(words: Words, sources: Sources, onEvents: OnEvents): Promise<Run> {
  if (words.recording !== undefined) return recorded(words.recording, sources.recording(words.recording), words);
  if (words.scenario !== undefined) return { ...simulated(await sources.scenario(words.scenario), onEvents), words };
  if (words.counterexample === undefined) {
    const ending = endingWords(words);
    const scenario = scenarioOf(experimentOf(ending));
    return { ...simulated(staged({ scenario, place: () => "the form" }), onEvents), words: ending };
  }
  const trace = await sources.counterexample(words);
  if (trace === null) throw new UsageError("bad-argument", "expected a counterexample: the checker finds none");
  const { property = "", claim = "" } = trace.header.violation ?? {};
  const title = `${words.protocol}: ${property} is broken`;
  return { title, about: `Claimed: ${claim}.`, trace, verdicts: [], networks: [], formulas: [], forks: [], words };
}

function recorded(name: string, trace: Trace, words: Words): Run {
  const { madeBy: maker, protocol, nodes } = trace.header;
  const about = `${name}: ${protocol}, ${nodes.length} nodes, recorded by the ${maker}.`;
  return { title: name, about, trace, verdicts: [], networks: [], formulas: [], forks: [], words };
}

/** What keeps going for ever is ended, unless somebody says when. */
function endingWords(words: Words): Words {
  const { protocol = "", variant = "", until = "" } = words;
  const isEndless = until === "" && hasToStart(protocol, variant === "" ? null : variant);
  return isEndless ? { ...words, until: String(UNTIL_MS) } : words;
}

function simulated(made: Staged, onEvents: OnEvents): Omit<Run, "words"> {
  const entries: TraceEntry[] = [];
  const networks: NetworkTurn[] = [];
  const result = playedOut(made, entries, networks, onEvents);
  const { scenario, cast } = made;
  return {
    title: scenario.name === scenario.protocol ? `${scenario.protocol}, ${cast.ids.length} nodes` : scenario.name,
    about: scenario.about ?? "",
    trace: { header: simulatedHeader(made, result), entries, clocks: vectorClocks(entries) },
    verdicts: result.properties,
    networks,
    formulas: publishedCosts(cast.protocol.costs, cast.ids.length, scenario, result),
    forks: [],
  };
}

/** So many events are made between two words about how many there are. */
const TOLD_EVENTS = 2_000;

function playedOut(made: Staged, entries: TraceEntry[], networks: NetworkTurn[], onEvents: OnEvents): Result {
  const slices = play(made, {
    see: (entry) => {
      entries.push(entry);
      if (entries.length % TOLD_EVENTS === 0) onEvents(entries.length);
    },
    took: (step, at) => void networks.push(...turnedBy(step, at, networks.at(-1)?.words ?? "", made.cast.ids)),
    deliveredOnly: false,
  });
  for (;;) {
    const { done, value } = slices.next(true);
    if (done === true) return value as Result;
  }
}

/** The same up to some entry, and from there on otherwise. @throws UsageError where states are not known there. */
function forked({ trace, ...run }: Run, fork: Fork): Run {
  const before = trace.entries.slice(0, fork.entries);
  const point = snapshotFrom({ ...trace, entries: before }, "this run", { entries: fork.entries });
  const { snapshot, steps } = doneTo(point.snapshot, fork);
  const words = { seed: trace.header.seed ?? 1, for: FORK_MS };
  const scenario: Scenario = { ...continuationOf(point, words), steps };
  const entries = [...before];
  const slices = playScenario(scenario, {
    from: { protocol: point.protocol, snapshot },
    trace: (entry) => void entries.push(entry),
  });
  let slice = slices.next();
  while (slice.done !== true) slice = slices.next();
  const header = { ...trace.header, violation: null };
  const made = { header, entries, clocks: vectorClocks(entries) };
  const until = before.at(-1)?.at ?? 0;
  const networks = run.networks.filter(({ at }) => at <= until);
  return { ...run, networks, trace: made, verdicts: [], formulas: [], forks: [...run.forks, fork] };
}

type Snapshot = ReturnType<typeof snapshotFrom>["snapshot"];

function doneTo(snapshot: Snapshot, { act, node, what }: Fork): { snapshot: Snapshot; steps: Scenario["steps"] } {
  const { nodes, inFlight } = snapshot;
  switch (act) {
    case "crash":
      return { snapshot, steps: [{ crash: [node] }] };
    case "start":
      return { snapshot, steps: [{ start: [node] }] };
    case "timer": {
      const ringing = nodes.map((each) =>
        each.id === node
          ? {
              ...each,
              timers: each.timers.map((timer) => (timer.timer === what ? { ...timer, remainingMs: 0 } : timer)),
            }
          : each,
      );
      return { snapshot: { ...snapshot, nodes: ringing }, steps: [] };
    }
    case "lose":
      return { snapshot: { ...snapshot, inFlight: inFlight.filter(({ id }) => id !== what) }, steps: [] };
    case "duplicate":
      return {
        snapshot: { ...snapshot, inFlight: inFlight.flatMap((each) => (each.id === what ? [each, each] : [each])) },
        steps: [],
      };
  }
}
