/**
 * Sets of nodes, represented as arrays in ascending order. They are plain data, and each set has exactly one
 * representation, so equal states compare as equal.
 */
import type { NodeId } from "../core/protocol.ts";

/** Adds a node, in place. */
export function include(set: NodeId[], node: NodeId): void {
  if (set.includes(node)) return;
  set.push(node);
  set.sort((a, b) => a - b);
}

/** Removes a node, in place. */
export function exclude(set: NodeId[], node: NodeId): void {
  const at = set.indexOf(node);
  if (at >= 0) set.splice(at, 1);
}
