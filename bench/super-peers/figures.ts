/** The four requirements on super-peers as figures: latency, even spread, share, load. Tanenbaum & van Steen §6.5.3. */
import type { NodeId } from "../../src/core/protocol.ts";
import type { Point, Space } from "../../src/protocols/overlay/super-peer-tokens/vocabulary.ts";

/** Which super-peer serves which nodes. */
export type Assignment = ReadonlyMap<NodeId, NodeId>;

/** Of one way to choose super-peers. */
export interface Figures {
  /** 1: how far a node is from its super-peer in the space, whose farthest points are √2 / 2 apart in two dimensions. */
  readonly distance: { readonly mean: number; readonly p95: number };
  /** 2: how much the territories differ in size, deviation by mean, on the overlay that the method works on. */
  readonly unevenness: number;
  /** 3: of all nodes. */
  readonly superPeers: number;
  readonly share: number;
  /** 4: how many nodes a super-peer serves, itself among them. */
  readonly load: { readonly mean: number; readonly most: number; readonly overLimit: number };
}

export function figures(space: Space, served: Assignment, territories: readonly number[], limit: number): Figures {
  const loads = new Map<NodeId, number>();
  const distances: number[] = [];
  for (const [node, superPeer] of served) {
    loads.set(superPeer, (loads.get(superPeer) ?? 0) + 1);
    distances.push(space.distance(space.pointOf(node), space.pointOf(superPeer)));
  }
  const all = [...loads.values()];
  distances.sort((a, b) => a - b);
  return {
    distance: { mean: mean(distances), p95: distances[Math.floor(0.95 * distances.length)] as number },
    unevenness: unevenness(territories),
    superPeers: territories.length,
    share: territories.length / served.size,
    load: {
      mean: served.size / territories.length,
      most: Math.max(...all),
      overLimit: all.filter((load) => load > limit).length / territories.length,
    },
  };
}

/** The mean of several placements. */
export function together(several: readonly Figures[]): Figures {
  const over = (of: (figures: Figures) => number): number => mean(several.map(of));
  return {
    distance: { mean: over(({ distance }) => distance.mean), p95: over(({ distance }) => distance.p95) },
    unevenness: over((each) => each.unevenness),
    superPeers: over(({ superPeers }) => superPeers),
    share: over(({ share }) => share),
    load: {
      mean: over(({ load }) => load.mean),
      most: over(({ load }) => load.most),
      overLimit: over(({ load }) => load.overLimit),
    },
  };
}

export const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

function unevenness(sizes: readonly number[]): number {
  const middle = mean(sizes);
  return Math.sqrt(mean(sizes.map((size) => (size - middle) ** 2))) / middle;
}

export function nearest(space: Space, point: Point, chosen: readonly NodeId[]): NodeId {
  let [best, least] = [chosen[0] as NodeId, Number.POSITIVE_INFINITY];
  for (const each of chosen) {
    const distance = space.distance(point, space.pointOf(each));
    if (distance < least) [best, least] = [each, distance];
  }
  return best;
}

/** How much of the plane is nearer to each of them than to any other, by points in rows and columns. */
export function cellsOf(space: Space, chosen: readonly NodeId[], perSide = 100): number[] {
  const counts = new Map<NodeId, number>(chosen.map((node) => [node, 0]));
  for (let i = 0; i < perSide ** 2; i++) {
    const point = [((i % perSide) + 0.5) / perSide, (Math.floor(i / perSide) + 0.5) / perSide];
    const owner = nearest(space, point, chosen);
    counts.set(owner, (counts.get(owner) as number) + 1);
  }
  return [...counts.values()];
}

/** How far it is from each place on the ring to the next. */
export function arcsOf(places: readonly number[], circle: number): number[] {
  const sorted = places.toSorted((a, b) => a - b);
  return sorted.map((place, i) => ((sorted[i + 1] ?? (sorted[0] as number) + circle) - place) % circle || circle);
}
