/** The input of the diagram and its geometry: plain data shared by layout, painting, hit-testing and tests. */
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
  /** The label of its arrow; its name by default. */
  readonly label?: string;
}

export interface History<M extends Message = Message> {
  readonly messages: readonly M[];
  /** The number of all messages, if these are samples. */
  readonly messageCount?: number;
  readonly marks: readonly Happening[];
  readonly lives: ReadonlyMap<
    NodeId,
    Pick<Life, "stretches"> & { readonly holdBack: Pick<Life["holdBack"], "tracks"> }
  >;
  readonly networks: readonly (NetworkPeriod | NetworkWords)[];
  /** Lasting states of the nodes: in the critical section, in a term of leadership. */
  readonly states?: readonly StateSpan[];
  /** The ticks of the axis, and its breaks in times without events. By default, the ticks show times. */
  readonly axis?: Pick<Axis, "ticks"> & { readonly breaks: readonly number[] };
}

/** A history that can select the part in a window itself, so that not all of it is scanned. */
export interface Windowed<M extends Message = Message> {
  /** Everything that reaches into the window; samples if there is more than can be distinguished. */
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
  /** The role in words if there is space for it; otherwise null. */
  readonly role: string | null;
}

export interface Picture<M extends Message = Message> {
  readonly frame: Frame;
  readonly lines: readonly LifeLine[];
  readonly arrows: readonly Arrow<M>[];
  /** Set if there are more messages than can be distinguished: `arrows` are then samples. */
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

/** Something that happened at one node alone. Starts and crashes may be in the node's life instead. */
export interface Happening {
  readonly key: number;
  readonly at: number;
  readonly node: NodeId;
  readonly kind: MarkKind;
  readonly name: Name;
  readonly content: Tagged | null;
  /** The label. By default, it is made from name and content. */
  readonly inscription?: Inscription;
  /** The offset to the right in pixels, next to other marks of the same step. */
  readonly nudge?: number;
}

export interface Inscription {
  readonly label: string;
  /** The label with the greater weight gets the space. */
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
  /** Indexes in the list of messages. */
  readonly samples: readonly number[];
}

export interface ClockLabel {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

/** The text at one end of a message: a key for its step, and its clock. Null if the clock is unknown. */
export type ClockOf = (
  message: Message,
  end: "sent" | "received",
) => { readonly key: string; readonly text: string } | null;

export interface Burst<M extends Message = Message> {
  readonly from: number;
  readonly to: number;
  readonly messages: readonly M[];
}

/** The part of the history that is shown, and how. */
export interface Showing {
  /** Full names of hidden message types. */
  readonly hidden?: ReadonlySet<string>;
  /** The vector clocks of steps; absent while they are not shown. */
  readonly clockOf?: ClockOf;
  /** The ink of a message, as a color of the page by name. */
  readonly inkOf?: (name: string) => string;
}

/** The moment at which a message is first known. */
export function momentOf({ sentAt, receivedAt }: Message): number {
  return sentAt ?? receivedAt ?? 0;
}

/** The moment at which a message is last known. */
export function endOf(message: Message): number {
  return Math.max(momentOf(message), message.receivedAt ?? message.loss?.at ?? 0);
}

export const AXIS_PX = 34;

const MARK_PX = 9;
const ARROW_PX = 6;

/** The item under the pointer: a mark, otherwise the nearest arrow. */
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
