/**
 * Queues ordered by position. A position is a number, and ties are broken by the proposer's id, so no two positions are
 * equal.
 */
import type { NodeId } from "../../../core/protocol.ts";

/** A position and the node that proposed it. */
export type Place = { place: number; proposer: NodeId };

/** Whether position `a` comes after `b`. */
export const isAfter = (a: Place, b: Place): boolean =>
  a.place > b.place || (a.place === b.place && a.proposer > b.proposer);

/** Moves an item to a different position in a sorted queue, which stays sorted. */
export function move<T extends Place>(queue: T[], from: Place, to: Place): T {
  const [moved] = queue.splice(indexOf(queue, from), 1) as [T];
  queue.splice(indexOf(queue, to), 0, Object.assign(moved, to));
  return moved;
}

/**
 * Returns the index at which a position is, or would be inserted. Uses binary search, because queues may hold thousands
 * of messages.
 */
function indexOf(queue: readonly Place[], place: Place): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(place, queue[middle] as Place)) low = middle + 1;
    else high = middle;
  }
  return low;
}
