/** The window of time and nodes that is laid out, and where a moment and a node stand in it. */
import type { NodeId } from "../../../src/core/protocol.ts";

/** It reaches this far beyond what is seen of it, in widths of that. */
export const AHEAD = 0.5;

export interface Frame {
  /** The moment at x = 0. */
  readonly from: number;
  /** The moment at x = `width`. */
  readonly to: number;
  readonly width: number;
  /** From top to bottom. */
  readonly nodes: readonly NodeId[];
  readonly rowHeight: number;
  /** Room above the first row. */
  readonly top: number;
  /** What short distances on the axis are counted from, if anything. */
  readonly origin: number | null;
  /** Whether it stays: words at the left edge of a moving frame would soon be cut. */
  readonly still: boolean;
}

export function xOf(at: number, { from, to, width }: Frame): number {
  return ((at - from) / (to - from)) * width;
}

export function yOf(node: NodeId, { nodes, rowHeight, top }: Frame): number | null {
  const row = nodes.indexOf(node);
  return row === -1 ? null : top + (row + 0.5) * rowHeight;
}
