/** A queue by place: a number, and of equal numbers the id of who proposed it. No two places are equal. */
import type { NodeId } from "../../../core/protocol.ts";

export type Place = { place: number; proposer: NodeId };

export const isAfter = (a: Place, b: Place): boolean =>
  a.place > b.place || (a.place === b.place && a.proposer > b.proposer);

/** Moves what stands at one place to another; the queue ascends before and after. */
export function move<T extends Place>(queue: T[], from: Place, to: Place): T {
  const [moved] = queue.splice(indexOf(queue, from), 1) as [T];
  queue.splice(indexOf(queue, to), 0, Object.assign(moved, to));
  return moved;
}

/** Where a place is, or would be. By halves: of thousands that are held back only a few are looked at. */
function indexOf(queue: readonly Place[], place: Place): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(place, queue[middle] as Place)) low = middle + 1;
    else high = middle;
  }
  return low;
}
