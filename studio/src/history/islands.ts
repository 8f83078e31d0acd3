import type { NodeId } from "../../../src/core/protocol.ts";

/** Groups of nodes between which nothing passes, not even by a detour. Each ascends. */
export function islandsOf(nodes: readonly NodeId[], isApart: (a: NodeId, b: NodeId) => boolean): NodeId[][] {
  const unseen = new Set(nodes);
  const islands: NodeId[][] = [];
  for (const first of unseen) {
    const island = [first];
    unseen.delete(first);
    for (const node of island) {
      for (const other of unseen) {
        if (isApart(node, other)) continue;
        island.push(other);
        unseen.delete(other);
      }
    }
    islands.push(island.sort((a, b) => a - b));
  }
  return islands;
}
