/** Calls methods of the laboratory one after another, in the order of the requests. */
import type { Progress, Request, Response } from "./answers.ts";
import type { Laboratory } from "./laboratory.ts";

export class RequestQueue {
  readonly #laboratory: Laboratory;
  readonly #send: (response: Response) => void;
  /**
   * Resolves when the last request is done. Computing a run involves waiting for files, and a later request must not be
   * answered from the previous run.
   */
  #last: Promise<void> = Promise.resolve();

  constructor(laboratory: Laboratory, send: (response: Response) => void) {
    this.#laboratory = laboratory;
    this.#send = send;
  }

  /** Adds a request. Resolves when the response has been sent. */
  add(request: Request): Promise<void> {
    this.#last = this.#last.then(() => this.#respond(request));
    return this.#last;
  }

  async #respond({ id, method, args }: Request): Promise<void> {
    const call = this.#laboratory[method].bind(this.#laboratory) as (...args: unknown[]) => unknown;
    try {
      const value = await call(...args, (progress: Progress) => this.#send({ id, progress }));
      this.#send({ id, value });
    } catch (error) {
      this.#send({ id, error: error instanceof Error ? error.message : String(error) });
    }
  }
}
