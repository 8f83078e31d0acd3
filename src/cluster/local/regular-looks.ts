/** Looks at something again and again, one look after the other, so that an older one cannot correct a newer one. */
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

  /** Slow looks do not queue up: while one is under way, none begins by itself. */
  start(): void {
    this.#timer = setInterval(() => {
      if (this.#pending === 0) void this.now();
    }, this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Looks once more, after those under way. Never rejects: a look that failed saw nothing, and the next one may see. */
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
