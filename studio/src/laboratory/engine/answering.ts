/** Answers questions one after the other, in the order in which they come. */
import type { Answer, Asked } from "./answers.ts";
import type { Laboratory } from "./laboratory.ts";

export class Answering {
  readonly #laboratory: Pick<Laboratory, "answer">;
  readonly #say: (answer: Answer) => void;
  /** Making a run waits for files: what is asked meanwhile must not be answered of a run that it would take the place of. */
  #before: Promise<void> = Promise.resolve();

  constructor(laboratory: Pick<Laboratory, "answer">, say: (answer: Answer) => void) {
    this.#laboratory = laboratory;
    this.#say = say;
  }

  /** @returns when it is answered */
  take(asked: Asked): Promise<void> {
    this.#before = this.#before.then(() => this.#answer(asked));
    return this.#before;
  }

  async #answer(asked: Asked): Promise<void> {
    const { id } = asked;
    try {
      const value = await this.#laboratory.answer(asked, ({ phase, states, transitions, depth, events }) =>
        this.#say({ id, progress: { phase, states, transitions, depth, events } }),
      );
      this.#say({ id, value });
    } catch (error) {
      this.#say({ id, error: error instanceof Error ? error.message : String(error) });
    }
  }
}
