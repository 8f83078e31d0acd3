/** Draws the messages of a picture as lines between life lines. */
import type { NodeId } from "../../core/protocol.ts";
import type { Flight } from "../steps.ts";
import { type Box, boxesMeet, type Point, type Segment, uprightBox } from "./boxes.ts";
import { LEAD_PX, type Timeline } from "./timeline.ts";

/**
 * Which ends of a message are known. `flying`: the receiving end is unknown. `arriving`: the sending end is unknown.
 */
export type Fate = "received" | "lost" | "flying" | "arriving";

/** A message as a line. */
export interface Arrow {
  readonly flight: Flight;
  readonly fate: Fate;
  /** The x coordinate of the step that sent the message. Null if it is unknown. */
  readonly stepX: number | null;
  /** The points, starting at the sender. There are two, or four for a message from a node to itself. */
  readonly points: readonly Point[];
}

/**
 * Where the arrow of a lost message may end, as fractions of the distance to the receiver. The first position that has
 * space for the cross is used.
 */
const LOST_AT_SENDER = [0.36, 0.46, 0.56, 0.28, 0.66];
const LOST_AT_RECEIVER = [0.8, 0.72, 0.64, 0.56, 0.48];
const UNKNOWN = 0.42;
/** The length of an arrow if the other end is unknown. */
export const STUB_PX = 44;
/** The distance between the end of an arrow and the center of the life line. */
const CLEARANCE_PX = 2.5;
/**
 * The distance between the starts of consecutive messages sent by one step, and the maximum between the first and the
 * last.
 */
const FAN_PX = 4;
const WIDEST_FAN_PX = 14;
const LOOP_PX = 20;

/** Returns the arrows for the messages. `boxes`: the boxes of texts and marks on the life lines. */
export function arrowsOf(
  { flights, xOfEntry }: Timeline,
  yOf: (node: NodeId) => number,
  boxes: readonly Box[],
): Arrow[] {
  const fan = fanOf(flights, xOfEntry, yOf);
  const crosses: Box[] = [];
  const isFree = (point: Point): boolean => {
    const cross = crossBox(point);
    return ![...boxes, ...crosses].some((box) => boxesMeet(box, cross));
  };
  return flights.map((flight, index) => {
    const { from, to, sent, ended, lost } = flight;
    const stepX = sent === null ? null : (xOfEntry[sent] ?? 0);
    const x1 = stepX === null ? null : stepX + (fan[index] ?? 0);
    const x2 = ended === null ? null : Math.max(xOfEntry[ended] ?? 0, (x1 ?? 0) + 1);
    const fate: Fate = lost !== null ? "lost" : x1 === null ? "arriving" : x2 === null ? "flying" : "received";
    const points = pointsOf(fate, x1, x2, yOf(from), yOf(to), isFree);
    if (fate === "lost") crosses.push(crossBox(points.at(-1) as Point));
    return { flight, fate, stepX, points };
  });
}

/**
 * Returns how far to the right of its step each message starts. The message that travels farthest is the steepest and
 * comes first, so that no arrows cross.
 */
function fanOf(
  flights: readonly Flight[],
  xOfEntry: readonly number[],
  yOf: (node: NodeId) => number,
): readonly number[] {
  const rise = ({ from, to }: Flight): number => yOf(to) - yOf(from);
  const fans = new Map<string, number[]>();
  for (const [index, flight] of flights.entries()) {
    if (flight.sent === null) continue;
    const key = `${flight.from} ${xOfEntry[flight.sent]} ${Math.sign(rise(flight))}`;
    fans.set(key, [...(fans.get(key) ?? []), index]);
  }
  const offsets = new Array<number>(flights.length).fill(0);
  for (const members of fans.values()) {
    const apart = Math.min(FAN_PX, WIDEST_FAN_PX / Math.max(1, members.length - 1));
    const height = (index: number): number => Math.abs(rise(flights[index] as Flight));
    for (const [rank, index] of members.toSorted((a, b) => height(b) - height(a)).entries())
      offsets[index] = rank * apart;
  }
  return offsets;
}

function pointsOf(
  fate: Fate,
  x1: number | null,
  x2: number | null,
  y1: number,
  y2: number,
  isFree: (point: Point) => boolean,
): Point[] {
  const down = Math.sign(y2 - y1);
  const end = { x: x2 ?? 0, y: y2 - down * CLEARANCE_PX };
  if (fate === "arriving") return [{ x: Math.max(-LEAD_PX, end.x - STUB_PX), y: y2 - (y2 - y1) * UNKNOWN }, end];
  const start = { x: x1 ?? 0, y: y1 + down * CLEARANCE_PX };
  if (y1 === y2) return loop(start, x2 ?? start.x + STUB_PX, fate);
  if (fate === "flying") return [start, { x: start.x + STUB_PX, y: y1 + (y2 - y1) * UNKNOWN }];
  if (fate === "received") return [start, end];
  // A message that was lost at once was on a cut link. A message lost later reached a node that was not running.
  const isNear = end.x - start.x < STUB_PX;
  const places = (isNear ? LOST_AT_SENDER : LOST_AT_RECEIVER).map((share) => ({
    x: isNear ? start.x + STUB_PX * 0.8 : start.x + (end.x - start.x) * share,
    y: y1 + (y2 - y1) * share,
  }));
  return [start, places.find(isFree) ?? (places[0] as Point)];
}

/** Returns the area of the cross at the end of a lost message. */
const crossBox = ({ x, y }: Point): Box => uprightBox(x - 6, y - 6, 12, 12);

/** Returns the area of an arrow's end: its head or its cross. */
export function tipBox({ points, fate }: Arrow): Box {
  const [before, end] = points.slice(-2) as [Point, Point];
  if (fate === "lost") return crossBox(end);
  const share = 5 / Math.max(5, Math.hypot(end.x - before.x, end.y - before.y));
  return uprightBox(end.x + (before.x - end.x) * share - 5, end.y + (before.y - end.y) * share - 5, 10, 10);
}

function loop(start: Point, x2: number, fate: Fate): Point[] {
  const slope = Math.min(10, (x2 - start.x) / 3);
  const top = start.y - LOOP_PX;
  const round = [start, { x: start.x + slope, y: top }, { x: x2 - slope, y: top }];
  return fate === "received" ? [...round, { x: x2, y: start.y - CLEARANCE_PX }] : round;
}

/** Returns the straight segments of an arrow. */
export function segmentsOf({ points }: Pick<Arrow, "points">): Segment[] {
  return points.slice(1).map((b, index) => ({ a: points[index] as Point, b }));
}

/** Returns the part of a line between two x coordinates. Null if there is none. */
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
