/**
 * The last minute of a cluster's trace as lines of JSON, bounded by age, number and size. Age counts from a line's
 * arrival by a clock that nobody sets: after this machine has slept, what the members stamped before is late, but new.
 * Readers keep only their place in it, so a slow one holds no memory: when what it has not read is gone, it is told so.
 */
const KEPT_MS = 65_000;
const KEPT_LINES = 60_000;
const KEPT_LENGTH = 48 * 1024 * 1024;

export interface RecentTraceBounds {
  readonly ms: number;
  readonly lines: number;
  readonly length: number;
}

export class RecentTrace {
  readonly #bounds: RecentTraceBounds;
  #kept: { arrivedAt: number; line: string }[] = [];
  /** Where the oldest line stands in `kept`, and how many lines came before it. */
  #first = 0;
  #forgotten = 0;
  #length = 0;

  constructor(bounds: RecentTraceBounds = { ms: KEPT_MS, lines: KEPT_LINES, length: KEPT_LENGTH }) {
    this.#bounds = bounds;
  }

  /** Where the next line will stand. */
  get end(): number {
    return this.#forgotten + this.#kept.length - this.#first;
  }

  get lines(): string[] {
    return this.#kept.slice(this.#first).map(({ line }) => line);
  }

  add(line: string): void {
    const arrivedAt = performance.now();
    this.#kept.push({ arrivedAt, line });
    this.#length += line.length;
    this.#forget(arrivedAt - this.#bounds.ms);
  }

  /** The lines from `place` on, at most `max` of them; null if some are gone already. */
  since(place: number, max: number): string[] | null {
    if (place < this.#forgotten) return null;
    const from = this.#first + place - this.#forgotten;
    return this.#kept.slice(from, from + max).map(({ line }) => line);
  }

  #forget(before: number): void {
    for (let oldest = this.#kept[this.#first]; oldest !== undefined; oldest = this.#kept[this.#first]) {
      const fits = this.#kept.length - this.#first <= this.#bounds.lines && this.#length <= this.#bounds.length;
      if (fits && oldest.arrivedAt >= before) break;
      this.#length -= oldest.line.length;
      this.#first += 1;
      this.#forgotten += 1;
    }
    if (this.#first > 1_000 && this.#first * 2 > this.#kept.length) {
      this.#kept = this.#kept.slice(this.#first);
      this.#first = 0;
    }
  }
}
