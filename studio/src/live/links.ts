/** The links between the nodes of a topology, as lines from one circle to the other. */
import type { NetworkPicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Place, Placing } from "../diagram/topology/places.ts";
import { towards } from "../diagram/topology/ways.ts";

/** `both`: nothing passes. `oneWay`: messages pass in one direction still. */
export type Cut = "none" | "oneWay" | "both";

export interface Link {
  readonly key: string;
  readonly nodes: readonly [NodeId, NodeId];
  readonly cut: Cut;
  readonly start: Place;
  readonly end: Place;
  /** Both ends of the gap in the middle of one that is cut. */
  readonly gap: readonly [Place, Place];
  readonly degrees: number;
}

/** Between more nodes whole links are not drawn: they would be one grey patch. */
const MOST_NODES = 16;
const [BESIDE_PX, GAP_PX] = [2, 9];

export function linksBetween({ places, radius }: Placing, { cuts }: NetworkPicture): Link[] {
  const isCut = (from: NodeId, to: NodeId) => cuts.some(([a, b]) => a === from && b === to);
  const all = [...places];
  const isCrowded = all.length > MOST_NODES;
  return all.flatMap(([a, from], index) =>
    all.slice(index + 1).flatMap(([b, to]): Link[] => {
      const [there, back] = [isCut(a, b), isCut(b, a)];
      const cut: Cut = there && back ? "both" : there || back ? "oneWay" : "none";
      if (cut === "none" && isCrowded) return [];
      const [start, end] = [towards(from, to, radius + BESIDE_PX), towards(to, from, radius + BESIDE_PX)];
      const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
      const gap = [towards(middle, start, GAP_PX / 2), towards(middle, end, GAP_PX / 2)] as const;
      const degrees = (Math.atan2(end.y - start.y, end.x - start.x) * 180) / Math.PI;
      return [{ key: `${Math.min(a, b)}–${Math.max(a, b)}`, nodes: [a, b], cut, start, end, gap, degrees }];
    }),
  );
}
