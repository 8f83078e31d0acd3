/**
 * An index of the history by key. It finds the changes to a few keys without a walk over the changes to all others.
 *
 * It is derived from the history and is not part of the state, so snapshots do not contain it and copies of a state do
 * not share it. It is built at the first query that needs it, and later queries add the changes made since.
 */
import { isOwn } from "./layout.ts";
import { countIn, emptyTable, enter, entriesOf, lookUp, placeIn, strike, type Table } from "./table.ts";
import type { ByteText, Interval, KeyEvent } from "./vocabulary.ts";

/** The `end` of an interval without an upper bound. */
export const ALL_FROM: ByteText = "\0";

/** Returns whether an interval contains the key. The service's own keys are not part of intervals around them. */
export const covers = ({ key: from, end }: Interval, key: ByteText): boolean =>
  end === "" ? key === from : key >= from && (end === ALL_FROM || key < end) && (!isOwn(key) || isOwn(from));

/** Yields a table's values in an interval, in order of their keys. */
export function* within<V>(table: Table<V>, interval: Interval): Iterable<V> {
  const { key, end } = interval;
  if (end === "") {
    const value = lookUp(table, key);
    if (value !== null) yield value;
  } else
    for (const [of, value] of entriesOf(table, key, end === ALL_FROM ? null : end))
      if (covers(interval, of)) yield value;
}

/** Returns how many of a table's keys `within` visits. */
export const countWithin = (table: Table<unknown>, { key, end }: Interval): number =>
  end === "" ? 1 : countIn(table, key, end === ALL_FROM ? null : end);

interface Index {
  /** For each key, the ascending numbers of its changes. Changes are numbered from the first one ever indexed. */
  readonly places: Table<number[]>;
  /** The number of the first change in the history. */
  first: number;
  /** The number of the first change that is not indexed yet. */
  next: number;
}

const indexes = new WeakMap<readonly KeyEvent[], Index>();

function indexOf(history: readonly KeyEvent[]): Index {
  const index = indexes.get(history) ?? { places: emptyTable(), first: 0, next: 0 };
  indexes.set(history, index);
  for (; index.next - index.first < history.length; index.next++) {
    const { key } = (history[index.next - index.first] as KeyEvent).kv;
    const places = lookUp(index.places, key);
    if (places === null) enter(index.places, key, [index.next]);
    else places.push(index.next);
  }
  return index;
}

/** Returns how many keys in an interval the history contains. */
export const changedKeysIn = (history: readonly KeyEvent[], interval: Interval): number =>
  countWithin(indexOf(history).places, interval);

/** Returns the first change to each of an interval's keys at or after a position in the history. */
export function firstChanges(history: readonly KeyEvent[], interval: Interval, from: number): KeyEvent[] {
  const { places, first } = indexOf(history);
  const changes: KeyEvent[] = [];
  for (const numbers of within(places, interval)) {
    const number = numbers[placeIn(numbers, first + from)];
    if (number !== undefined) changes.push(history[number - first] as KeyEvent);
  }
  return changes;
}

/** A walk over all changes is faster than the index unless the interval has this much fewer changed keys. */
const WALK_FACTOR = 8;

/** Yields the changes to an interval's keys at or after a position in the history, in order. */
export function* changesFrom(history: readonly KeyEvent[], interval: Interval, from: number): Iterable<KeyEvent> {
  const { places, first } = indexOf(history);
  if (countWithin(places, interval) * WALK_FACTOR > history.length - from) {
    for (let at = from; at < history.length; at++) {
      const event = history[at] as KeyEvent;
      if (covers(interval, event.kv.key)) yield event;
    }
    return;
  }
  const found = [...within(places, interval)].map((numbers) => numbers.slice(placeIn(numbers, first + from)));
  for (const number of found.flat().sort((a, b) => a - b)) yield history[number - first] as KeyEvent;
}

/** Removes the oldest changes from the history and its index, and returns them. */
export function dropFirst(history: KeyEvent[], count: number): KeyEvent[] {
  const dropped = history.splice(0, count);
  const index = indexes.get(history);
  if (index === undefined) return dropped;
  index.first += count;
  index.next = Math.max(index.next, index.first);
  for (const key of new Set(dropped.map(({ kv }) => kv.key))) {
    const numbers = lookUp(index.places, key);
    numbers?.splice(0, placeIn(numbers, index.first));
    if (numbers?.length === 0) strike(index.places, key);
  }
  return dropped;
}
