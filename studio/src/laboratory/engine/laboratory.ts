/** What the worker does: it makes runs, looks into them, and explores. The page only shows. */

import { type Staged, staged } from "../../../../src/experiment/simulate.ts";
import { wordsOf, workloadWords } from "../../../../src/experiment/words.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import type { CheckShown, Field, Form, Look, Progress, Question, ShownRun } from "./answers.ts";
import { lookAt } from "./look.ts";
import type { Words } from "./recipe.ts";
import { experimentOf, type Run, runOf } from "./runs.ts";
import { shown } from "./show.ts";

/** Texts of the scenario files, by name without ending. */
export type Scenarios = (name: string) => Promise<string>;

export class Laboratory {
  readonly #scenarios: Scenarios;
  #run: { readonly run: Run; readonly shown: ShownRun } | null = null;

  constructor(scenarios: Scenarios) {
    this.#scenarios = scenarios;
  }

  /** @throws UsageError that says which word makes no sense */
  async answer(question: Question, onProgress: (progress: Progress) => void): Promise<unknown> {
    switch (question.do) {
      case "form":
        return formOf(question.protocol);
      case "run":
        return this.#show(question.words, onProgress);
      case "look":
        return this.#look(question.step);
      case "check":
        return (await explored(question.words, onProgress)).shown;
    }
  }

  async #show(words: Words, onProgress: (progress: Progress) => void): Promise<ShownRun> {
    const run = await runOf(
      words,
      (name) => this.#scenario(name),
      async (asked) => (await explored(asked, onProgress)).trace,
    );
    this.#run = { run, shown: shown(run) };
    return this.#run.shown;
  }

  async #scenario(name: string): Promise<Staged> {
    const { parseScenario } = await import("../../../../src/experiment/scenario/parse.ts");
    return staged(parseScenario(await this.#scenarios(name), `${name}.yaml`));
  }

  #look(step: number): Look {
    if (this.#run === null) throw new Error("expected a run to look into");
    return lookAt(this.#run.run, this.#run.shown, step);
  }
}

async function explored(
  words: Words,
  onProgress: (progress: Progress) => void,
): Promise<{ readonly shown: CheckShown; readonly trace: Trace | null }> {
  const { checked } = await import("./check.ts");
  return checked(experimentOf(words), onProgress);
}

/** Words that the form has a place of its own for, and those of threads and files. */
const elsewhere = new Set(["variant", "for", "workers", "maxMemory", "coverage"]);

function formOf(protocol: string): Form {
  const { variants, family, onRing } = protocolNamed(protocol);
  const ofFamily = new Set<string>([family.verb ?? "", family.count ?? ""]);
  const others = new Set(Object.keys(workloadWords));
  if (family.count === "commands") ofFamily.add("machine");
  if (family.refuse !== undefined) ofFamily.add("voteNo");
  if (protocol === "byzantine-generals") ofFamily.add("traitors").add("order");
  const isOffered = (word: string): boolean =>
    !elsewhere.has(word) && (word !== "ring" || onRing !== null) && (!others.has(word) || ofFamily.has(word));
  const fields = (use: "simulate" | "explore"): Field[] =>
    Object.entries(wordsOf[use])
      .filter(([word]) => isOffered(word))
      .map(([word, { about, value }]) => ({ word, value, about: typeof about === "string" ? about : about[use] }));
  return {
    run: fields("simulate"),
    check: fields("explore"),
    variants: Object.entries(variants).map(([name, { summary }]) => ({ name, summary })),
  };
}
