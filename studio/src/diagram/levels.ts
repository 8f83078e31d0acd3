/**
 * An index of items that have a duration. It finds the items in a window without scanning all others. For a crowded
 * window, it returns samples from a coarser level. Each level divides the axis into stretches four times as long as on
 * the previous level, and keeps one item per lane and stretch. Levels are built on demand, or one at a time in advance.
 */

/** The interval that an item covers on an axis. A sample represents only items in its lane. */
export interface Place {
  readonly begin: number;
  readonly end: number;
  readonly lane: number;
}

export interface Thinning<T> {
  /** Whether to keep every item that is longer than a stretch. */
  readonly keepsLong: boolean;
  /** Returns whether to keep the later of two items. By default, the earlier one is kept. */
  readonly prefers?: (next: T, kept: T) => boolean;
}

interface Level {
  /** The indexes of the items, in the order that the items begin. */
  readonly things: Int32Array;
  readonly begins: Float64Array;
  /** The ends of the items, sorted separately in ascending order. */
  readonly ends: Float64Array;
  /** A binary tree in heap order: the latest end of all items, of each half, of each quarter, and so on. */
  readonly latest: Float64Array;
}

/** The maximum number of levels, which is never reached. */
const MOST_LEVELS = 20;
const GROWTH = 4;

export class Levels<T> {
  readonly #things: readonly T[];
  readonly #places: readonly Place[];
  readonly #thinning: Thinning<T>;
  readonly #levels: Level[];
  /** The mean distance between consecutive beginnings. */
  readonly #apart: number;
  #touched = 0;

  constructor(things: readonly T[], placeOf: (thing: T) => Place, thinning: Thinning<T>) {
    this.#things = things;
    this.#places = things.map(placeOf);
    this.#thinning = thinning;
    const begins = this.#places.map(({ begin }) => begin).filter(Number.isFinite);
    const [first, last] = [begins.reduce(least, Infinity), begins.reduce(greatest, -Infinity)];
    this.#apart = begins.length < 2 || last === first ? 1 : (last - first) / begins.length;
    this.#levels = [this.#levelOf(Int32Array.from(things.keys()))];
  }

  /** Builds one more level per step, until the coarsest level has at most `most` items. */
  *making(most: number): Generator<void> {
    for (let depth = 0; depth < MOST_LEVELS && this.#level(depth).things.length > most; depth++) yield;
  }

  /** The number of items examined so far, for use in tests. */
  get touched(): number {
    return this.#touched;
  }

  /** Returns the number of items that overlap the window. */
  count(from: number, to: number): number {
    return countIn(this.#levels[0] as Level, from, to);
  }

  /**
   * Returns the items that overlap the window, in their original order. Returns samples if there are more than `most`.
   */
  between(from: number, to: number, most: number): T[] {
    let depth = 0;
    while (depth < MOST_LEVELS && countIn(this.#level(depth), from, to) > most) depth += 1;
    const level = this.#level(Math.min(depth, MOST_LEVELS - 1));
    const found: number[] = [];
    this.#gather(level, from, to, found, { node: 1, first: 0, length: level.latest.length / 2 });
    return found.sort((a, b) => a - b).map((thing) => this.#things[thing] as T);
  }

  #beginOf = (thing: number): number => (this.#places[thing] as Place).begin;

  #gather(
    level: Level,
    from: number,
    to: number,
    found: number[],
    { node, first, length }: { readonly node: number; readonly first: number; readonly length: number },
  ): void {
    this.#touched += 1;
    if (first >= level.things.length || (level.latest[node] as number) < from || (level.begins[first] as number) > to)
      return;
    if (length === 1) return void found.push(level.things[first] as number);
    const half = length / 2;
    this.#gather(level, from, to, found, { node: 2 * node, first, length: half });
    this.#gather(level, from, to, found, { node: 2 * node + 1, first: first + half, length: half });
  }

  #level(depth: number): Level {
    for (let made = this.#levels.length; made <= depth; made++)
      this.#levels.push(this.#coarser(this.#levels[made - 1] as Level, this.#apart * GROWTH ** made));
    return this.#levels[depth] as Level;
  }

  #coarser({ things }: Level, stretch: number): Level {
    const { keepsLong, prefers = () => false } = this.#thinning;
    const kept: number[] = [];
    /** The last sample in each lane. */
    const last = new Map<number, { readonly stretch: number; readonly index: number }>();
    for (const thing of things) {
      this.#touched += 1;
      const { begin, end, lane } = this.#places[thing] as Place;
      const own = Math.floor(begin / stretch);
      const standsFor = last.get(lane);
      if (keepsLong && end - begin >= stretch) kept.push(thing);
      else if (standsFor?.stretch !== own) {
        last.set(lane, { stretch: own, index: kept.length });
        kept.push(thing);
      } else if (prefers(this.#things[thing] as T, this.#things[kept[standsFor.index] as number] as T))
        kept[standsFor.index] = thing;
    }
    return this.#levelOf(Int32Array.from(kept));
  }

  #levelOf(things: Int32Array): Level {
    const beginAt = (index: number): number => this.#beginOf(things[index] as number);
    // The items are nearly always already in order.
    if (things.some((_, index) => index > 0 && beginAt(index) < beginAt(index - 1)))
      things.sort((a, b) => this.#beginOf(a) - this.#beginOf(b) || a - b);
    const endOf = (thing: number): number => (this.#places[thing] as Place).end;
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, things.length)));
    const latest = new Float64Array(2 * size).fill(Number.NEGATIVE_INFINITY);
    for (const [index, thing] of things.entries()) latest[size + index] = endOf(thing);
    for (let node = size - 1; node > 0; node--)
      latest[node] = Math.max(latest[2 * node] as number, latest[2 * node + 1] as number);
    return {
      things,
      begins: Float64Array.from(things, this.#beginOf),
      ends: Float64Array.from(things, endOf).sort(),
      latest,
    };
  }
}

const least = (a: number, b: number): number => Math.min(a, b);
const greatest = (a: number, b: number): number => Math.max(a, b);

/** Returns the number of items that overlap the window: all items except those that begin after it or end before it. */
function countIn({ begins, ends }: Level, from: number, to: number): number {
  return firstAfter(begins, to) - firstFrom(ends, from);
}

export const firstAfter = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each > value);

export const firstFrom = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each >= value);

/** Returns the first index in an ascending list where the predicate is true. The predicate must be monotonic. */
function firstWhere(ascending: ArrayLike<number>, isSo: (value: number) => boolean): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(ascending[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}
