/** Plane geometry for placing text: rotated boxes, and whether they intersect each other or a line. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A rectangle with its center at `x` and `y`, rotated clockwise by `degrees`, as in SVG. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
  readonly degrees: number;
}

export interface Segment {
  readonly a: Point;
  readonly b: Point;
}

/** Returns a box that is not rotated. */
export function uprightBox(left: number, top: number, width: number, height: number): Box {
  return { x: left + width / 2, y: top + height / 2, width, height, degrees: 0 };
}

export function cornersOf({ x, y, width, height, degrees }: Box): Point[] {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ].map(([i = 0, j = 0]) => {
    const [dx, dy] = [(i * width) / 2, (j * height) / 2];
    return { x: x + dx * cos - dy * sin, y: y + dx * sin + dy * cos };
  });
}

/**
 * Whether two boxes intersect. Two convex polygons are disjoint if and only if an edge of one of them separates them.
 */
export function boxesMeet(a: Box, b: Box): boolean {
  const reach = reachOf(a) + reachOf(b);
  const areFar = Math.abs(a.x - b.x) > reach || Math.abs(a.y - b.y) > reach;
  return !areFar && !isApart(cornersOf(a), cornersOf(b));
}

export function boxMeetsSegment(box: Box, { a, b }: Segment): boolean {
  const reach = reachOf(box);
  const isFar =
    Math.max(a.x, b.x) < box.x - reach ||
    Math.min(a.x, b.x) > box.x + reach ||
    Math.max(a.y, b.y) < box.y - reach ||
    Math.min(a.y, b.y) > box.y + reach;
  return !isFar && !isApart(cornersOf(box), [a, b]);
}

/** Returns the distance from a box's center to its corners. */
const reachOf = ({ width, height }: Box): number => Math.hypot(width, height) / 2;

function isApart(one: readonly Point[], other: readonly Point[]): boolean {
  return [...axesOf(one), ...axesOf(other)].some((axis) => {
    const [lowA, highA] = shadow(one, axis);
    const [lowB, highB] = shadow(other, axis);
    return highA <= lowB || highB <= lowA;
  });
}

/** Returns the normals of a box's edges. */
function axesOf(corners: readonly Point[]): Point[] {
  return corners.map((corner, index) => {
    const next = corners[(index + 1) % corners.length] as Point;
    return { x: next.y - corner.y, y: corner.x - next.x };
  });
}

function shadow(points: readonly Point[], axis: Point): [number, number] {
  const places = points.map(({ x, y }) => x * axis.x + y * axis.y);
  return [Math.min(...places), Math.max(...places)];
}

/** Returns the width of a text in pixels, given the font size in pixels. */
export function textWidth(text: string, fontPx: number): number {
  return [...text].reduce((sum, letter) => sum + emOf(letter), 0) * fontPx;
}

function emOf(letter: string): number {
  if (NARROW.has(letter)) return 0.36;
  if (WIDE.has(letter)) return 0.98;
  if (letter > "\u2e80") return 1.05;
  return letter >= "A" && letter <= "Z" ? 0.72 : 0.63;
}

const NARROW = new Set("iljtfr.,:;'|()[]! ");
const WIDE = new Set("mwMW@%…–—");
