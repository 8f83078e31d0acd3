/**
 * Gossip about tokens at other nodes. A node knows the nearest few tokens, and its knowledge is only as recent as the
 * gossip about them.
 */
import { hash } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { isLater, MAX_KNOWN, type Point, type Sighting, type Space, type State } from "./vocabulary.ts";

/** Returns the tokens that a node gossips about: its own token and the tokens that it knows. */
export function told(state: State, self: NodeId, isSettled: boolean): Sighting[] {
  const { token, known } = state;
  return token === null ? known : [{ ...token, holder: self, age: 0, isSettled }, ...known];
}

/** Adds newer or nearer sightings to the node's knowledge. Sightings are immutable, because messages share them. */
export function learn(space: Space, state: State, self: NodeId, sightings: readonly Sighting[]): void {
  const known = [...state.known];
  let isMoved = false;
  for (const sighting of sightings) {
    if (sighting.holder === self) continue; // The node knows more about its own token.
    const at = indexOf(known, sighting.id);
    const before = known[at];
    if (before !== undefined && !isFresher(sighting, before)) continue;
    isMoved ||= before?.holder !== sighting.holder;
    known[before === undefined ? known.length : at] = sighting;
  }
  // Updates for tokens that have not moved preserve the order.
  state.known = isMoved ? nearest(space, space.pointOf(self), known) : known;
}

/** Returns a token's index. Uses a loop, because large simulations spend most of their time here. */
function indexOf(known: readonly Sighting[], id: number): number {
  for (let i = 0; i < known.length; i++) if (known[i]?.id === id) return i;
  return -1;
}

function isFresher(a: Sighting, b: Sighting): boolean {
  const isSame = a.epoch === b.epoch && a.moves === b.moves && a.holder === b.holder;
  return isSame ? a.age < b.age : isLater(a, b);
}

function nearest(space: Space, own: Point, sightings: readonly Sighting[]): Sighting[] {
  return sightings
    .map((sighting) => ({ sighting, distance: space.distance(own, space.pointOf(sighting.holder)) }))
    .sort((a, b) => a.distance - b.distance || a.sighting.id - b.sighting.id)
    .slice(0, MAX_KNOWN)
    .map(({ sighting }) => sighting);
}

/** Ages all sightings by one round, and forgets any that have gone unconfirmed for too long. */
export function age(state: State, mostRounds: number): void {
  state.known = state.known
    .filter((sighting) => sighting.age < mostRounds)
    .map((sighting) => ({ ...sighting, age: sighting.age + 1 }));
}

// A node's neighbors are its nearest nodes and, at each larger scale of distance, one more, up to the expected distance
// to the next tokens. With such links, information and tokens can cross the space in a few steps: Kleinberg, "The
// Small-World Phenomenon", STOC 2000.

/** Looks up nodes' neighbors and initial tokens. */
export interface Neighbourhood {
  neighbours(node: NodeId): NodeId[];
  /** Returns the token that a node holds initially. */
  firstToken(node: NodeId): number | null;
  readonly tokens: number;
  /** The distance between tokens when they are spread evenly. */
  readonly spacing: number;
}

const NEAREST = 4;

/** Finds all nodes' neighbors. @param nodes all nodes, in ascending order @param share the number of tokens per node */
export function neighbourhood(space: Space, nodes: readonly NodeId[], share: number): Neighbourhood {
  const tokens = Math.min(nodes.length, Math.max(1, Math.round(share * nodes.length)));
  const spacing = (1 / tokens) ** (1 / space.dimensions);
  const rank = (node: NodeId): number => hash([node, "token"]);
  const ranks = new Map(nodes.map((node) => [node, rank(node)]));
  const holders = nodes.toSorted((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0) || a - b).slice(0, tokens);
  const first = new Map(holders.map((node, token) => [node, token]));
  /**
   * The volume of the innermost scale, a cube with `2 * NEAREST` nodes on average. Each larger scale has twice the
   * volume of the previous one.
   */
  const innermost = (2 * NEAREST) / nodes.length;
  const scales = Math.max(0, Math.ceil(Math.log2(4 / tokens / innermost)));
  /** The distances at which the scales begin, followed by the distance at which the last one ends. */
  const bounds = Array.from({ length: scales + 1 }, (_, i) => (innermost * 2 ** i) ** (1 / space.dimensions));
  const farthest = bounds.at(-1) as number;
  const near = cells(space, nodes, farthest);

  function neighbours(node: NodeId): NodeId[] {
    const own = space.pointOf(node);
    const nearest: { other: NodeId; distance: number }[] = [];
    const drawn = new Array<NodeId | undefined>(scales).fill(undefined);
    const lots = new Float64Array(scales);
    for (const cell of near(own)) {
      for (const { node: other, point } of cell) {
        const distance = space.distance(own, point);
        const isNear = nearest.length < NEAREST || distance < (nearest[NEAREST - 1] as { distance: number }).distance;
        if ((distance >= farthest && !isNear) || other === node) continue;
        if (isNear) {
          nearest.push({ other, distance });
          nearest.sort((a, b) => a.distance - b.distance || a.other - b.other);
          nearest.length = Math.min(nearest.length, NEAREST);
        }
        const scale = scaleOf(distance);
        if (scale < 0 || scale >= scales) continue;
        const lot = mixed(node, other);
        if (drawn[scale] !== undefined && lot >= (lots[scale] as number)) continue;
        drawn[scale] = other;
        lots[scale] = lot;
      }
    }
    const far = drawn.filter((other) => other !== undefined);
    return [...new Set([...nearest.map(({ other }) => other), ...far])];
  }

  function scaleOf(distance: number): number {
    let scale = scales;
    while (scale >= 0 && distance < (bounds[scale] as number)) scale -= 1;
    return scale;
  }

  return { neighbours, firstToken: (node) => first.get(node) ?? null, tokens, spacing };
}

interface Located {
  readonly node: NodeId;
  readonly point: Point;
}

/**
 * Sorts nodes into cubes with sides of at least `side`. The returned function finds all nodes within that distance of a
 * point, plus some others.
 */
function cells(
  space: Space,
  nodes: readonly NodeId[],
  side: number,
): (point: Point) => readonly (readonly Located[])[] {
  const located = nodes.map((node) => ({ node, point: space.pointOf(node) }));
  const perAxis = Math.floor(1 / side);
  if (perAxis <= 3) return () => [located]; // A cube and its neighbors would cover the whole space.
  const sorted = new Map<number, Located[]>();
  const indexOf = (point: readonly number[], by: readonly number[]): number =>
    point.reduce((sum, x, axis) => {
      const cell = Math.floor(x * perAxis) + (by[axis] as number) + perAxis;
      return sum * perAxis + (cell % perAxis);
    }, 0);
  const here = new Array<number>(space.dimensions).fill(0);
  for (const each of located) {
    const index = indexOf(each.point, here);
    const cell = sorted.get(index);
    if (cell === undefined) sorted.set(index, [each]);
    else cell.push(each);
  }
  const around = here.reduce<number[][]>((ways) => ways.flatMap((way) => [-1, 0, 1].map((by) => [...way, by])), [[]]);
  return (point) => around.map((by) => sorted.get(indexOf(point, by)) ?? []);
}

/** Returns a deterministic pseudorandom number. */
function mixed(a: number, b: number): number {
  let bits = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  return (bits ^ (bits >>> 13)) >>> 0;
}
