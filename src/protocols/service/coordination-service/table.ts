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

export function lookUp<V>(table: Table<V>, key: string): V | null {
  const place = placeOf(table, key);
  return table.keys[place] === key ? (table.values[place] as V) : null;
}

/** @returns what stood there before. */
export function enter<V>(table: Table<V>, key: string, value: V): V | null {
  const place = placeOf(table, key);
  if (table.keys[place] === key) {
    const before = table.values[place] as V;
    table.values[place] = value;
    return before;
  }
  table.keys.splice(place, 0, key);
  table.values.splice(place, 0, value);
  return null;
}

/** @returns what stood there. */
export function strike<V>(table: Table<V>, key: string): V | null {
  const place = placeOf(table, key);
  if (table.keys[place] !== key) return null;
  table.keys.splice(place, 1);
  return table.values.splice(place, 1)[0] as V;
}
