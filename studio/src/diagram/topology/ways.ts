/** Computes paths between nodes: along the ring, or slightly bent so that each direction has its own line. */
import { angleAt, on, type Place, type Placing } from "./places.ts";

export interface Way {
  /** SVG path data. */
  readonly path: string;
  readonly middle: Place;
}

const [BEND, MOST_BEND] = [0.12, 22];
/** How far inside a ring of nodes its lines are drawn. */
const WITHIN_PX = 6;

/**
 * Returns the path from the edge of one node to the edge of another. Null if either node has no position or if both are
 * the same node.
 */
export function wayBetween({ places, radius }: Placing, from: number, to: number, bend = 1, gap = 2): Way | null {
  const [a, b] = [places.get(from), places.get(to)];
  if (a === undefined || b === undefined || from === to) return null;
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  if (length < 2 * radius) return null;
  const [dx, dy] = [(b.x - a.x) / length, (b.y - a.y) / length];
  const off = Math.min(MOST_BEND, length * BEND) * bend;
  const control = { x: (a.x + b.x) / 2 + dy * 2 * off, y: (a.y + b.y) / 2 - dx * 2 * off };
  const start = towards(a, control, radius + gap);
  const end = towards(b, control, radius + gap + 2);
  return {
    path: `M${words(start)}Q${words(control)} ${words(end)}`,
    middle: { x: (start.x + 2 * control.x + end.x) / 4, y: (start.y + 2 * control.y + end.y) / 4 },
  };
}

/** Returns the clockwise path inside the ring, which passes the nodes in between. */
export function wayAlongRing({ ground, places, radius }: Placing, from: number, to: number): Way | null {
  const order = [...places.keys()];
  const [a, b] = [order.indexOf(from), order.indexOf(to)];
  if (ground?.kind !== "ellipse" || a < 0 || b < 0 || a === b) return null;
  const count = order.length;
  const turn = ((b - a + count) % count) / count;
  const within = radius + WITHIN_PX;
  const [rx, ry] = [Math.max(8, ground.rx - within), Math.max(8, ground.ry - within)];
  const inner = { ...ground, rx, ry };
  const gap = 0.2 / count;
  const [start, end] = [a / count + gap, a / count + turn - gap];
  const [first, last] = [on(inner, start), on(inner, end)];
  const isLong = (angleAt(end, rx / ry) - angleAt(start, rx / ry) + 2 * Math.PI) % (2 * Math.PI) > Math.PI;
  return {
    path: `M${words(first)}A${fixed(rx)} ${fixed(ry)} 0 ${isLong ? 1 : 0} 1 ${words(last)}`,
    middle: on(inner, (start + end) / 2),
  };
}

/** Returns the shortest line between two points on a torus, in one or two pieces. */
export function waysOnTorus({ ground, places }: Placing, from: number, to: number): readonly string[] {
  const [a, b] = [places.get(from), places.get(to)];
  if (a === undefined || b === undefined || ground?.kind !== "box") return [];
  const { width, height } = ground;
  const nearest = (way: number, size: number): number =>
    way > size / 2 ? way - size : way < -size / 2 ? way + size : way;
  const [dx, dy] = [nearest(b.x - a.x, width), nearest(b.y - a.y, height)];
  const whole = `M${words(a)}L${words({ x: a.x + dx, y: a.y + dy })}`;
  const isInside = Math.abs(a.x + dx - b.x) < 1 && Math.abs(a.y + dy - b.y) < 1;
  return isInside ? [whole] : [whole, `M${words({ x: b.x - dx, y: b.y - dy })}L${words(b)}`];
}

export function towards(from: Place, to: Place, by: number): Place {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + ((to.x - from.x) / length) * by, y: from.y + ((to.y - from.y) / length) * by };
}

const fixed = (value: number): number => Number(value.toFixed(1));
const words = ({ x, y }: Place): string => `${fixed(x)} ${fixed(y)}`;

/**
 * Returns the outline around a set of nodes, such as a voting set: their convex hull with rounded corners, as SVG path
 * data.
 * @param room the distance between the nodes' centers and the outline
 */
export function hullPath(points: readonly Place[], room: number): string {
  const corners = convex(points);
  const [only] = corners;
  if (only === undefined) return "";
  if (corners.length === 1)
    return `M${at(only.x - room, only.y)}A${room} ${room} 0 1 1 ${at(only.x + room, only.y)}A${room} ${room} 0 1 1 ${at(only.x - room, only.y)}Z`;
  const sides = corners.map((from, place) => {
    const to = corners[(place + 1) % corners.length] as Place;
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    // Move outward. This assumes that the corners are in clockwise order on the screen.
    const [dx, dy] = [((to.y - from.y) / length) * room, (-(to.x - from.x) / length) * room];
    return { from: at(from.x + dx, from.y + dy), to: at(to.x + dx, to.y + dy) };
  });
  const [first] = sides;
  const arcs = sides.map(({ to }, place) => {
    const next = sides[(place + 1) % sides.length];
    return `L${to}A${room} ${room} 0 0 1 ${next?.from}`;
  });
  return `M${first?.from}${arcs.join("")}Z`;
}

const at = (x: number, y: number): string => `${Number(x.toFixed(1))} ${Number(y.toFixed(1))}`;

/**
 * Returns the convex hull, computed with Andrew's monotone chain algorithm. The points are clockwise on a screen, where
 * y points down.
 */
function convex(points: readonly Place[]): Place[] {
  const sorted = points
    .toSorted((a, b) => a.x - b.x || a.y - b.y)
    .filter((point, place, all) => place === 0 || point.x !== all[place - 1]?.x || point.y !== all[place - 1]?.y);
  if (sorted.length < 3) return sorted;
  const half = (all: readonly Place[]): Place[] => {
    const chain: Place[] = [];
    for (const point of all) {
      while (chain.length > 1 && turn(chain.at(-2) as Place, chain.at(-1) as Place, point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.toReversed())];
}

const turn = (a: Place, b: Place, c: Place): number => (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
