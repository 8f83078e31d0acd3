/**
 * The last minute of a cluster's trace as lines of JSON, bounded by age, number and size. The age of a line is measured
 * from its arrival with a monotonic clock, because after this machine has slept, recent entries from members can have
 * old timestamps. A reader is only a position, so slow readers use no memory. They are notified if they have missed
 * lines.
 */
const KEPT_MS = 65_000;
const KEPT_LINES = 60_000;
const KEPT_LENGTH = 48 * 1024 * 1024;

/** Limits on the in-memory trace. */
export interface RecentTraceBounds {
  readonly ms: number;
  readonly lines: number;
  readonly length: number;
}

/** The recent part of a trace, and its listeners. */
export class RecentTrace {
  readonly #bounds: RecentTraceBounds;
  #kept: { arrivedAt: number; line: string }[] = [];
  /** The index of the oldest line in `kept`, and how many lines came before it. */
  #first = 0;
  #forgotten = 0;
  #length = 0;

  constructor(bounds: RecentTraceBounds = { ms: KEPT_MS, lines: KEPT_LINES, length: KEPT_LENGTH }) {
    this.#bounds = bounds;
  }

  /** The position of the next line. */
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

  /** Returns at most `max` lines, starting at `place`. Returns null if some of them have been dropped. */
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
