/**
 * Something for each of some nodes, as an object by their ids: plain data, with `perNode` as its shape. Go through it with
 * these, which go up the ids, in whatever order it was filled.
 */
export type PerNode<T> = Record<number, T>;

export const nodesIn = (map: Readonly<PerNode<unknown>>): number[] =>
  Object.keys(map)
    .map(Number)
    .sort((a, b) => a - b);

export const entriesIn = <T>(map: Readonly<PerNode<T>>): [node: number, value: T][] =>
  nodesIn(map).map((node) => [node, map[node] as T]);

/** Whether a key is an id as JavaScript writes it. */
export const isNodeId = (key: string): boolean =>
  Number.isSafeInteger(Number(key)) && Number(key) >= 0 && String(Number(key)) === key;
