/**
 * Logical clocks. K1: Lamport, "Time, Clocks, and the Ordering of Events", CACM 1978: e → f ⇒ C(e) < C(f).
 * K2: Fidge 1988, Mattern 1989: e → f ⇔ V(e) < V(f).
 */
import type { NodeId } from "./protocol.ts";

/** A Lamport time together with its process. The pairs `(T, p)` are totally ordered. */
export interface Stamp {
  /** The Lamport time. */
  readonly time: number;
  /** The node at which the event occurred. */
  readonly node: NodeId;
}

/** Returns the clock after receiving a message that carries `received`. For a local event, omit `received`. */
export const tick = (clock: number, received: number = clock): number => Math.max(clock, received) + 1;

/** Returns whether `a` comes before `b` in the total order. Ties are broken by node id. */
export const precedes = (a: Stamp, b: Stamp): boolean => a.time < b.time || (a.time === b.time && a.node < b.node);

/** The number of events per node. A missing node counts as 0. */
export type VectorClock = Readonly<Record<NodeId, number>>;

/** How two vector clocks are related. */
export type Ordering = "before" | "after" | "equal" | "concurrent";

/** Returns the clock after one more event at `node`. */
export function advance(clock: VectorClock, node: NodeId): VectorClock {
  return { ...clock, [node]: (clock[node] ?? 0) + 1 };
}

/** Returns the least upper bound of two clocks: the maximum of each entry. */
export function merge(a: VectorClock, b: VectorClock): VectorClock {
  const merged: Record<NodeId, number> = { ...a };
  for (const node of nodesOf(b)) merged[node] = Math.max(merged[node] ?? 0, b[node] ?? 0);
  return merged;
}

/** Compares two vector clocks. If neither is before the other, they are concurrent. */
export function compare(a: VectorClock, b: VectorClock): Ordering {
  const nodes = [...nodesOf(a), ...nodesOf(b)];
  const less = nodes.some((node) => (a[node] ?? 0) < (b[node] ?? 0));
  const more = nodes.some((node) => (a[node] ?? 0) > (b[node] ?? 0));
  if (less) return more ? "concurrent" : "before";
  return more ? "after" : "equal";
}

/** Returns whether the event with clock `a` happened before the event with clock `b`. */
export const happenedBefore = (a: VectorClock, b: VectorClock): boolean => compare(a, b) === "before";

const nodesOf = (clock: VectorClock): NodeId[] => Object.keys(clock).map(Number);
