/** Runs a check periodically. Only one check runs at a time, so an older result never replaces a newer one. */
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

  /** Starts periodic checks. A check is skipped if the previous one is still running. */
  start(): void {
    this.#timer = setInterval(() => {
      if (this.#pending === 0) void this.now();
    }, this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Runs an additional check after the pending ones. Never rejects, since the next check may succeed even if this one
   * fails.
   */
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
