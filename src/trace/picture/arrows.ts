/** The messages of a picture as lines between life lines. */
import type { NodeId } from "../../core/protocol.ts";
import type { Flight } from "../flights.ts";
import type { Point, Segment } from "./boxes.ts";
import { LEAD_PX, type Timeline } from "./timeline.ts";

/** `flying`: no end is known. `arriving`: no beginning is known. */
export type Fate = "received" | "lost" | "flying" | "arriving";

export interface Arrow {
  readonly flight: Flight;
  readonly fate: Fate;
  /** From the sender on; two points, or four for a message to oneself. */
  readonly points: readonly Point[];
}

/** How far on its way a message ends that never arrives. */
const LOST_AT_SENDER = 0.36;
const LOST_AT_RECEIVER = 0.8;
const UNKNOWN = 0.42;
/** How far an arrow reaches whose other end is not known. */
export const STUB_PX = 44;
/** Arrows end this far from the middle of the life line. */
const CLEARANCE_PX = 2.5;
/** How far apart messages of one step to the same node begin. */
const TWIN_PX = 5;
const LOOP_PX = 20;

export function arrowsOf({ flights, xOfEntry }: Timeline, yOf: (node: NodeId) => number): Arrow[] {
  const twins = new Map<string, number>();
  return flights.map((flight) => {
    const { from, to, sent, ended, lost } = flight;
    const key = `${sent === null ? "" : xOfEntry[sent]} ${from} ${to}`;
    const twin = twins.get(key) ?? 0;
    if (sent !== null) twins.set(key, twin + 1);
    const x1 = sent === null ? null : (xOfEntry[sent] ?? 0) + twin * TWIN_PX;
    const x2 = ended === null ? null : Math.max(xOfEntry[ended] ?? 0, (x1 ?? 0) + 1);
    const fate: Fate = lost !== null ? "lost" : x1 === null ? "arriving" : x2 === null ? "flying" : "received";
    return { flight, fate, points: pointsOf(fate, x1, x2, yOf(from), yOf(to)) };
  });
}

function pointsOf(fate: Fate, x1: number | null, x2: number | null, y1: number, y2: number): Point[] {
  const down = Math.sign(y2 - y1);
  const end = { x: x2 ?? 0, y: y2 - down * CLEARANCE_PX };
  if (fate === "arriving") return [{ x: Math.max(-LEAD_PX, end.x - STUB_PX), y: y2 - (y2 - y1) * UNKNOWN }, end];
  const start = { x: x1 ?? 0, y: y1 + down * CLEARANCE_PX };
  if (y1 === y2) return loop(start, x2 ?? start.x + STUB_PX, fate);
  if (fate === "flying") return [start, { x: start.x + STUB_PX, y: y1 + (y2 - y1) * UNKNOWN }];
  if (fate === "received") return [start, end];
  // Lost at once, it broke on a cut link; lost later, its receiver was not there.
  const isNear = end.x - start.x < STUB_PX;
  const share = isNear ? LOST_AT_SENDER : LOST_AT_RECEIVER;
  return [
    start,
    { x: isNear ? start.x + STUB_PX * 0.8 : start.x + (end.x - start.x) * share, y: y1 + (y2 - y1) * share },
  ];
}

function loop(start: Point, x2: number, fate: Fate): Point[] {
  const slope = Math.min(10, (x2 - start.x) / 3);
  const top = start.y - LOOP_PX;
  const round = [start, { x: start.x + slope, y: top }, { x: x2 - slope, y: top }];
  return fate === "received" ? [...round, { x: x2, y: start.y - CLEARANCE_PX }] : round;
}

export function segmentsOf({ points }: Pick<Arrow, "points">): Segment[] {
  return points.slice(1).map((b, index) => ({ a: points[index] as Point, b }));
}

/** What of a line lies between two x; null if nothing does. */
export function clipped(points: readonly Point[], left: number, right: number): Point[] | null {
  const pieces = segmentsOf({ points }).flatMap(({ a, b }) => {
    const [low, high] = [Math.max(left, Math.min(a.x, b.x)), Math.min(right, Math.max(a.x, b.x))];
    if (low > high) return [];
    const at = (x: number): Point => ({ x, y: a.x === b.x ? a.y : a.y + ((b.y - a.y) * (x - a.x)) / (b.x - a.x) });
    return a.x <= b.x ? [low === a.x ? a : at(low), high === b.x ? b : at(high)] : [at(high), at(low)];
  });
  const distinct = pieces.filter((point, index) => {
    const before = pieces[index - 1];
    return before === undefined || before.x !== point.x || before.y !== point.y;
  });
  return distinct.length < 2 ? null : distinct;
}
