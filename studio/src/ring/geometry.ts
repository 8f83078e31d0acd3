/** Where the nodes of the ring picture stand, and how the links between them run. Units of the picture's own view box. */
import type { ClusterPicture, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";

export const SIZE = { width: 400, height: 316 } as const;

const CENTRE = { x: SIZE.width / 2, y: SIZE.height / 2 + 2 };

export interface Place {
  readonly node: NodePicture;
  readonly x: number;
  readonly y: number;
  /** Where the caption stands, outside the ring. */
  readonly caption: { readonly x: number; readonly y: number; readonly anchor: "start" | "middle" | "end" };
}

export interface Line {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** `both`: nothing passes. `oneWay`: messages pass in one direction still. */
export type Cut = "none" | "oneWay" | "both";

export interface Link extends Line {
  readonly key: string;
  readonly nodes: readonly [NodeId, NodeId];
  readonly cut: Cut;
}

/** The last message of each link in either direction: they would be drawn in the same place. */
export function lastOfEachLink<M extends { readonly from: NodeId; readonly to: NodeId }>(messages: readonly M[]): M[] {
  const linkOf = ({ from, to }: M) => `${Math.min(from, to)}–${Math.max(from, to)}`;
  return [...new Map(messages.map((message) => [linkOf(message), message])).values()];
}

/** A node and the leader that it follows. */
export interface Allegiance extends Line {
  readonly key: string;
}

export function nodeRadius(count: number): number {
  if (count <= 6) return 27;
  return count <= 10 ? 22 : 16;
}

export function placesOf(nodes: readonly NodePicture[]): Place[] {
  const radius = nodeRadius(nodes.length);
  const orbit = SIZE.height / 2 - radius - 26;
  return nodes.map((node, index) => {
    const angle = (index / nodes.length) * 2 * Math.PI - Math.PI / 2;
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const away = orbit + radius + 7;
    const anchor = Math.abs(dx) < 0.2 ? "middle" : dx > 0 ? "start" : "end";
    return {
      node,
      x: CENTRE.x + orbit * dx,
      y: CENTRE.y + orbit * dy,
      caption: { x: CENTRE.x + away * dx, y: CENTRE.y + away * dy + captionDrop(dy), anchor },
    };
  });
}

/** What stands under a node. */
export function captionOf({ process, view, byzantine }: NodePicture): string {
  const state = process === "running" ? (view?.role ?? "running") : process;
  return byzantine === undefined ? state : `${state}, lies`;
}

/** Of a letter of a caption, on average. */
const LETTER = 7.4;

/** By how much the longest caption is wider than the picture, at one of its sides. */
export function overhangOf(places: readonly Place[]): number {
  const beyond = places.map(({ node, caption: { x, anchor } }) => {
    const wide = captionOf(node).length * LETTER;
    const right = anchor === "start" ? x + wide : anchor === "middle" ? x + wide / 2 : x;
    const left = anchor === "end" ? x - wide : anchor === "middle" ? x - wide / 2 : x;
    return Math.max(right - SIZE.width, -left);
  });
  return Math.ceil(Math.max(0, ...beyond));
}

/** Captions stand on their baseline: above the ring they need none of their height below it, underneath all of it. */
function captionDrop(dy: number): number {
  return 4 + 6 * dy;
}

export function linksOf(places: readonly Place[], { network }: ClusterPicture): Link[] {
  const isCut = (from: NodeId, to: NodeId) => network.cuts.some(([a, b]) => a === from && b === to);
  return places.flatMap((a, index) =>
    places.slice(index + 1).map((b) => {
      const [there, back] = [isCut(a.node.id, b.node.id), isCut(b.node.id, a.node.id)];
      const cut: Cut = there && back ? "both" : there || back ? "oneWay" : "none";
      const nodes = [a.node.id, b.node.id] as const;
      return { key: nodes.join("–"), nodes, cut, ...shortened(a, b, nodeRadius(places.length) + 2) };
    }),
  );
}

export function allegiancesOf(places: readonly Place[]): Allegiance[] {
  return places.flatMap((follower) => {
    const { process, view, id } = follower.node;
    const leader = places.find((place) => place.node.id === view?.leader);
    if (leader === undefined || leader.node.id === id || process !== "running") return [];
    return [{ key: `${id}→${leader.node.id}`, ...shortened(follower, leader, nodeRadius(places.length) + 4) }];
  });
}

/** The line from `a` to `b`, shorter by `by` at both ends. */
export function shortened(a: { x: number; y: number }, b: { x: number; y: number }, by: number): Line {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [dx, dy] = [((b.x - a.x) / length) * by, ((b.y - a.y) / length) * by];
  return { x1: a.x + dx, y1: a.y + dy, x2: b.x - dx, y2: b.y - dy };
}

/** Both ends of a gap in the middle of a line. */
export function gapOf({ x1, y1, x2, y2 }: Line, width: number): [{ x: number; y: number }, { x: number; y: number }] {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [((x2 - x1) / length) * (width / 2), ((y2 - y1) / length) * (width / 2)];
  const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
  return [
    { x: x - dx, y: y - dy },
    { x: x + dx, y: y + dy },
  ];
}

export function degreesOf({ x1, y1, x2, y2 }: Line): number {
  return (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
}
