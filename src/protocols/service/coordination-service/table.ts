/**
 * Values by name, in the order of the names: plain data whatever the names are called, and ready for ranges. Two lists side by
 * side, found by halving.
 */
export interface Table<V> {
  keys: string[];
  values: V[];
}

export const emptyTable = <V>(): Table<V> => ({ keys: [], values: [] });

/** Where the key stands, or would stand: the first place whose key is not before it. */
export function placeOf({ keys }: Table<unknown>, key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Where keys of a long table were last found: to halve thousands of texts, which lie all over the memory, takes most of the time of an
 * operation. What stands between may have come or gone since, so a place is looked at before it counts. Beside the state, and not in it.
 */
const hints = new WeakMap<Table<unknown>, Map<string, number>>();
const LONG = 64;

/** Where the key stands; null if it does not. */
function foundAt(table: Table<unknown>, key: string): number | null {
  const { keys } = table;
  if (keys.length < LONG) return confirmed(keys, placeOf(table, key), key);
  let known = hints.get(table);
  if (known === undefined) {
    known = new Map();
    hints.set(table, known);
  }
  const hint = confirmed(keys, known.get(key), key);
  if (hint !== null) return hint;
  const place = confirmed(keys, placeOf(table, key), key);
  if (place === null) known.delete(key);
  else known.set(key, place);
  return place;
}

const confirmed = (keys: readonly string[], place: number | undefined, key: string): number | null =>
  place !== undefined && keys[place] === key ? place : null;

export function lookUp<V>(table: Table<V>, key: string): V | null {
  const place = foundAt(table, key);
  return place === null ? null : (table.values[place] as V);
}

/** @returns what stood there before. */
export function enter<V>(table: Table<V>, key: string, value: V): V | null {
  const found = foundAt(table, key);
  if (found !== null) {
    const before = table.values[found] as V;
    table.values[found] = value;
    return before;
  }
  const place = placeOf(table, key);
  table.keys.splice(place, 0, key);
  table.values.splice(place, 0, value);
  return null;
}

/** @returns what stood there. */
export function strike<V>(table: Table<V>, key: string): V | null {
  const place = foundAt(table, key);
  if (place === null) return null;
  hints.get(table)?.delete(key);
  table.keys.splice(place, 1);
  return table.values.splice(place, 1)[0] as V;
}
