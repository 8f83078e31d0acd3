/** The laboratory without a worker: what it answers, in this process. */
import { readFile } from "node:fs/promises";
import type { CheckShown, Compared, Form, Look, Progress, Question, ShownRun } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";
import type { Words } from "./recipe.ts";

const folder = new URL("../../../../scenarios/", import.meta.url);

export class TestedLaboratory {
  readonly #laboratory = new Laboratory((name) => readFile(new URL(`${name}.yaml`, folder), "utf8"));

  run = (words: Words, onProgress: (progress: Progress) => void = () => {}): Promise<ShownRun> =>
    this.#ask<ShownRun>({ do: "run", words }, onProgress);
  check = (words: Words): Promise<CheckShown> => this.#ask<CheckShown>({ do: "check", words });
  form = (protocol: string, variant = ""): Promise<Form> => this.#ask<Form>({ do: "form", protocol, variant });
  look = (step: number): Promise<Look> => this.#ask<Look>({ do: "look", step });
  compare = (words: Words): Promise<readonly Compared[]> => this.#ask<readonly Compared[]>({ do: "compare", words });
  looks = (steps: readonly number[]): Promise<readonly (Look | null)[]> =>
    this.#ask<readonly (Look | null)[]>({ do: "looks", steps });
  open = (name: string, text: string): Promise<{ protocol: string }> =>
    this.#ask<{ protocol: string }>({ do: "open", name, text, bytes: text.length });
  export = (): Promise<string> => this.#ask<string>({ do: "export" });

  #ask<T>(question: Question, onProgress: (progress: Progress) => void = () => {}): Promise<T> {
    return this.#laboratory.answer(question, onProgress) as Promise<T>;
  }
}
