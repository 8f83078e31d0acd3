/**
 * Things that last for a while, by where they stand, so that a window finds its own without looking at all the others.
 * Of more than can be told apart it is given samples: on each level stretches are four times as long as on the one before, and
 * of the things of a lane that begin in one of them one stays. Levels are made when they are asked for, or one by one beforehand.
 */

/** Where something stands on an axis. Only things of one lane can stand for each other. */
export interface Place {
  readonly begin: number;
  readonly end: number;
  readonly lane: number;
}

export interface Thinning<T> {
  /** Whether what is longer than a stretch stays in any case. */
  readonly keepsLong: boolean;
  /** Whether of two things the later stays; unless told, the first does. */
  readonly prefers?: (next: T, kept: T) => boolean;
}

interface Level {
  /** Of the things, ascending by where they begin. */
  readonly things: Int32Array;
  readonly begins: Float64Array;
  /** For themselves, ascending. */
  readonly ends: Float64Array;
  /** The latest end of each half, of each half of these, and so on, as a heap. */
  readonly latest: Float64Array;
}

/** More than are ever made. */
const MOST_LEVELS = 20;
const GROWTH = 4;

export class Levels<T> {
  readonly #things: readonly T[];
  readonly #places: readonly Place[];
  readonly #thinning: Thinning<T>;
  readonly #levels: Level[];
  /** From one beginning to the next, in the mean. */
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

  /** Makes one more level with each step, until the coarsest has no more things than `most`. */
  *making(most: number): Generator<void> {
    for (let depth = 0; depth < MOST_LEVELS && this.#level(depth).things.length > most; depth++) yield;
  }

  /** How many things have been looked at so far. */
  get touched(): number {
    return this.#touched;
  }

  /** How many reach into the window. */
  count(from: number, to: number): number {
    return countIn(this.#levels[0] as Level, from, to);
  }

  /** Those that reach into the window, in the order in which they were given; where there are more than `most`, samples of them. */
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
    /** Of each lane: the last that stands for others. */
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
    // Nearly always they ascend already.
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

/** All but those that begin behind the window, and those that end before it. */
function countIn({ begins, ends }: Level, from: number, to: number): number {
  return firstAfter(begins, to) - firstFrom(ends, from);
}

export const firstAfter = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each > value);

export const firstFrom = (ascending: ArrayLike<number>, value: number): number =>
  firstWhere(ascending, (each) => each >= value);

/** The first of what ascends that is so, as are all behind it. */
function firstWhere(ascending: ArrayLike<number>, isSo: (value: number) => boolean): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(ascending[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}
