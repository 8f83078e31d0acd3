/**
 * A sorted map from names to values, as plain data. A table is a list of blocks with up to 128 entries each, so
 * inserting or removing a name costs about the same in a table with ten names as in one with a million. Operations
 * replace blocks and never change them in place, so copying the list of blocks copies the table.
 */
export interface Table<V> {
  size: number;
  readonly blocks: Block<V>[];
}

/** A block of names, in ascending order, and their values. Never empty. */
interface Block<V> {
  readonly keys: readonly string[];
  readonly values: readonly V[];
}

const MAX_BLOCK = 128;
const SMALL_BLOCK = 16;

/** Returns an empty table. */
export const emptyTable = <V>(): Table<V> => ({ size: 0, blocks: [] });

/** Returns a table with the given entries. @param entries must be in the order of their names */
export function tableOf<V>(entries: Iterable<readonly [string, V]>): Table<V> {
  const table = emptyTable<V>();
  append(table, entries);
  return table;
}

/** Returns a copy. Later changes to one table do not affect the other. */
export const copyOfTable = <V>({ size, blocks }: Table<V>): Table<V> => ({ size, blocks: [...blocks] });

/** Adds entries, which must be in order and come after all entries in the table. */
export function append<V>(table: Table<V>, entries: Iterable<readonly [string, V]>): void {
  const last = table.blocks.pop();
  let [keys, values] = [[...(last?.keys ?? [])], [...(last?.values ?? [])]];
  for (const [key, value] of entries) {
    if (keys.length === MAX_BLOCK) {
      table.blocks.push({ keys, values });
      [keys, values] = [[], []];
    }
    keys.push(key);
    values.push(value);
    table.size += 1;
  }
  if (keys.length > 0) table.blocks.push({ keys, values });
}

/** Returns a key's value. Null if there is none. */
export function lookUp<V>({ blocks }: Table<V>, key: string): V | null {
  const block = blocks[blockOf(blocks, key)];
  if (block === undefined) return null;
  const at = placeIn(block.keys, key);
  return block.keys[at] === key ? (block.values[at] as V) : null;
}

/** Sets a key's value. Returns the previous value, or null if there was none. */
export function enter<V>(table: Table<V>, key: string, value: V): V | null {
  const { blocks } = table;
  const number = Math.min(blockOf(blocks, key), Math.max(0, blocks.length - 1));
  const { keys, values } = blocks[number] ?? { keys: [], values: [] };
  const at = placeIn(keys, key);
  if (keys[at] === key) {
    blocks[number] = { keys, values: values.with(at, value) };
    return values[at] as V;
  }
  table.size += 1;
  const entered = { keys: keys.toSpliced(at, 0, key), values: values.toSpliced(at, 0, value) };
  if (entered.keys.length <= MAX_BLOCK) blocks[number] = entered;
  else blocks.splice(number, 1, part(entered, 0, MAX_BLOCK / 2), part(entered, MAX_BLOCK / 2));
  return null;
}

/** Deletes a key. Returns the key's value, or null if there was none. */
export function strike<V>(table: Table<V>, key: string): V | null {
  const { blocks } = table;
  const number = blockOf(blocks, key);
  const block = blocks[number];
  if (block === undefined) return null;
  const at = placeIn(block.keys, key);
  if (block.keys[at] !== key) return null;
  table.size -= 1;
  const left = { keys: block.keys.toSpliced(at, 1), values: block.values.toSpliced(at, 1) };
  if (left.keys.length === 0) blocks.splice(number, 1);
  else if (left.keys.length > SMALL_BLOCK || blocks.length === 1) blocks[number] = left;
  else join(blocks, number, left);
  return block.values[at] as V;
}

/** Merges a small block into a neighbor, unless the neighbor is full. */
function join<V>(blocks: Block<V>[], number: number, small: Block<V>): void {
  const first = Math.max(0, number - 1);
  const [left, right] = number === 0 ? [small, blocks[1] as Block<V>] : [blocks[first] as Block<V>, small];
  const joined = { keys: [...left.keys, ...right.keys], values: [...left.values, ...right.values] };
  if (joined.keys.length <= MAX_BLOCK) blocks.splice(first, 2, joined);
  else blocks[number] = small;
}

const part = <V>({ keys, values }: Block<V>, from: number, to?: number): Block<V> => ({
  keys: keys.slice(from, to),
  values: values.slice(from, to),
});

/**
 * Yields the entries with names from `from` up to but not including `to`, in order. If `to` is null, the range extends
 * to the end.
 */
export function* entriesOf<V>({ blocks }: Table<V>, from = "", to: string | null = null): Iterable<[string, V]> {
  for (let number = blockOf(blocks, from); number < blocks.length; number++) {
    const { keys, values } = blocks[number] as Block<V>;
    for (let at = placeIn(keys, from); at < keys.length; at++) {
      const key = keys[at] as string;
      if (to !== null && key >= to) return;
      yield [key, values[at] as V];
    }
  }
}

/** Returns the number of names from `from` up to but not including `to`. It costs a step for each block. */
export function countIn({ size, blocks }: Table<unknown>, from: string, to: string | null): number {
  const before = (key: string): number => {
    const number = blockOf(blocks, key);
    let count = placeIn(blocks[number]?.keys ?? [], key);
    for (let at = 0; at < number; at++) count += (blocks[at] as Block<unknown>).keys.length;
    return count;
  };
  return Math.max(0, (to === null ? size : before(to)) - before(from));
}

/** Returns all keys, in ascending order. */
export const keysOf = ({ blocks }: Table<unknown>): string[] => blocks.flatMap(({ keys }) => keys);
/** Returns all values, in ascending order of their keys. */
export const valuesOf = <V>({ blocks }: Table<V>): V[] => blocks.flatMap(({ values }) => values);

/** Returns the index of the first block with a last name that is not before the key. */
function blockOf(blocks: readonly Block<unknown>[], key: string): number {
  let [low, high] = [0, blocks.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { keys } = blocks[middle] as Block<unknown>;
    if ((keys[keys.length - 1] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the index of the first item in an ascending list that is not before the given one. */
export function placeIn<T extends string | number>(keys: readonly T[], key: T): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as T) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
