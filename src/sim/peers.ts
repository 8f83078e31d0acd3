/** The others, as each node sees them: ascending, without itself. */
import type { NodeId } from "../core/protocol.ts";

/** Beyond so many nodes, a list for each would take more memory than everything else together. */
const MANY_NODES = 1_000;

/** The peers of the node that stands at `place` among all, which are `ids`. */
export function peersOf(ids: readonly NodeId[], place: number): readonly NodeId[] {
  return ids.length <= MANY_NODES ? ids.toSpliced(place, 1) : viewWithout(ids, place);
}

/** Reads like an array, and skips one place of the array that it looks into. */
function viewWithout(ids: readonly NodeId[], place: number): readonly NodeId[] {
  const length = ids.length - 1;
  const indexOf = (key: string | symbol): number =>
    typeof key === "string" && /^\d+$/.test(key) && Number(key) < length ? Number(key) : -1;
  return new Proxy<readonly NodeId[]>([], {
    get(target, key) {
      if (key === "length") return length;
      if (key === "includes") return (id: NodeId) => id !== ids[place] && isAmong(ids, id);
      const index = indexOf(key);
      return index < 0 ? Reflect.get(target, key) : ids[index < place ? index : index + 1];
    },
    has: (target, key) => indexOf(key) >= 0 || Reflect.has(target, key),
  });
}

/** By halves: the ids ascend. */
function isAmong(ids: readonly NodeId[], id: NodeId): boolean {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ids[middle] as NodeId) < id) from = middle + 1;
    else to = middle;
  }
  return ids[from] === id;
}
