/** The outline around some nodes, such as a voting set: their convex hull with round corners, as SVG path words. */
import type { Place } from "./places.ts";

/** @param room between the middles of the nodes and the outline */
export function hullPath(points: readonly Place[], room: number): string {
  const corners = convex(points);
  const [only] = corners;
  if (only === undefined) return "";
  if (corners.length === 1)
    return `M${at(only.x - room, only.y)}A${room} ${room} 0 1 1 ${at(only.x + room, only.y)}A${room} ${room} 0 1 1 ${at(only.x - room, only.y)}Z`;
  const sides = corners.map((from, place) => {
    const to = corners[(place + 1) % corners.length] as Place;
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    // Outwards, as the corners go round clockwise on the screen.
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

/** Andrew's monotone chain; clockwise on a screen, where y goes down. */
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
