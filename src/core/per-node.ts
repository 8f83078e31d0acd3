/**
 * A value for each of some nodes, as an object keyed by node id. It is plain data, and its shape is `perNode`. Iterate with the
 * functions below: they go by ascending id, regardless of insertion order.
 */
export type PerNode<T> = Record<number, T>;

/** The nodes that have a value, ascending. */
export const nodesIn = (map: Readonly<PerNode<unknown>>): number[] =>
  Object.keys(map)
    .map(Number)
    .sort((a, b) => a - b);

/** The nodes and their values, by ascending id. */
export const entriesIn = <T>(map: Readonly<PerNode<T>>): [node: number, value: T][] =>
  nodesIn(map).map((node) => [node, map[node] as T]);

/** Returns whether an object key is a node id, written the way JavaScript prints it. */
export const isNodeId = (key: string): boolean =>
  Number.isSafeInteger(Number(key)) && Number(key) >= 0 && String(Number(key)) === key;
