/**
 * An index of items with a duration, so that a window finds its items without scanning all others. For a crowded window it
 * returns samples: the stretches of a level are four times as long as on the level before, and of a lane's items that begin
 * in one stretch one is kept. Levels are built on demand, or one by one in advance.
 */

/** The interval of an item on an axis. A sample represents only items of its own lane. */
export interface Place {
  readonly begin: number;
  readonly end: number;
  readonly lane: number;
}

export interface Thinning<T> {
  /** Whether items longer than a stretch are always kept. */
  readonly keepsLong: boolean;
  /** Whether the later of two items is kept. By default, the first one is. */
  readonly prefers?: (next: T, kept: T) => boolean;
}

interface Level {
  /** Indexes of the items, ascending by their beginning. */
  readonly things: Int32Array;
  readonly begins: Float64Array;
  /** Sorted separately, ascending. */
  readonly ends: Float64Array;
  /** The latest end of each half, of each quarter, and so on, as a heap. */
  readonly latest: Float64Array;
}

/** More levels than are ever built. */
const MOST_LEVELS = 20;
const GROWTH = 4;

export class Levels<T> {
  readonly #things: readonly T[];
  readonly #places: readonly Place[];
  readonly #thinning: Thinning<T>;
  readonly #levels: Level[];
  /** The mean distance from one beginning to the next. */
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

  /** Builds one more level per step, until the coarsest has at most `most` items. */
  *making(most: number): Generator<void> {
    for (let depth = 0; depth < MOST_LEVELS && this.#level(depth).things.length > most; depth++) yield;
  }

  /** The number of items examined so far. */
  get touched(): number {
    return this.#touched;
  }

  /** The number of items that reach into the window. */
  count(from: number, to: number): number {
    return countIn(this.#levels[0] as Level, from, to);
  }

  /** The items that reach into the window, in the given order; samples of them if there are more than `most`. */
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
    /** The last sample of each lane. */
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
    // Nearly always they are ascending already.
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

/** All items except those that begin after the window or end before it. */
function countIn({ begins, ends }: Level, from: number, to: number): number {
  return firstAfter(begins, to) - firstFrom(ends, from);
}

export const firstAfter = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each > value);

export const firstFrom = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each >= value);

/** The first index of an ascending list where the predicate is true. It stays true after that. */
function firstWhere(ascending: ArrayLike<number>, isSo: (value: number) => boolean): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(ascending[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}
