/**
 * Computes the position of each node of a topology in pixels: on an ellipse, around a center, in a tree, or at the
 * node's own coordinates.
 */
import type { ArrangedNode, Arrangement } from "../../../../src/protocols/index.ts";

export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface Placing {
  readonly places: ReadonlyMap<number, Place>;
  /** The radius of a node's circle. */
  readonly radius: number;
  /** The shape drawn below the nodes. Null if there is none. */
  readonly ground: Ground | null;
}

export type Ground =
  | { readonly kind: "ellipse"; readonly middle: Place; readonly rx: number; readonly ry: number }
  | { readonly kind: "box"; readonly x: number; readonly y: number; readonly width: number; readonly height: number };

type Ellipse = Extract<Ground, { kind: "ellipse" }>;

/** The space reserved for a node's circle and caption. */
const EDGE_PX = 33;
/** The maximum ratio of width to height for an ellipse or a plane. */
const MOST_STRETCH = 2.3;
const [LEAST_RADIUS, MOST_RADIUS] = [6, 15];
/** The maximum radius of a node on a plane. Nodes there are at their own coordinates and may be close together. */
const MOST_ON_PLANE = 11;
/** The minimum distance between the centers of two nodes on the identifier circle, as a multiple of the radius. */
const APART = 2.3;

export interface Sheet {
  readonly width: number;
  readonly height: number;
  /** The space to reserve on the left and right for text. */
  readonly beside?: number;
  /** Additional space to reserve on all sides. */
  readonly around?: number;
  readonly largest?: number;
}

export function placed({ topology, nodes }: Arrangement, sheet: Sheet): Placing {
  const { width, height, beside = 0, around = 0, largest = MOST_RADIUS } = sheet;
  const middle = { x: width / 2, y: height / 2 };
  const edge = EDGE_PX + largest - MOST_RADIUS + around;
  const ry = Math.max(10, height / 2 - edge);
  const rx = Math.max(10, Math.min(width / 2 - edge - beside, ry * MOST_STRETCH));
  const ellipse: Ellipse = { kind: "ellipse", middle, rx, ry };
  const radius = Math.max(LEAST_RADIUS, Math.min(largest, (roundOf(ellipse) / Math.max(1, nodes.length)) * 0.36));
  const evenly = (ids: readonly number[]) => new Map(ids.map((id, place) => [id, on(ellipse, place / ids.length)]));
  const ids = nodes.map(({ node }) => node);
  switch (topology) {
    case "star": {
      const centre = centreOf(nodes);
      const around = evenly(ids.filter((id) => id !== centre));
      const places = centre === null ? around : new Map([[centre, middle], ...around]);
      return { places, radius, ground: null };
    }
    case "tree": {
      const places = treePlaces(nodes, { middle, rx, ry });
      return { places: places ?? evenly(ids), radius, ground: null };
    }
    case "identifier circle":
      return { places: onCircle(nodes, ellipse, radius) ?? evenly(ids), radius, ground: ellipse };
    case "plane":
      return onPlane(nodes, { middle, rx, ry }, radius) ?? { places: evenly(ids), radius, ground: ellipse };
    default:
      return { places: evenly(ids), radius, ground: ellipse };
  }
}

/**
 * Returns the point at a fraction of the perimeter, going clockwise from the top. Equal fractions correspond to equal
 * lengths, even on a flat ellipse.
 */
export function on(ellipse: Ellipse, share: number, scale = 1): Place {
  const { middle, rx, ry } = ellipse;
  const angle = angleAt(share, rx / ry);
  return { x: middle.x + rx * scale * Math.cos(angle), y: middle.y + ry * scale * Math.sin(angle) };
}

const PIECES = 360;
const lengths = new Map<string, readonly number[]>();

/**
 * Returns the angle at a fraction of the perimeter, computed numerically.
 * @param stretch the ratio of the ellipse's width to its height
 */
export function angleAt(share: number, stretch: number): number {
  const along = lengthsOf(stretch);
  const goal = (share - Math.floor(share)) * (along[PIECES] ?? 1);
  let [low, high] = [0, PIECES];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if ((along[middle] ?? 0) <= goal) low = middle;
    else high = middle;
  }
  const [from, to] = [along[low] ?? 0, along[high] ?? 1];
  return ((low + (to > from ? (goal - from) / (to - from) : 0)) / PIECES) * 2 * Math.PI - Math.PI / 2;
}

function lengthsOf(stretch: number): readonly number[] {
  const key = stretch.toFixed(2);
  const known = lengths.get(key);
  if (known !== undefined) return known;
  const made = [0];
  const point = (piece: number) => {
    const angle = (piece / PIECES) * 2 * Math.PI - Math.PI / 2;
    return { x: Number(key) * Math.cos(angle), y: Math.sin(angle) };
  };
  for (let piece = 1; piece <= PIECES; piece++) {
    const [a, b] = [point(piece - 1), point(piece)];
    made.push((made[piece - 1] ?? 0) + Math.hypot(b.x - a.x, b.y - a.y));
  }
  lengths.set(key, made);
  return made;
}

/** Returns the perimeter, using Ramanujan's approximation. */
function roundOf({ rx, ry }: Ellipse): number {
  return Math.PI * (3 * (rx + ry) - Math.sqrt((3 * rx + ry) * (rx + 3 * ry)));
}

/** Returns the node at the center of a star: the one that is referenced most often, or the first one. */
export function centreOf(nodes: readonly ArrangedNode[]): number | null {
  const votes = new Map<number, number>();
  for (const { position } of nodes)
    if (position.towards !== undefined) votes.set(position.towards, (votes.get(position.towards) ?? 0) + 1);
  const known = [...votes].filter(([id]) => nodes.some(({ node }) => node === id));
  const [most] = known.toSorted(([a, x], [b, y]) => y - x || a - b);
  return most?.[0] ?? nodes[0]?.node ?? null;
}

interface Box {
  readonly middle: Place;
  readonly rx: number;
  readonly ry: number;
}

/** Returns the links between neighbors, each of them once. */
export function linksOf(nodes: readonly ArrangedNode[]): readonly (readonly [number, number])[] {
  const links = new Map<string, readonly [number, number]>();
  for (const { node, position } of nodes) {
    const { towards } = position;
    if (towards === undefined || towards === node) continue;
    const link = [Math.min(node, towards), Math.max(node, towards)] as const;
    links.set(link.join(" "), link);
  }
  return [...links.values()];
}

/**
 * Returns the positions in a tree, or null if no tree is known. The lowest node is at the top, so that nothing moves
 * when the privilege does.
 */
function treePlaces(nodes: readonly ArrangedNode[], { middle, rx, ry }: Box): Map<number, Place> | null {
  const links = linksOf(nodes);
  const [root] = nodes.map(({ node }) => node).toSorted((a, b) => a - b);
  if (root === undefined) return null;
  const neighbours = (of: number) =>
    links.flatMap(([a, b]) => (a === of ? [b] : b === of ? [a] : [])).toSorted((a, b) => a - b);
  const levels: number[][] = [[root]];
  const seen = new Set([root]);
  const childrenOf = new Map<number, number[]>();
  for (const level of levels) {
    const next = level.flatMap((parent) => {
      const own = neighbours(parent).filter((each) => !seen.has(each));
      for (const each of own) seen.add(each);
      childrenOf.set(parent, own);
      return own;
    });
    if (next.length > 0) levels.push(next);
  }
  if (seen.size < nodes.length) return null;
  /** Positions along a level: leaves are side by side, and every other node is above the middle of its children. */
  const along = new Map<number, number>();
  let leaves = 0;
  const settle = (node: number): number => {
    const own = (childrenOf.get(node) ?? []).map(settle);
    const [first = leaves, last = first] = [own[0], own.at(-1)];
    const at = own.length === 0 ? leaves++ : (first + last) / 2;
    along.set(node, at);
    return at;
  };
  settle(root);
  const places = new Map<number, Place>();
  const share = (at: number, of: number): number => (of <= 1 ? 0 : (at / (of - 1)) * 2 - 1);
  // Lay out a tree from left to right if it is deeper than it is wide.
  const isDeep = levels.length > 4 || (levels.length > 2 && leaves === 1);
  for (const [depth, level] of levels.entries())
    for (const node of level) {
      const [down, across] = [share(depth, levels.length), share(along.get(node) ?? 0, leaves)];
      places.set(node, {
        x: middle.x + rx * (isDeep ? down : across),
        y: middle.y + ry * (isDeep ? across : down),
      });
    }
  return places;
}

/**
 * Returns the positions by identifier, or null if the identifiers are unknown. Nodes that would overlap are moved
 * slightly apart.
 */
function onCircle(nodes: readonly ArrangedNode[], ellipse: Ellipse, radius: number): Map<number, Place> | null {
  const known = nodes.flatMap(({ node, position: { at } }) => (at?.[0] === undefined ? [] : [{ node, share: at[0] }]));
  if (known.length < nodes.length) return null;
  const sorted = known.toSorted((a, b) => a.share - b.share || a.node - b.node);
  const shares = apart(
    sorted.map(({ share }) => share),
    Math.min((APART * radius) / roundOf(ellipse), 0.9 / Math.max(1, sorted.length)),
  );
  return new Map(sorted.map(({ node }, place) => [node, on(ellipse, shares[place] ?? 0)]));
}

const ROUNDS = 60;

/** Moves fractions of a circle, given in ascending order, until neighbors are at least `least` apart. */
export function apart(shares: readonly number[], least: number): number[] {
  const moved = [...shares];
  if (moved.length < 2) return moved;
  for (let round = 0; round < ROUNDS; round++)
    for (let place = 0; place < moved.length; place++) {
      const next = (place + 1) % moved.length;
      const gap = (moved[next] as number) - (moved[place] as number) + (next === 0 ? 1 : 0);
      const lack = (least - gap) / 2;
      if (lack <= 0) continue;
      moved[place] = (moved[place] as number) - lack;
      moved[next] = (moved[next] as number) + lack;
    }
  return moved;
}

function onPlane(nodes: readonly ArrangedNode[], { middle, rx, ry }: Box, radius: number): Placing | null {
  const known = nodes.flatMap(({ node, position: { at } }) => (at?.length === 2 ? [[node, at] as const] : []));
  if (known.length < nodes.length) return null;
  // Center nodes that lie on a line, because the origin of a torus has no meaning.
  const isFlat = new Set(known.map(([, at]) => at[1])).size === 1;
  const box = { kind: "box", x: middle.x - rx, y: middle.y - ry, width: 2 * rx, height: 2 * ry } as const;
  const places = known.map(
    ([node, [x = 0, y = 0]]) =>
      [node, { x: box.x + x * box.width, y: box.y + (isFlat ? 0.5 : y) * box.height }] as const,
  );
  return { places: new Map(places), radius: Math.min(radius, MOST_ON_PLANE), ground: box };
}
