/**
 * Computes the run that a link describes, from words, a scenario, a recording or a counterexample, and applies the
 * link's acts.
 */
import { UsageError } from "../../../../src/core/errors.ts";
import { type Experiment, experimentOptions as known } from "../../../../src/experiment/experiment.ts";
import type { PropertyVerdict, Result } from "../../../../src/experiment/scenario/result.ts";
import { runScenario } from "../../../../src/experiment/scenario/run.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import {
  continuationOf,
  play,
  publishedCosts,
  type Staged,
  scenarioOf,
  simulatedHeader,
  staged,
} from "../../../../src/experiment/simulate.ts";
import { flagOf, wholeNumber } from "../../../../src/experiment/written-values.ts";
import { hasToStart, protocolNamed } from "../../../../src/protocols/index.ts";
import { Draws } from "../../../../src/sim/draws.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import { stepsOf, vectorClocks } from "../../../../src/trace/steps.ts";
import type { Part } from "./answers.ts";
import type { NetworkTurn } from "./drawing.ts";
import { forkedAt } from "./fork-point.ts";
import { MAX_MADE, MAX_NODES } from "./limits.ts";
import { beginningText, bothWays, turnedBy } from "./network-turns.ts";
import {
  actProblem,
  type Fork,
  forksOf,
  forksText,
  linkLength,
  MAX_FORKS,
  MAX_LINK,
  ownWords,
  type Words,
} from "./recipe.ts";
import { recordedTurns } from "./recorded-turns.ts";
import type { OpenedPart } from "./recordings.ts";

/** Used for runs that are complete. */
const WHOLE = { omissions: [], part: null } as const;
/** Used for runs that are not simulated here. They do not have verdicts, and their random draws are unknown. */
const ONLY_READ = { verdicts: [], network: {}, draws: null, formulas: [], forks: [], ...WHOLE } as const;

export interface Run {
  readonly title: string;
  readonly about: string;
  readonly trace: Trace;
  /** The verdicts of a simulated run. For a counterexample, they are determined by the trace. */
  readonly verdicts: readonly PropertyVerdict[];
  /** Network changes, as steps. */
  readonly turns: readonly Turn[];
  /** The initial network conditions. Forks continue with them. */
  readonly network: Scenario["network"];
  /** The random draws. Forks repeat them. */
  readonly draws: Draws | null;
  readonly networks: readonly NetworkTurn[];
  readonly formulas: readonly { readonly when: string; readonly count: number }[];
  readonly forks: readonly Fork[];
  /** Sentences about omitted parts. */
  readonly omissions: readonly string[];
  readonly part: Part | null;
  /** The words that were given, plus those that were added. */
  readonly words: Words;
}

type Step = Scenario["steps"][number];

interface Turn {
  readonly at: number;
  readonly step: Step;
  /** The new network conditions, if they were recorded. */
  readonly words?: string;
}

/** The duration of a fork, in milliseconds. */
const FORK_MS = 1_000;

const fewNodes = wholeNumber(1, MAX_NODES, `a whole number from 1 to ${MAX_NODES} in the laboratory`);

/** Returns the experiment described by these words. @throws UsageError that names the invalid word */
export function experimentOf(words: Words): Experiment {
  const given = Object.entries(words).filter(([word, text]) => !ownWords.includes(word) && text !== "");
  const read = given.map(([word, text]) => {
    const found = Object.hasOwn(known, word) ? known[word as keyof typeof known] : undefined;
    if (found === undefined) throw new UsageError("bad-argument", `expected an option of an experiment, got ${word}`);
    const read = word === "nodes" ? fewNodes : found.read;
    return [word, read(text === "on" && found.preset !== undefined ? found.preset : text, flagOf(word))];
  });
  return { protocol: words.protocol ?? "", ...Object.fromEntries(read) };
}

export type OnEvents = (events: number) => void;

/** The sources of runs that are not determined by words alone. */
export interface Sources {
  scenario(name: string): Promise<Staged>;
  /** Returns the trace that the checker finds, or null if it finds none. */
  counterexample(words: Words): Promise<Trace | null>;
  /** Returns the named part of an opened recording, or the first part if `part` is empty. */
  recording(name: string, part: string): OpenedPart;
}

/** Computes a run. @param onEvents called periodically with the number of events */
export async function runOf(words: Words, sources: Sources, onEvents: OnEvents = () => {}): Promise<Run> {
  const length = linkLength(words);
  if (length > MAX_LINK)
    throw new UsageError(
      "bad-argument",
      `expected a link of at most ${MAX_LINK} characters, including its cursor, got ${length}`,
    );
  const problem = actProblem(words);
  if (problem !== "") throw new UsageError("bad-argument", problem);
  const forks = forksOf(words.fork ?? "");
  if (forks.length > MAX_FORKS)
    throw new UsageError(
      "bad-argument",
      `expected at most ${MAX_FORKS} actions on a run, got ${forks.length}: undo some`,
    );
  const late = forks.find(({ entries }, place) => entries < (forks[place - 1]?.entries ?? 0));
  if (late !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected the actions in the link in the order of their entries, got “${forksText([late])}” after a later action`,
    );
  return forks.reduce(forked, await madeBy(words, sources, onEvents));
}

async function madeBy(words: Words, sources: Sources, onEvents: OnEvents): Promise<Run> {
  const { recording, part = "" } = words;
  if (recording !== undefined) return recorded(recording, sources.recording(recording, part), words);
  if (words.scenario !== undefined) return { ...simulated(await sources.scenario(words.scenario), onEvents), words };
  if (words.counterexample === undefined) {
    const ending = endingWords(words);
    const scenario = scenarioOf(experimentOf(ending));
    return { ...simulated(staged({ scenario, place: () => "the form" }), onEvents), words: ending };
  }
  const trace = await sources.counterexample(words);
  if (trace === null) throw new UsageError("bad-argument", "expected a counterexample, but the checker found none");
  const { property = "", claim = "" } = trace.header.violation ?? {};
  const title = `${words.protocol}: ${property} is broken`;
  return {
    title,
    about: `Claimed: ${claim}.`,
    trace,
    ...ONLY_READ,
    turns: [],
    networks: [],
    words,
  };
}

function recorded(name: string, { trace, part, omissions }: OpenedPart, words: Words): Run {
  const { madeBy: maker, protocol, nodes } = trace.header;
  const about = `${name}: ${protocol}, ${nodes.length} nodes, recorded by the ${maker}.`;
  const turns = recordedTurns(trace);
  return {
    title: name,
    about,
    trace,
    ...ONLY_READ,
    omissions,
    part,
    turns,
    networks: networksOf({}, turns, nodes),
    words,
  };
}

/** Adds an end to runs that never become idle, unless the words specify one. */
function endingWords(words: Words): Words {
  const { protocol = "", variant = "", until = "" } = words;
  const isEndless = until === "" && hasToStart(protocol, variant === "" ? null : variant);
  return isEndless ? { ...words, until: String(protocolNamed(protocol).presentation.untilMs) } : words;
}

function simulated(made: Staged, onEvents: OnEvents): Omit<Run, "words"> {
  const entries: TraceEntry[] = [];
  const turns: Turn[] = [];
  const draws = new Draws(() => entries.length);
  const result = playedOut(made, { entries, turns, draws }, onEvents);
  const { scenario, cast } = made;
  const { network } = scenario;
  return {
    title: scenario.name === scenario.protocol ? `${scenario.protocol}, ${cast.ids.length} nodes` : scenario.name,
    about: scenario.about ?? "",
    trace: { header: simulatedHeader(made, result), entries, clocks: vectorClocks(entries) },
    verdicts: result.properties,
    turns,
    network,
    draws,
    networks: networksOf(network, turns, cast.ids),
    formulas: publishedCosts(cast.protocol.costs, cast.ids.length, scenario, result),
    forks: [],
    ...WHOLE,
  };
}

/** The number of events between two progress reports. */
const TOLD_EVENTS = 2_000;

interface Noted {
  readonly entries: TraceEntry[];
  readonly turns: Turn[];
  readonly draws: Draws;
}

function playedOut(made: Staged, { entries, turns, draws }: Noted, onEvents: OnEvents): Result {
  const slices = play(made, {
    see: (entry) => {
      if (entries.length === MAX_MADE)
        throw new UsageError(
          "bad-argument",
          `expected a run of at most ${MAX_MADE} events, got more: end it earlier with --until, or give it fewer nodes or requests`,
        );
      entries.push(entry);
      if (entries.length % TOLD_EVENTS === 0) onEvents(entries.length);
    },
    took: (step, at) => void turns.push(...turnOf(step, at)),
    draws,
    deliveredOnly: false,
  });
  for (;;) {
    const { done, value } = slices.next(true);
    if (done === true) return value as Result;
  }
}

/** Forks a run at an entry. @throws UsageError if the states are unknown there */
function forked({ trace, ...run }: Run, fork: Fork): Run {
  const count = trace.entries.length;
  if (fork.entries > count)
    return {
      ...run,
      trace,
      omissions: omissionsWith(run.omissions, fork, `the run has ${count} entries`),
      forks: [...run.forks, fork],
    };
  const { nodes } = trace.header;
  const end = stepEnd(fork.entries, trace);
  const place = end + lossesAt(end, trace, { forks: run.forks, at: fork.entries });
  const before = trace.entries.slice(0, place + idleAfter(place, trace));
  const until = before.at(-1)?.at ?? 0;
  const paused = pausedIn(before);
  const later = trace.entries.slice(before.length).filter(({ at }) => at === until);
  const beginning = later.flatMap((entry) =>
    entry.kind === "start" && entry.idle !== true && !(fork.act === "start" && fork.node === entry.node)
      ? [entry.node]
      : [],
  );
  const { point, done } = forkedAt(
    trace,
    { ...fork, entries: before.length },
    { until, paused, earlier: run.forks, draws: run.draws, beginning },
  );
  const earlier = run.turns.filter(({ at }) => at <= until);
  const turns = [...earlier, ...done.steps.flatMap((step) => turnOf(step, until))];
  const known: Step[] = [...paused.map((node) => ({ pause: [node] })), ...earlier.map(({ step }) => step)];
  const begun: Step[] = beginning.length === 0 ? [] : [{ start: beginning }];
  const words = { seed: trace.header.seed ?? 1, for: FORK_MS };
  const { network } = run;
  const scenario: Scenario = {
    ...continuationOf(point, words),
    network,
    steps: [...known, ...begun, ...done.steps, ...commandsIn(later, fork)],
  };
  const entries = [...before, ...done.entries];
  const remembered = run.draws === null ? undefined : { draws: run.draws, entries: before.length };
  const draws = new Draws(() => entries.length, remembered);
  let step: Step | undefined;
  /** Returns whether the trace already contains the entry, as it does for acts with a lasting effect. */
  const isTold = ({ at, kind }: TraceEntry): boolean =>
    at === until && (kind === "pause" || kind === "fault") && step !== undefined && known.includes(step);
  runScenario(scenario, {
    from: { protocol: point.protocol, snapshot: done.snapshot },
    draws,
    took(taken) {
      step = taken;
    },
    trace: (entry) => void (isTold(entry) || entries.push(entry)),
  });
  const header = { ...trace.header, violation: null };
  const made = { header, entries, clocks: vectorClocks(entries) };
  return {
    ...run,
    omissions: done.problem === "" ? run.omissions : omissionsWith(run.omissions, fork, done.problem),
    turns,
    draws,
    networks: networksOf(network, turns, nodes),
    trace: made,
    verdicts: [],
    formulas: [],
    forks: [...run.forks, fork],
  };
}

/** Adds the reason why an act has no effect, unless the same sentence is already there. */
const omissionsWith = (omissions: Run["omissions"], fork: Fork, problem: string): string[] => [
  ...new Set([...omissions, `“${forksText([fork])}” has no effect: ${problem}.`]),
];

/** Returns the number of entries until all initial nodes are up. Acts take effect only after them. */
function idleAfter(place: number, { entries }: Trace): number {
  const at = entries[place]?.at;
  const isUp = (entry: TraceEntry): boolean =>
    entry.at === at && (entry.kind === "view" || (entry.kind === "start" && entry.idle === true));
  const later = entries.slice(place);
  const count = later.findIndex((entry) => !isUp(entry));
  const passed = later.slice(0, count === -1 ? later.length : count);
  return passed.some(({ kind }) => kind === "start") ? passed.length : 0;
}

/**
 * Returns the commands at this moment that nodes have yet to receive. A node that the act crashes does not receive any.
 */
const commandsIn = (later: readonly TraceEntry[], { act, node }: Fork): Step[] =>
  later.flatMap((entry) =>
    entry.kind === "command" && !(act === "crash" && entry.node === node)
      ? [{ command: { node: [entry.node], command: entry.command } }]
      : [],
  );

/** Returns the index of the end of the last step's entries, including delayed reports and folded entries. */
function stepEnd(count: number, { entries }: Trace): number {
  const step = stepsOf(entries).find(({ indices }) => indices.includes(count - 1));
  const own = new Set(step?.indices);
  let end = count;
  while (own.has(end)) end++;
  return end;
}

/** Returns the number of loss entries at this place that result from earlier acts. Further acts come after them. */
function lossesAt(
  place: number,
  { entries }: Trace,
  { forks, at }: { readonly forks: readonly Fork[]; readonly at: number },
): number {
  let count = 0;
  for (const fork of forks) {
    const told = entries[place + count];
    if (fork.act === "lose" && fork.entries === at && told?.kind === "lost" && told.id === fork.what) count++;
  }
  return count;
}

/** Returns the changes that a step makes to the network. */
function turnOf({ partition, cut, mend, heal, link }: Step, at: number): Turn[] {
  const all = Object.entries({ partition, cut, mend, heal, link }).filter(([, value]) => value !== undefined);
  return all.length === 0 ? [] : [{ at, step: Object.fromEntries(all) as Step }];
}

function networksOf(network: Scenario["network"], turns: readonly Turn[], nodes: readonly number[]): NetworkTurn[] {
  const began = beginningText(network);
  const turned: NetworkTurn[] = began === "" ? [] : [{ at: Number.NEGATIVE_INFINITY, words: began }];
  for (const { at, step, words } of turns)
    turned.push(...(words === undefined ? turnedBy(step, at, turned.at(-1)?.words ?? "", nodes) : [{ at, words }]));
  return turned.map(told);
}

const told = ({ at, words }: NetworkTurn): NetworkTurn => ({ at, words: bothWays(words) });

function pausedIn(entries: readonly TraceEntry[]): number[] {
  const paused = new Set<number>();
  for (const { kind, node } of entries) {
    if (kind === "pause") paused.add(node);
    else if (kind === "resume" || kind === "crash") paused.delete(node);
  }
  return [...paused];
}
