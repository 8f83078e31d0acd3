/** What the diagram is made from, and what it is as geometry: plain data that layout, painting, hit-testing and tests share. */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import type { NodeId, Tagged } from "../../../src/core/protocol.ts";
import type { MessageId } from "../../../src/trace/entry.ts";
import type { Name } from "../../../src/trace/log.ts";
import type { MarkKind } from "../../../src/trace/picture/marks.ts";
import type { Condition, Life } from "../history/life.ts";
import type { Axis } from "./axis.ts";
import type { Frame } from "./frame.ts";
import type { Letter } from "./lettering.ts";
import type { NetworkWords, PlacedSpan } from "./spans.ts";
import type { PlacedState, StateSpan } from "./states.ts";
import type { PlacedTrack } from "./tracks.ts";

/** A message with both its ends, as far as they are known. */
export interface Message {
  readonly id: MessageId;
  readonly name: Name;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly content: Tagged;
  readonly sentAt: number | null;
  readonly receivedAt: number | null;
  readonly loss: { readonly at: number; readonly node: NodeId } | null;
  /** What is written along its arrow; its name unless told. */
  readonly label?: string;
}

export interface History<M extends Message = Message> {
  readonly messages: readonly M[];
  /** Where these are samples: how many there are. */
  readonly messageCount?: number;
  readonly marks: readonly Happening[];
  readonly lives: ReadonlyMap<
    NodeId,
    Pick<Life, "stretches"> & { readonly holdBack: Pick<Life["holdBack"], "tracks"> }
  >;
  readonly networks: readonly (NetworkPeriod | NetworkWords)[];
  /** What nodes were in for some time: the critical section, a term of leadership. */
  readonly states?: readonly StateSpan[];
  /** What is written on the axis, and where it is broken since nothing happens; unless told, times are. */
  readonly axis?: Pick<Axis, "ticks"> & { readonly breaks: readonly number[] };
}

/** A history that knows what of it a window of its axis shows, so that nobody has to look through all of it. */
export interface Windowed<M extends Message = Message> {
  /** What reaches into the window; of more than can be told apart, samples. */
  between(from: number, to: number): History<M>;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `received`: both ends known. `lost`: ends in a cross. `flying`: no end known yet. `arriving`: no beginning known. */
export type Fate = "received" | "lost" | "flying" | "arriving";

export interface Arrow<M extends Message = Message> {
  readonly message: M;
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

export interface Picture<M extends Message = Message> {
  readonly frame: Frame;
  readonly lines: readonly LifeLine[];
  readonly arrows: readonly Arrow<M>[];
  /** Where there are more messages than can be told apart: `arrows` are then samples of them. */
  readonly crowd: Crowd | null;
  readonly marks: readonly PlacedMark[];
  readonly tracks: readonly PlacedTrack[];
  readonly spans: readonly PlacedSpan[];
  readonly states: readonly PlacedState[];
  readonly letters: readonly Letter[];
  readonly clocks: readonly ClockLabel[];
  readonly axis: Axis;
  /** In pixels. */
  readonly breaks: readonly number[];
  readonly height: number;
}

/** Something that happened at one node alone. Starts and crashes may stand in its life instead. */
export interface Happening {
  readonly key: number;
  readonly at: number;
  readonly node: NodeId;
  readonly kind: MarkKind;
  readonly name: Name;
  readonly content: Tagged | null;
  /** What is written beside it; unless told, it is made from name and content. */
  readonly inscription?: Inscription;
  /** So many pixels right of its place, beside other marks of the same step. */
  readonly nudge?: number;
}

export interface Inscription {
  readonly label: string;
  /** The weightier takes the room for labels. */
  readonly weight: number;
}

export interface PlacedMark extends Inscription {
  readonly x: number;
  readonly y: number;
  readonly key: string;
  readonly at: number;
  readonly node: NodeId;
  readonly shape: MarkKind;
  readonly mark: Happening | null;
}

export interface Crowd {
  readonly count: number;
  /** Places in the list of messages. */
  readonly samples: readonly number[];
}

export interface ClockLabel {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

/** What is written at one end of a message: a key of its step, and the clock there. Null where nothing is known. */
export type ClockOf = (
  message: Message,
  end: "sent" | "received",
) => { readonly key: string; readonly text: string } | null;

export interface Burst<M extends Message = Message> {
  readonly from: number;
  readonly to: number;
  readonly messages: readonly M[];
}

/** What of the history is shown, and how. */
export interface Showing {
  /** Full names of messages that are not shown. */
  readonly hidden?: ReadonlySet<string>;
  /** The vector clocks of steps; absent while they are not shown. */
  readonly clockOf?: ClockOf;
  /** The ink of a message, as a colour of the page by name. */
  readonly inkOf?: (name: string) => string;
}

/** When a message is first heard of. */
export function momentOf({ sentAt, receivedAt }: Message): number {
  return sentAt ?? receivedAt ?? 0;
}

/** When a message is last heard of. */
export function endOf(message: Message): number {
  return Math.max(momentOf(message), message.receivedAt ?? message.loss?.at ?? 0);
}

export const AXIS_PX = 34;

const MARK_PX = 9;
const ARROW_PX = 6;

/** What lies under the pointer: a mark, else the nearest arrow. */
export function hit<M extends Message>({ marks, arrows }: Picture<M>, at: Point): Arrow<M> | PlacedMark | null {
  let [best, least] = [null as Arrow<M> | PlacedMark | null, Number.POSITIVE_INFINITY];
  for (const mark of marks) {
    const distance = Math.hypot(mark.x - at.x, mark.y - 5 - at.y);
    if (distance <= MARK_PX && distance < least) [best, least] = [mark, distance];
  }
  if (best !== null) return best;
  for (const arrow of arrows) {
    const distance = distanceTo(arrow, at);
    if (distance <= ARROW_PX && distance < least) [best, least] = [arrow, distance];
  }
  return best;
}

function distanceTo({ start, end }: Pick<Arrow, "start" | "end">, { x, y }: Point): number {
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const length = dx * dx + dy * dy;
  const share = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - start.x) * dx + (y - start.y) * dy) / length));
  return Math.hypot(start.x + share * dx - x, start.y + share * dy - y);
}
