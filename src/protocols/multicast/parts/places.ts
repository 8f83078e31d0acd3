/** A queue ordered by position: a number, with ties broken by the id of the proposer. No two positions are equal. */
import type { NodeId } from "../../../core/protocol.ts";

export type Place = { place: number; proposer: NodeId };

export const isAfter = (a: Place, b: Place): boolean =>
  a.place > b.place || (a.place === b.place && a.proposer > b.proposer);

/** Moves an item to another position. The queue is ascending before and after. */
export function move<T extends Place>(queue: T[], from: Place, to: Place): T {
  const [moved] = queue.splice(indexOf(queue, from), 1) as [T];
  queue.splice(indexOf(queue, to), 0, Object.assign(moved, to));
  return moved;
}

/** The index of a position, or its insertion index. Uses binary search, because queues may hold thousands of messages. */
function indexOf(queue: readonly Place[], place: Place): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(place, queue[middle] as Place)) low = middle + 1;
    else high = middle;
  }
  return low;
}
