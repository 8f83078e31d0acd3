/** The window of an axis and of nodes that is laid out, and where a moment and a node stand in it. */
import type { NodeId } from "../../../src/core/protocol.ts";

/** It reaches this far beyond what is seen of it, in widths of that. */
export const AHEAD = 0.5;

export interface Frame {
  /** The place on the axis at x = 0; a moment where the axis is time itself. */
  readonly from: number;
  /** The place at x = `width`. */
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
  /** Where a moment stands on an axis that is not time. It may not descend. */
  readonly placeOf?: (at: number) => number;
}

export function xOf(at: number, { from, to, width, placeOf }: Frame): number {
  const place = placeOf === undefined ? at : placeOf(at);
  return ((place - from) / (to - from)) * width;
}

export function yOf(node: NodeId, { nodes, rowHeight, top }: Frame): number | null {
  const row = nodes.indexOf(node);
  return row === -1 ? null : top + (row + 0.5) * rowHeight;
}
