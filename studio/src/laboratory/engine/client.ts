/** The page's client for the worker. It has the methods of `Laboratory`, which runs in the worker. */
import type { OnProgress, Progress, Request, Response } from "./answers.ts";
import type { Laboratory } from "./laboratory.ts";
import type { Words } from "./recipe.ts";

type Result<M extends Request["method"]> = Promise<Awaited<ReturnType<Laboratory[M]>>>;

interface Open {
  readonly request: Omit<Request, "id">;
  resolve(value: unknown): void;
  reject(error: Error): void;
  onProgress(progress: Progress): void;
}

export class EngineClient {
  #worker: Worker | null = null;
  #requests = 0;
  /** The recordings that have been opened, because a new worker needs them again. */
  readonly #recordings = new Map<string, readonly unknown[]>();
  readonly #open = new Map<number, Open>();

  form(protocol: string, variant: string): Result<"form"> {
    return this.#call("form", [protocol, variant]);
  }

  run(words: Words, onProgress?: OnProgress): Result<"run"> {
    return this.#call("run", [{ ...words }], onProgress);
  }

  look(step: number): Result<"look"> {
    return this.#call("look", [step]);
  }

  /** Opens a recording, which can then be passed to `run` by name. */
  async open(name: string, text: string, bytes: number, onProgress?: OnProgress): Result<"open"> {
    const args = [name, text, bytes];
    const opened = await this.#call("open", args, onProgress);
    this.#recordings.set(name, args);
    return opened;
  }

  /** Returns the current run as a trace file. */
  export(): Result<"export"> {
    return this.#call("export", []);
  }

  compare(words: Words): Result<"compare"> {
    return this.#call("compare", [{ ...words }]);
  }

  /** Returns the states of the runs being compared, each at its own step. */
  looks(steps: readonly number[]): Result<"looks"> {
    return this.#call("looks", [[...steps]]);
  }

  check(words: Words, onProgress: OnProgress): Result<"check"> {
    return this.#call("check", [{ ...words }], onProgress);
  }

  /**
   * Ends all work. The next request starts a new worker, which also answers pending requests for forms, because these
   * take almost no time.
   */
  stop(): void {
    const forms = [...this.#open].filter(([, { request }]) => request.method === "form");
    for (const [id] of forms) this.#open.delete(id);
    this.#end("stopped");
    for (const [id, form] of forms) this.#post(id, form);
  }

  /** Ends the worker and rejects pending requests. */
  #end(why: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reject } of open) reject(new Error(why));
  }

  #call<M extends Request["method"]>(
    method: M,
    args: readonly unknown[],
    onProgress: OnProgress = () => {},
  ): Result<M> {
    return new Promise<unknown>((resolve, reject) => {
      this.#post(this.#requests++, { request: { method, args }, resolve, reject, onProgress });
    }) as Result<M>;
  }

  #post(id: number, open: Open): void {
    this.#open.set(id, open);
    this.#started().postMessage({ ...open.request, id } satisfies Request);
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Response>) => this.#receive(data));
    // A worker whose file could not be loaded never answers, and the event does not contain a message.
    worker.addEventListener("error", ({ message }) => {
      if (worker === this.#worker) this.#end(message || "the worker could not be loaded");
    });
    this.#worker = worker;
    for (const args of this.#recordings.values())
      worker.postMessage({ method: "open", args, id: this.#requests++ } satisfies Request);
    return worker;
  }

  #receive(response: Response): void {
    const open = this.#open.get(response.id);
    if (open === undefined) return;
    if ("progress" in response) return open.onProgress(response.progress);
    this.#open.delete(response.id);
    if ("error" in response) open.reject(new Error(response.error));
    else open.resolve(response.value);
  }
}
