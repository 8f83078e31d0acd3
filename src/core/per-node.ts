/**
 * A map from nodes to values, as an object keyed by node id. It is plain data, and its shape is `perNode`. To iterate
 * over it, use the functions below: they visit nodes in ascending order of id, regardless of insertion order.
 */
export type PerNode<T> = Record<number, T>;

/** Returns the nodes that have a value, in ascending order. */
export const nodesIn = (map: Readonly<PerNode<unknown>>): number[] =>
  Object.keys(map)
    .map(Number)
    .sort((a, b) => a - b);

/** Returns the nodes and their values, in ascending order of node id. */
export const entriesIn = <T>(map: Readonly<PerNode<T>>): [node: number, value: T][] =>
  nodesIn(map).map((node) => [node, map[node] as T]);

/** Returns whether an object key is a node id in the form that JavaScript prints it. */
export const isNodeId = (key: string): boolean =>
  Number.isSafeInteger(Number(key)) && Number(key) >= 0 && String(Number(key)) === key;
