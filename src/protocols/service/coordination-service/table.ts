/**
 * Values by name, ordered by name, as plain data. A table is a list of blocks, each with up to 128 entries, so inserting and removing a
 * name costs about the same in a table of ten names and in one of a million. Operations replace blocks and never change them in place:
 * a copy of the list of blocks is a copy of the table.
 */
export interface Table<V> {
  size: number;
  readonly blocks: Block<V>[];
}

/** Ascending names, with the value of each. Never empty. */
interface Block<V> {
  readonly keys: readonly string[];
  readonly values: readonly V[];
}

const MAX_BLOCK = 128;
const SMALL_BLOCK = 16;

export const emptyTable = <V>(): Table<V> => ({ size: 0, blocks: [] });

/** @param entries in the order of their names */
export function tableOf<V>(entries: Iterable<readonly [string, V]>): Table<V> {
  const table = emptyTable<V>();
  append(table, entries);
  return table;
}

/** A copy that later changes of either do not affect. */
export const copyOfTable = <V>({ size, blocks }: Table<V>): Table<V> => ({ size, blocks: [...blocks] });

/** Adds names that are after all names in the table, in order. */
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

export function lookUp<V>({ blocks }: Table<V>, key: string): V | null {
  const block = blocks[blockOf(blocks, key)];
  if (block === undefined) return null;
  const at = placeIn(block.keys, key);
  return block.keys[at] === key ? (block.values[at] as V) : null;
}

/** @returns the value before, or null. */
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

/** @returns the value before, or null. */
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

/** A small block becomes a part of its neighbor, unless the neighbor is full. */
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

/** The entries whose names are at least `from` and less than `to`, in order; null: no bound. */
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

export const keysOf = ({ blocks }: Table<unknown>): string[] => blocks.flatMap(({ keys }) => keys);
export const valuesOf = <V>({ blocks }: Table<V>): V[] => blocks.flatMap(({ values }) => values);

/** The first block whose last name is not before the key. */
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

/** The place of the first of these ascending keys that is not before the key. */
export function placeIn(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
