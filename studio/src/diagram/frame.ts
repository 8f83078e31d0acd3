/** The part of the axis and the nodes that are laid out, and the coordinates of moments and nodes. */
import type { NodeId } from "../../../src/core/protocol.ts";

/** How far the frame extends beyond the visible part, as a multiple of the visible width. */
export const AHEAD = 0.5;

export interface Frame {
  /** The position on the axis at x = 0. It is a moment if the axis is time itself. */
  readonly from: number;
  /** The position on the axis at x = `width`. */
  readonly to: number;
  readonly width: number;
  /** The nodes, from top to bottom. */
  readonly nodes: readonly NodeId[];
  readonly rowHeight: number;
  /** The space above the first row. */
  readonly top: number;
  /** The moment that short distances on the axis are measured from, if any. */
  readonly origin: number | null;
  /** Whether the frame is fixed. If the frame moved, text at its left edge would soon be cut off. */
  readonly still: boolean;
  /** Maps a moment to a position on the axis, if the axis is not time. It must be monotonic. */
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
