/** Plays scenarios so that they can be watched and stopped. */
import { setImmediate as otherWork } from "node:timers/promises";
import { EnvironmentError } from "../core/errors.ts";
import type { Cast, ParsedScenario } from "../experiment/scenario/index.ts";
import { playScenario, type Result } from "../experiment/scenario/run.ts";
import { LostMessages } from "../sim/tally.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Output } from "./invocation.ts";
import { figure } from "./paragraph.ts";
import { type ProgressLine, progressLine } from "./progress.ts";
import type { RecordedPoint } from "./recording.ts";
import type { Spread, Summary } from "./sim-report.ts";

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
  /** The point of a recording that it goes on from. */
  readonly from: RecordedPoint | null;
}

/** @throws EnvironmentError on Ctrl-C. */
export async function play(staged: Staged, how: Play, stderr: Output): Promise<Result> {
  const ctrlC = stopOnCtrlC();
  const progress = progressLine(stderr);
  try {
    const result = await playOn(staged, how, ctrlC, progress);
    if (result === null) throw stopped();
    return result;
  } finally {
    progress.clear();
    ctrlC.release();
  }
}

const stopped = (): EnvironmentError => new EnvironmentError("stopped", "stopped before the end");

/** Null if Ctrl-C was pressed. */
async function playOn(
  { scenario, place, cast, from }: Staged,
  { see, deliveredOnly }: Play,
  ctrlC: CtrlC,
  progress: ProgressLine | null,
): Promise<Result | null> {
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
    await otherWork();
    if (ctrlC.isPressed) return null;
    progress?.show(() => `${figure(value.messages)} messages, ${figure(value.timeMs)} ms of virtual time`);
  }
}

interface CtrlC {
  readonly isPressed: boolean;
  release(): void;
}

function stopOnCtrlC(): CtrlC {
  let isPressed = false;
  const press = (): void => {
    isPressed = true;
  };
  process.once("SIGINT", press); // A second one ends the process at once.
  return {
    get isPressed() {
      return isPressed;
    },
    release: () => void process.removeListener("SIGINT", press),
  };
}

/** The same scenario with one seed after the other. `words` are those of the command line. Ctrl-C ends it early. */
export async function severalRuns(
  staged: Staged,
  runs: number,
  { deliveredOnly }: Play,
  words: readonly string[],
  stderr: Output,
): Promise<Summary> {
  const { seed, protocol } = staged.scenario;
  const ctrlC = stopOnCtrlC();
  const progress = progressLine(stderr);
  const messages: number[] = [];
  const times: number[] = [];
  const failures = new Map<string, number[]>();
  try {
    for (let done = 0; done < runs && !ctrlC.isPressed; done++) {
      const scenario = { ...staged.scenario, seed: seed + done };
      const result = await playOn({ ...staged, scenario }, { deliveredOnly }, ctrlC, null);
      if (result === null) break;
      messages.push(result.messages.total);
      times.push(result.timeMs);
      for (const what of failuresOf(result)) noteIn(failures, what, seed + done);
      progress.show(() => `${figure(done + 1)} of ${figure(runs)} runs`);
      await otherWork();
    }
  } finally {
    progress.clear();
    ctrlC.release();
  }
  const violations = [...failures].map(([what, seeds]) => ({ what, seeds, replay: replayOf(words, seeds[0] ?? seed) }));
  const nodes = staged.cast.ids.length;
  return {
    protocol,
    nodes,
    seed,
    runs: messages.length,
    messages: spreadOf(messages),
    timeMs: spreadOf(times),
    violations,
  };
}

function noteIn(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
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

/** The command that shows one of the runs. */
function replayOf(words: readonly string[], seed: number): string {
  const kept = words.filter((word, i) => {
    const isValue = words[i - 1] === "--runs" || words[i - 1] === "--seed";
    return !isValue && !/^--(?:runs|seed|json)(?:=|$)/.test(word);
  });
  return ["coterie", ...kept, "--seed", String(seed), "--log"].map(quoted).join(" ");
}

const quoted = (word: string): string => (/^[\w./:,=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
