/**
 * The space-time diagram as geometry: from what is remembered to placed lines, arrows and marks. Knows no page and no
 * framework, so it serves every way of drawing. x grows with time, one row per node, units are pixels.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import { deliveredId, nameOf, type Tagged } from "../../../src/trace/naming.ts";
import { endOf, type Mark, type Message, momentOf } from "../history/chronicle.ts";
import type { Condition, Life } from "../history/life.ts";
import { label, topicOfEvent } from "../history/phrase-book.ts";
import { type Axis, axisOf } from "./axis.ts";
import { type Burst, burstsOf } from "./bursts.ts";
import { type Frame, xOf, yOf } from "./frame.ts";
import { placeLabels } from "./labels.ts";
import { type PlacedTrack, placeTracks } from "./tracks.ts";

export interface History {
  readonly messages: readonly Message[];
  readonly chatter: readonly Message[];
  readonly marks: readonly Mark[];
  readonly lives: ReadonlyMap<NodeId, Life>;
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

export interface PlacedMark extends Point {
  readonly key: string;
  readonly at: number;
  readonly node: NodeId;
  readonly shape: Mark["kind"] | "start" | "crash";
  readonly label: string;
  /** The weightier takes the room for labels. */
  readonly weight: number;
  /** How far to the right the label begins; null where it has no room. */
  readonly labelDx: number | null;
  readonly mark: Mark | null;
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
  readonly axis: Axis;
  readonly height: number;
}

/** How far on its way a message ends that never arrives, or that nobody has heard of since. */
const LOST_AT_SENDER = 0.34;
const LOST_AT_RECEIVER = 0.84;
const FLYING = 0.3;
/** Arrows end this far from the middle of the life line. */
const CLEARANCE_PX = 3;
const CHARACTER_PX = 6.4;
/** How far marks stand apart that would cover each other. */
const BESIDE_PX = 9;
const LEAST_APART_PX = 3;
/** Messages closer than this make a burst; narrower bursts than `BURST_PX` deserve a caption. */
const GAP_PX = 16;
const BURST_PX = 120;
const BURST_LABEL_PX = 132;

export const AXIS_PX = 34;

export function layOut(history: History, frame: Frame): Picture {
  const tracks = placeTracks(history.lives, frame);
  return {
    frame,
    lines: frame.nodes.flatMap((node) => linesOf(history, node, frame)).map((line) => withoutRoleUnder(tracks, line)),
    tracks,
    arrows: history.messages
      .filter((message) => isInView(message, frame))
      .flatMap((message) => arrowOf(message, frame)),
    marks: marksOf(history, frame),
    bursts: placeBursts(history.messages, frame),
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

function arrowOf(message: Message, frame: Frame): Arrow[] {
  const arrow = placeArrow(message, frame);
  return arrow === null ? [] : [arrow];
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

type Unlabelled = Omit<PlacedMark, "labelDx">;

function marksOf({ marks, lives }: History, frame: Frame): PlacedMark[] {
  const isVisible = (at: number) => at >= frame.from && at <= frame.to;
  const happened = apart(marks.filter(({ at }) => isVisible(at)).map((mark) => placeMark(mark, frame)));
  const turns = frame.nodes.flatMap((node) => turnsOf(node, lives.get(node), frame)).filter(({ at }) => isVisible(at));
  return placeLabels([...turns, ...happened], CHARACTER_PX);
}

/**
 * A delivery stands beside a mark of the same moment, such as the command to send. Commands and deliveries may come by the
 * thousand: one that would cover the one before is left out.
 */
function apart(marks: readonly Unlabelled[]): Unlabelled[] {
  const last = new Map<string, number>();
  return marks.flatMap((mark) => {
    const before = last.get(`${mark.node} other`) ?? -Infinity;
    const isDelivery = mark.shape === "delivery";
    const x = isDelivery && mark.x - before < BESIDE_PX ? before + BESIDE_PX : mark.x;
    const covers = x - (last.get(`${mark.node} ${mark.shape}`) ?? -Infinity) < LEAST_APART_PX;
    if (covers && (isDelivery || mark.shape === "command")) return [];
    last.set(`${mark.node} ${isDelivery ? "delivery" : "other"}`, x).set(`${mark.node} ${mark.shape}`, x);
    return [{ ...mark, x }];
  });
}

function placeMark(mark: Mark, frame: Frame): Unlabelled {
  const text = mark.content === null ? mark.name.short : labelOf(mark.kind, mark.content);
  return {
    key: `mark ${mark.key}`,
    at: mark.at,
    node: mark.node,
    shape: mark.kind,
    label: text,
    weight: weightOf(mark),
    mark,
    x: xOf(mark.at, frame),
    y: yOf(mark.node, frame) ?? 0,
  };
}

function labelOf(kind: Mark["kind"], content: Tagged): string {
  if (kind === "delivery") return deliveredId(content) ?? "";
  return kind === "event" ? label(content) : nameOf(content).short;
}

/** Where a process began or ended. */
function turnsOf(node: NodeId, life: Life | undefined, frame: Frame): Unlabelled[] {
  const stretches = life?.stretches() ?? [];
  const y = yOf(node, frame) ?? 0;
  return stretches.flatMap(({ from, condition }, index): Unlabelled[] => {
    const before = stretches[index - 1]?.condition;
    const [was, is] = [before === "gone", condition === "gone"];
    if (before === undefined || was === is) return [];
    const shape = is ? "crash" : "start";
    const placed = { x: xOf(from, frame), y, label: shape, weight: TURN_WEIGHT, mark: null };
    return [{ key: `${shape} ${node} ${from}`, at: from, node, shape, ...placed }];
  });
}

const TURN_WEIGHT = 3;

function weightOf({ kind, content }: Mark): number {
  if (kind === "event" && content !== null) return topicOfEvent(content) === "suspicion" ? 1 : 3;
  return kind === "command" || kind === "delivery" ? 2 : 0;
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
