/** Does the worker's work: computes runs, returns their states, and explores. The page only shows the results. */

import { UsageError } from "../../../../src/core/errors.ts";
import { momentsOf } from "../../../../src/experiment/recording.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { Scenes } from "../../../../src/experiment/scene.ts";
import { type Staged, staged } from "../../../../src/experiment/simulate.ts";
import { hasToStart, protocolNamed } from "../../../../src/protocols/index.ts";
import { type Trace, writeTrace } from "../../../../src/trace/file.ts";
import type { CheckShown, Compared, Form, Look, OnProgress, ShownRun } from "./answers.ts";
import { formOf } from "./form.ts";
import { lookAt, type Moments } from "./look.ts";
import { casesOf, MAX_COMPARED, type Words } from "./recipe.ts";
import { type OpenedPart, opened, partOf, type Recording } from "./recordings.ts";
import { experimentOf, type Run, runOf, type Sources } from "./runs.ts";
import { shown } from "./show.ts";

/** Loads the text of a scenario file, given its name without the extension. */
export type Scenarios = (name: string) => Promise<string>;

interface Made {
  readonly run: Run;
  readonly shown: ShownRun;
  readonly moments: Moments;
  readonly scenes: Scenes;
}

interface Explored {
  readonly shown: CheckShown;
  readonly trace: Trace | null;
}

const reporting = (phase: string, onProgress: OnProgress) => (events: number) =>
  onProgress({ phase, states: 0, transitions: 0, depth: 0, events });

export class Laboratory {
  readonly #scenarios: Scenarios;
  #made: Made | null = null;
  #explored: (Explored & { readonly key: string }) | null = null;
  #compared: readonly (Made | null)[] = [];
  readonly #recordings = new Map<string, Recording>();

  constructor(scenarios: Scenarios) {
    this.#scenarios = scenarios;
  }

  form(protocol: string, variant = ""): Promise<Form> {
    return Promise.resolve(formOf(protocol, variant));
  }

  /** Computes the run described by these words. @throws UsageError that names the invalid word */
  async run(words: Words, onProgress: OnProgress = () => {}): Promise<ShownRun> {
    this.#made = await this.#make(words, onProgress);
    return this.#made.shown;
  }

  look(step: number): Promise<Look> {
    if (this.#made === null) throw new Error("expected a run whose state can be shown");
    return Promise.resolve(lookAt(this.#made.run, this.#made.shown, step, this.#made));
  }

  /** Opens a recording. @param bytes the size of the whole file; `text` may contain only its beginning */
  open(
    name: string,
    text: string,
    bytes = text.length,
    onProgress: OnProgress = () => {},
  ): Promise<{ readonly protocol: string }> {
    return new Promise((resolve) => {
      const recording = opened(name, text, bytes, reporting("read", onProgress));
      this.#recordings.set(name, recording);
      resolve({ protocol: recording.header.protocol });
    });
  }

  /** Returns the current run as a trace file. */
  export(): Promise<string> {
    if (this.#made === null) throw new Error("expected a run to export");
    const { header, entries, clocks } = this.#made.run.trace;
    return Promise.resolve(writeTrace(header, entries, clocks));
  }

  /**
   * Runs the same steps under several protocols. A protocol that cannot take the steps has a problem instead of a run.
   */
  async compare(words: Words, onProgress: OnProgress = () => {}): Promise<readonly Compared[]> {
    const cases = casesOf(words);
    if (cases.length > MAX_COMPARED)
      throw new UsageError(
        "bad-argument",
        `expected at most ${MAX_COMPARED} protocols to compare, got ${cases.length}`,
      );
    const made: (Made | null)[] = [];
    const compared: Compared[] = [];
    for (const { name, words: own } of cases) {
      try {
        const one = await this.#make(own, onProgress);
        made.push(one);
        compared.push({ name, run: one.shown, problem: "" });
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        made.push(null);
        compared.push({ name, run: null, problem: error.message });
      }
    }
    this.#compared = made;
    return compared;
  }

  /** Returns the states of the runs being compared, each at its own step. */
  looks(steps: readonly number[]): Promise<readonly (Look | null)[]> {
    const looks = this.#compared.map((made, place) =>
      made === null ? null : lookAt(made.run, made.shown, steps[place] ?? -1, made),
    );
    return Promise.resolve(looks);
  }

  async check(words: Words, onProgress: OnProgress = () => {}): Promise<CheckShown> {
    return (await this.#explore(words, onProgress)).shown;
  }

  async #make(words: Words, onProgress: OnProgress): Promise<Made> {
    const sources: Sources = {
      scenario: (name) => this.#scenario(name, words),
      counterexample: async (asked) => (await this.#explore(asked, onProgress)).trace,
      recording: (name, part) => this.#recording(name, part),
    };
    const run = await runOf(words, sources, reporting("simulated", onProgress));
    const drawn = shown(run, reporting("checked", onProgress));
    const moments = momentsOf(run.trace);
    moments.keepAll(reporting("ready to view", onProgress));
    return { run, shown: drawn, moments, scenes: new Scenes(run.trace.header.nodes, run.trace.entries) };
  }

  async #scenario(name: string, { protocol, variant }: Words): Promise<Staged> {
    const { parseScenario } = await import("../../../../src/experiment/scenario/parse.ts");
    const parsed = parseScenario(await this.#scenarios(name), `${name}.yaml`);
    return staged({ ...parsed, scenario: sameSteps(parsed.scenario, protocol, variant) });
  }

  /**
   * Explores the system. If the words have not changed, returns the last exploration, because its counterexample is
   * usually opened next.
   */
  async #explore(words: Words, onProgress: OnProgress): Promise<Explored> {
    const experiment = experimentOf(words);
    const key = JSON.stringify(Object.entries(experiment).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    if (this.#explored?.key === key) return this.#explored;
    const { checked } = await import("./check.ts");
    const explored = { key, ...checked(experiment, onProgress) };
    this.#explored = explored;
    return explored;
  }

  #recording(name: string, part: string): OpenedPart {
    const recording = this.#recordings.get(name);
    if (recording !== undefined) return partOf(recording, part);
    throw new UsageError("bad-trace", `expected ${name} to be opened here first: a link does not contain a recording`);
  }
}

/**
 * Adapts the steps of a scenario to another protocol. Keeps the network, the faults, the commands and the workload
 * options. Drops protocol options and expectations.
 * @throws UsageError if the scenario begins with given states
 */
function sameSteps(
  scenario: Scenario,
  protocol = scenario.protocol,
  variant = protocol === scenario.protocol ? scenario.variant : undefined,
): Scenario {
  if (protocol === scenario.protocol && variant === scenario.variant) return scenario;
  const { variant: _variant, options, begin, expect: _expect, until, ...kept } = scenario;
  if (Object.keys(begin.states).length > 0)
    throw new UsageError(
      "bad-scenario",
      `expected steps that any protocol can take: this scenario begins with states of ${scenario.protocol}`,
    );
  const mustStart = hasToStart(protocol, variant ?? null);
  const end = until ?? (mustStart ? protocolNamed(protocol).presentation.untilMs : undefined);
  return {
    ...kept,
    protocol,
    ...(variant === undefined ? {} : { variant }),
    options: options.workload === undefined ? {} : { workload: options.workload },
    begin: mustStart ? { ...begin, nodes: "started" } : begin,
    expect: { violated: [] },
    variants: {},
    ...(end === undefined ? {} : { until: end }),
  };
}
