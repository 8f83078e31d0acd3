/**
 * The space-time diagram as geometry: from what is remembered to placed lines, arrows and marks. Knows no page and no
 * framework, so it serves every way of drawing. x grows with time, one row per node, units are pixels.
 */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { endOf, type Mark, type Message, momentOf } from "../history/chronicle.ts";
import type { Condition, Life } from "../history/life.ts";
import { type Axis, axisOf } from "./axis.ts";
import { type Burst, burstsOf } from "./bursts.ts";
import { type Frame, xOf, yOf } from "./frame.ts";
import { CHARACTER_PX } from "./labels.ts";
import { type PlacedMark, placeMarks } from "./marks.ts";
import { type PlacedSpan, placeSpans } from "./spans.ts";
import { type PlacedTrack, placeTracks } from "./tracks.ts";

export interface History {
  readonly messages: readonly Message[];
  readonly chatter: readonly Message[];
  readonly marks: readonly Mark[];
  readonly lives: ReadonlyMap<NodeId, Life>;
  readonly networks: readonly NetworkPeriod[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `received`: both ends known. `lost`: ends in a cross. `flying`: no end known yet. `arriving`: no beginning known. */
export type Fate = "received" | "lost" | "flying" | "arriving";

export interface Arrow {
  readonly message: Message;
  readonly fate: Fate;
  readonly start: Point;
  readonly end: Point;
}

export interface LifeLine {
  readonly key: string;
  readonly y: number;
  readonly x1: number;
  readonly x2: number;
  readonly condition: Condition;
  readonly leads: boolean;
  /** The role in words, where there is room for it; null elsewhere. */
  readonly role: string | null;
}

export interface PlacedBurst {
  readonly burst: Burst;
  readonly x1: number;
  readonly x2: number;
  /** Whether its caption has room. */
  readonly labelled: boolean;
}

export interface Picture {
  readonly frame: Frame;
  readonly lines: readonly LifeLine[];
  readonly arrows: readonly Arrow[];
  readonly marks: readonly PlacedMark[];
  readonly tracks: readonly PlacedTrack[];
  readonly bursts: readonly PlacedBurst[];
  readonly spans: readonly PlacedSpan[];
  readonly axis: Axis;
  readonly height: number;
}

/** How far on its way a message ends that never arrives, or that nobody has heard of since. */
const LOST_AT_SENDER = 0.34;
const LOST_AT_RECEIVER = 0.84;
const FLYING = 0.3;
/** Arrows end this far from the middle of the life line. */
const CLEARANCE_PX = 3;
/** Messages closer than this make a burst; narrower bursts than `BURST_PX` deserve a caption. */
const GAP_PX = 16;
const BURST_PX = 120;
const BURST_LABEL_PX = 156;

export const AXIS_PX = 34;

/** @param before What was laid out last: of what has not changed since, the very same objects are given again. */
export function layOut(history: History, frame: Frame, before: Picture | null = null): Picture {
  const tracks = placeTracks(history.lives, frame);
  const known = before?.frame === frame ? before : null;
  return {
    frame,
    lines: frame.nodes.flatMap((node) => linesOf(history, node, frame)).map((line) => withoutRoleUnder(tracks, line)),
    tracks,
    arrows: arrowsOf(history, frame, known),
    marks: placeMarks(history, frame, known?.marks ?? []),
    bursts: placeBursts(history.messages, frame),
    spans: placeSpans(history.networks, frame),
    axis: axisOf(frame.from, frame.to, frame.width, frame.origin),
    height: frame.top + frame.nodes.length * frame.rowHeight + AXIS_PX,
  };
}

export function isInView(message: Message, { from, to }: Frame): boolean {
  return endOf(message) >= from && momentOf(message) <= to;
}

/** Null if an end is no node of the frame. */
export function placeArrow(message: Message, frame: Frame): Arrow | null {
  const y1 = yOf(message.from, frame);
  const y2 = yOf(message.to, frame);
  if (y1 === null || y2 === null) return null;
  const side = Math.sign(y2 - y1) * CLEARANCE_PX;
  const { sentAt, receivedAt, loss } = message;
  const x1 = xOf(momentOf(message), frame);
  // The clocks of two processes differ by microseconds: nothing arrives before it was sent.
  if (sentAt !== null && receivedAt !== null) {
    const end = { x: Math.max(x1, xOf(receivedAt, frame)), y: y2 - side };
    return { message, fate: "received", start: { x: x1, y: y1 }, end };
  }
  if (sentAt === null) {
    const start = { x: x1 - frame.rowHeight * 0.1, y: y2 - (y2 - y1) * FLYING };
    return { message, fate: "arriving", start, end: { x: x1, y: y2 - side } };
  }
  const share = loss === null ? FLYING : loss.node === message.to ? LOST_AT_RECEIVER : LOST_AT_SENDER;
  const x2 = loss === null ? x1 + frame.rowHeight * 0.1 : Math.max(x1, xOf(loss.at, frame));
  const end = { x: x2, y: y1 + (y2 - y1) * share };
  return { message, fate: loss === null ? "flying" : "lost", start: { x: x1, y: y1 }, end };
}

function arrowsOf({ messages }: History, frame: Frame, known: Picture | null): Arrow[] {
  const settled = new Map(known?.arrows.filter(isSettled).map((arrow) => [arrow.message, arrow]));
  const arrows: Arrow[] = [];
  for (const message of messages) {
    if (!isInView(message, frame)) continue;
    const arrow = settled.get(message) ?? placeArrow(message, frame);
    if (arrow !== null) arrows.push(arrow);
  }
  return arrows;
}

/** Whether no more will be heard of it. */
export function isSettled({ fate }: Arrow): boolean {
  return fate === "received" || fate === "lost";
}

function linesOf({ lives }: History, node: NodeId, frame: Frame): LifeLine[] {
  const y = yOf(node, frame) ?? 0;
  const inView = (lives.get(node)?.stretches() ?? []).filter(({ to }) => to > frame.from);
  const lines: LifeLine[] = [];
  for (const { from, to, condition, leads, role } of inView) {
    if (from >= frame.to) break;
    const x1 = Math.max(0, xOf(from, frame));
    const x2 = Math.min(frame.width, xOf(to, frame));
    const beginsHere = frame.still || from >= frame.from;
    const hasRoom = role !== null && beginsHere && x2 - x1 > role.length * CHARACTER_PX + 16;
    const line = { key: `${node} ${from}`, y, x1, x2, condition, leads, role: hasRoom ? role : null };
    const last = lines.at(-1);
    // A role may change with every message: what differs in words alone, for which there is no room, is one line.
    if (last !== undefined && !hasRoom && last.role === null && last.condition === condition && last.leads === leads)
      lines[lines.length - 1] = { ...last, x2 };
    else lines.push(line);
  }
  return lines;
}

/** The role of a life line gives way to what hangs there. */
function withoutRoleUnder(tracks: readonly PlacedTrack[], line: LifeLine): LifeLine {
  const end = line.x1 + (line.role?.length ?? 0) * CHARACTER_PX + 16;
  const isTaken = tracks.some(({ lifeY, x1, x2 }) => lifeY === line.y && x1 < end && x2 > line.x1);
  return isTaken ? { ...line, role: null } : line;
}

function placeBursts(messages: readonly Message[], frame: Frame): PlacedBurst[] {
  const msPerPx = (frame.to - frame.from) / frame.width;
  const inView = messages.filter((message) => isInView(message, frame));
  let occupied = -Infinity;
  return burstsOf(inView, GAP_PX * msPerPx)
    .map((burst) => ({ burst, x1: xOf(burst.from, frame), x2: xOf(burst.to, frame) }))
    .filter(({ burst, x1, x2 }) => burst.messages.length > 2 && x2 - x1 < BURST_PX)
    .map((placed) => {
      const middle = (placed.x1 + placed.x2) / 2;
      const labelled = middle - BURST_LABEL_PX / 2 > occupied;
      if (labelled) occupied = middle + BURST_LABEL_PX / 2;
      return { ...placed, labelled };
    });
}
