/** The part of the axis and the nodes that are laid out, with the coordinates of moments and nodes. */
import type { NodeId } from "../../../src/core/protocol.ts";

/** The frame extends this far beyond the visible part, as a multiple of its width. */
export const AHEAD = 0.5;

export interface Frame {
  /** The axis position at x = 0; a moment if the axis is time itself. */
  readonly from: number;
  /** The axis position at x = `width`. */
  readonly to: number;
  readonly width: number;
  /** From top to bottom. */
  readonly nodes: readonly NodeId[];
  readonly rowHeight: number;
  /** Space above the first row. */
  readonly top: number;
  /** The moment that short distances on the axis are counted from, if any. */
  readonly origin: number | null;
  /** Whether the frame is fixed. Text at the left edge of a moving frame would soon be cut off. */
  readonly still: boolean;
  /** Maps a moment to an axis position if the axis is not time. Must be monotonic. */
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
