/** Which node cannot hear which. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";

/** Which node hears which in a partition that is not simply one into groups. */
export type PartitionShape =
  /** Nothing that `from` sends to `to` arrives; the other way it does. */
  | { readonly shape: "one-way"; readonly from: readonly NodeId[]; readonly to: readonly NodeId[] }
  /** Two halves, lower and higher ids, that only `bridge` connects. By default that is the node in the middle. */
  | { readonly shape: "bridge"; readonly bridge?: NodeId }
  /** On a ring by id, everybody hears its neighbours: a majority, and no two the same. At least 4 nodes. */
  | { readonly shape: "majority-ring" };

/** Whether a message between two nodes is lost. Nodes are known by their places among all ids, ascending. */
export type Separation = (from: number, to: number) => boolean;

/** Nothing passes between groups. Nodes in no group form one of their own. @throws UsageError for a node in two groups. */
export function intoGroups(
  count: number,
  groups: readonly (readonly NodeId[])[],
  placeOf: (node: NodeId) => number,
): Separation {
  const groupOf = new Int32Array(count).fill(-1);
  for (const [index, group] of groups.entries()) {
    for (const node of group) {
      const place = placeOf(node);
      if (groupOf[place] !== -1)
        throw new UsageError("bad-partition", unexpected("the groups", "without a node in common", groups));
      groupOf[place] = index;
    }
  }
  return (from, to) => groupOf[from] !== groupOf[to];
}

/** @throws UsageError for a shape that these nodes cannot take. */
export function intoShape(count: number, shape: PartitionShape, placeOf: (node: NodeId) => number): Separation {
  switch (shape.shape) {
    case "one-way": {
      const from = new Set(shape.from.map(placeOf));
      const to = new Set(shape.to.map(placeOf));
      return (sender, receiver) => from.has(sender) && to.has(receiver);
    }
    case "bridge": {
      const bridge = shape.bridge === undefined ? count >> 1 : placeOf(shape.bridge);
      // The bridge is in neither half, so the halves are equal or differ by one.
      const isLower = (place: number): boolean => (place < bridge ? place : place - 1) < count >> 1;
      return (from, to) => from !== bridge && to !== bridge && isLower(from) !== isLower(to);
    }
    case "majority-ring": {
      if (count < 4)
        throw new UsageError("bad-partition", unexpected("the nodes of a majority-ring", "at least 4", count));
      const reach = Math.ceil((count >> 1) / 2);
      return (from, to) => Math.min((from - to + count) % count, (to - from + count) % count) > reach;
    }
    default:
      throw new UsageError(
        "bad-partition",
        unexpected("the partition's shape", "one-way, bridge or majority-ring", (shape as { shape: unknown }).shape),
      );
  }
}
