/** Sets of nodes as ascending arrays: plain data with one form per set, so that equal states are equal. */
import type { NodeId } from "../core/protocol.ts";

export function include(set: NodeId[], node: NodeId): void {
  if (set.includes(node)) return;
  set.push(node);
  set.sort((a, b) => a - b);
}

export function exclude(set: NodeId[], node: NodeId): void {
  const at = set.indexOf(node);
  if (at >= 0) set.splice(at, 1);
}
