/** The page's end of the worker. */
import type { Answer, Asked, CheckShown, Compared, Form, Look, Progress, Question, ShownRun } from "./answers.ts";
import type { Words } from "./recipe.ts";

interface Open {
  readonly question: Question;
  resolve(value: unknown): void;
  reject(error: Error): void;
  onProgress(progress: Progress): void;
}

export class Asking {
  #worker: Worker | null = null;
  #asked = 0;
  /** A new worker has to be given them again. */
  readonly #recordings = new Map<string, { readonly text: string; readonly bytes: number }>();
  readonly #open = new Map<number, Open>();

  form(protocol: string, variant: string): Promise<Form> {
    return this.#ask({ do: "form", protocol, variant }) as Promise<Form>;
  }

  run(words: Words, onProgress: (progress: Progress) => void = () => {}): Promise<ShownRun> {
    return this.#ask({ do: "run", words: { ...words } }, onProgress) as Promise<ShownRun>;
  }

  look(step: number): Promise<Look> {
    return this.#ask({ do: "look", step }) as Promise<Look>;
  }

  /** Gives it to be run by its name. */
  async open(
    name: string,
    file: { readonly text: string; readonly bytes: number },
    onProgress: (progress: Progress) => void = () => {},
  ): Promise<{ readonly protocol: string }> {
    const opened = await this.#ask({ do: "open", name, ...file }, onProgress);
    this.#recordings.set(name, file);
    return opened as { readonly protocol: string };
  }

  /** The run that is shown, as a trace file. */
  export(): Promise<string> {
    return this.#ask({ do: "export" }) as Promise<string>;
  }

  compare(words: Words): Promise<readonly Compared[]> {
    return this.#ask({ do: "compare", words: { ...words } }) as Promise<readonly Compared[]>;
  }

  /** Into those that are compared, each at a step of its own. */
  looks(steps: readonly number[]): Promise<readonly (Look | null)[]> {
    return this.#ask({ do: "looks", steps: [...steps] }) as Promise<readonly (Look | null)[]>;
  }

  check(words: Words, onProgress: (progress: Progress) => void): Promise<CheckShown> {
    return this.#ask({ do: "check", words: { ...words } }, onProgress) as Promise<CheckShown>;
  }

  /** Ends what is under way; the next question has a worker of its own. Forms take no time: they are still answered, by that one. */
  stop(): void {
    const forms = [...this.#open].filter(([, { question }]) => question.do === "form");
    for (const [id] of forms) this.#open.delete(id);
    this.#end("stopped");
    for (const [id, form] of forms) this.#put(id, form);
  }

  /** The worker, and what it was asked. */
  #end(why: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reject } of open) reject(new Error(why));
  }

  #ask(question: Question, onProgress: Open["onProgress"] = () => {}): Promise<unknown> {
    return new Promise((resolve, reject) => this.#put(this.#asked++, { question, resolve, reject, onProgress }));
  }

  #put(id: number, open: Open): void {
    this.#open.set(id, open);
    this.#started().postMessage({ ...open.question, id } satisfies Asked);
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => this.#take(data));
    // Where its file could not be loaded nothing is said, and it never answers: the next question has another.
    worker.addEventListener("error", ({ message }) => {
      if (worker === this.#worker) this.#end(message || "the worker could not be loaded");
    });
    this.#worker = worker;
    for (const [name, file] of this.#recordings)
      worker.postMessage({ do: "open", name, ...file, id: this.#asked++ } satisfies Asked);
    return worker;
  }

  #take(answer: Answer): void {
    const open = this.#open.get(answer.id);
    if (open === undefined) return;
    if ("progress" in answer) return open.onProgress(answer.progress);
    this.#open.delete(answer.id);
    if ("error" in answer) open.reject(new Error(answer.error));
    else open.resolve(answer.value);
  }
}
