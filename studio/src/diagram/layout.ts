/**
 * Lays out the space-time diagram: turns remembered entries into placed lines, arrows, marks and text. It does not
 * depend on a page or framework. The live page and the laboratory draw its result. x increases with time, each node has
 * a row, and units are pixels.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import { type Axis, axisOf } from "./axis.ts";
import { type Frame, xOf, yOf } from "./frame.ts";
import { widthOf } from "./lettering.ts";
import { placeClocks, placeLetters } from "./letters.ts";
import { placeMarks } from "./marks.ts";
import {
  type Arrow,
  AXIS_PX,
  type Crowd,
  endOf,
  type History,
  type LifeLine,
  type Message,
  momentOf,
  type Picture,
  type Showing,
  type Windowed,
} from "./picture.ts";
import { placeSpans } from "./spans.ts";
import { placeStates } from "./states.ts";
import { placeTracks } from "./tracks.ts";

/** The length of a message's arrow, as a fraction of the distance, if the message was lost or its end is unknown. */
const LOST_AT_SENDER = 0.34;
const LOST_AT_RECEIVER = 0.84;
const FLYING = 0.3;
/** Arrows end this far from the center of the life line. */
const CLEARANCE_PX = 3;
/** The maximum number of arrows that can be distinguished. */
const MAX_ARROWS = 700;

/**
 * Lays out the part of a history that is in the frame.
 * @param whole a history, which may be able to select the part itself
 */
export function layOut<M extends Message>(
  whole: History<M> | Windowed<M>,
  frame: Frame,
  showing: Showing = {},
): Picture<M> {
  const { hidden = new Set<string>() } = showing;
  // Add one pixel, because positions are rounded.
  const pixel = (frame.to - frame.from) / frame.width;
  const history = "between" in whole ? whole.between(frame.from - pixel, frame.to + pixel) : whole;
  const inView = history.messages.filter((message) => isInView(message, frame) && !hidden.has(message.name.full));
  const count = Math.max(inView.length, history.messageCount ?? 0);
  const crowd = count > MAX_ARROWS ? crowdOf(inView, frame, MAX_ARROWS, count) : null;
  const shown = crowd === null ? inView : crowd.samples.map((index) => inView[index] as M);
  const height = frame.top + frame.nodes.length * frame.rowHeight + AXIS_PX;
  const bare = {
    frame,
    height,
    lines: frame.nodes.flatMap((node) => linesOf(history, node, frame)),
    tracks: placeTracks(history.lives, frame),
    arrows: shown.flatMap((message) => placeArrow(message, frame) ?? []),
    crowd,
    marks: placeMarks(history, frame),
    spans: placeSpans(history.networks, frame),
    states: placeStates(history.states ?? [], frame),
    axis: axisIn(history, frame),
    breaks: (history.axis?.breaks ?? []).map((at) => xOf(at, frame)).filter((x) => x >= 0 && x <= frame.width),
  };
  const clocks = showing.clockOf === undefined ? [] : placeClocks(bare.arrows, showing.clockOf, frame);
  return {
    ...bare,
    clocks,
    letters: placeLetters({ ...bare, clocks }, showing.inkOf ?? (() => "--ink")),
  };
}

/** The width of one label on an axis that does not show time. */
const TICK_PX = 78;

function axisIn({ axis }: History, frame: Frame): Axis {
  if (axis === undefined) return axisOf(frame.from, frame.to, frame.width, frame.origin);
  let free = -Infinity;
  const ticks = axis.ticks.filter(({ at }) => {
    const x = xOf(at, frame);
    if (x < 0 || x > frame.width || x < free) return false;
    free = x + TICK_PX;
    return true;
  });
  return { ticks, origin: frame.origin };
}

function isInView(message: Message, frame: Frame): boolean {
  return xOf(endOf(message), frame) >= 0 && xOf(momentOf(message), frame) <= frame.width;
}

/** Places a message. Returns null if one of its ends is not a node of the frame. */
function placeArrow<M extends Message>(message: M, frame: Frame): Arrow<M> | null {
  const y1 = yOf(message.from, frame);
  const y2 = yOf(message.to, frame);
  if (y1 === null || y2 === null) return null;
  const side = Math.sign(y2 - y1) * CLEARANCE_PX;
  const { sentAt, receivedAt, loss } = message;
  const x1 = xOf(momentOf(message), frame);
  // The clocks of two processes differ by microseconds. Do not draw a message as arriving before it was sent.
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

function linesOf({ lives }: History, node: NodeId, frame: Frame): LifeLine[] {
  const y = yOf(node, frame) ?? 0;
  const inView = (lives.get(node)?.stretches() ?? []).filter(({ to }) => xOf(to, frame) > 0);
  const lines: LifeLine[] = [];
  for (const { from, to, condition, leads, role } of inView) {
    if (xOf(from, frame) >= frame.width) break;
    const x1 = Math.max(0, xOf(from, frame));
    const x2 = Math.min(frame.width, xOf(to, frame));
    const beginsHere = frame.still || xOf(from, frame) >= 0;
    // Show a pause instead of the role that the node had before it.
    const word = condition === "paused" ? "paused" : role;
    const hasRoom = word !== null && beginsHere && x2 - x1 > widthOf(word, "role") + 16;
    const line = { key: `${node} ${from}`, y, x1, x2, condition, leads, role: hasRoom ? word : null };
    const last = lines.at(-1);
    // A role may change with every message, so changes that have no space for their text are merged into one line.
    if (last !== undefined && !hasRoom && last.role === null && last.condition === condition && last.leads === leads)
      lines[lines.length - 1] = { ...last, x2 };
    else lines.push(line);
  }
  return lines;
}

const FINEST_PX = 2;

/**
 * Samples messages if there are too many to distinguish: one from each group that would overlap, drawn fainter in dense
 * regions. As a result, drawing a hundred thousand messages is as fast as drawing a few hundred.
 * @param most the maximum number of samples
 * @param count the total number of messages, if `messages` are already samples
 */
function crowdOf(messages: readonly Message[], frame: Frame, most: number, count: number): Crowd {
  const rows = new Map<NodeId, number>(frame.nodes.map((node, row) => [node, row]));
  let samples: number[] = messages.map((_, index) => index);
  for (let width = FINEST_PX; samples.length > most; width *= 2) {
    const buckets = Math.ceil(frame.width / width) + 2;
    const isTaken = new Uint8Array(buckets * rows.size * rows.size);
    samples = samples.filter((index) => {
      const message = messages[index] as Message;
      const [from, to] = [rows.get(message.from) ?? -1, rows.get(message.to) ?? -1];
      if (from === -1 || to === -1) return false;
      const bucket = Math.min(buckets - 1, Math.max(0, Math.floor(xOf(momentOf(message), frame) / width) + 1));
      const cell = (bucket * rows.size + from) * rows.size + to;
      if (isTaken[cell] === 1) return false;
      isTaken[cell] = 1;
      return true;
    });
    if (width > frame.width) break;
  }
  return { count, samples };
}
