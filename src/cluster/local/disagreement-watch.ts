/** Detects disagreements among members that last longer than an election usually takes. */
import type { Opinion } from "./agreement.ts";

const MOMENT_MS = 300;

export class DisagreementWatch {
  readonly #tell: (opinions: readonly Opinion[]) => void;
  #latest = "";
  #timer: NodeJS.Timeout | undefined;

  /** Calls `tell` once for each disagreement that persists for a moment without changing. */
  constructor(tell: (opinions: readonly Opinion[]) => void) {
    this.#tell = tell;
  }

  note(opinions: readonly Opinion[]): void {
    const text = JSON.stringify(opinions);
    if (text === this.#latest) return;
    this.#latest = text;
    clearTimeout(this.#timer);
    if (opinions.length > 1) this.#timer = setTimeout(() => this.#tell(opinions), MOMENT_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
