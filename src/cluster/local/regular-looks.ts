/** Runs a check periodically, one at a time, so that an older result never replaces a newer one. */
export class RegularLooks {
  readonly #look: () => Promise<void>;
  readonly #everyMs: number;
  #latest: Promise<void> = Promise.resolve();
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(look: () => Promise<void>, everyMs: number) {
    this.#look = look;
    this.#everyMs = everyMs;
  }

  /** Slow checks do not queue up: a periodic check is skipped while another runs. */
  start(): void {
    this.#timer = setInterval(() => {
      if (this.#pending === 0) void this.now();
    }, this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Runs another check, after the pending ones. Never rejects: after a failed check, the next one may succeed. */
  now(): Promise<void> {
    this.#pending += 1;
    this.#latest = this.#latest
      .then(() => this.#look())
      .catch(() => {})
      .finally(() => {
        this.#pending -= 1;
      });
    return this.#latest;
  }
}
