/** The diagram's input and geometry, as plain data for layout, painting, hit testing and tests. */
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

/** A message with both of its ends, if they are known. */
export interface Message {
  readonly id: MessageId;
  readonly name: Name;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly content: Tagged;
  readonly sentAt: number | null;
  readonly receivedAt: number | null;
  readonly loss: { readonly at: number; readonly node: NodeId } | null;
  /** The label on its arrow. Default: its name. */
  readonly label?: string;
}

export interface History<M extends Message = Message> {
  readonly messages: readonly M[];
  /** The total number of messages, if `messages` are only samples. */
  readonly messageCount?: number;
  readonly marks: readonly Happening[];
  readonly lives: ReadonlyMap<
    NodeId,
    Pick<Life, "stretches"> & { readonly holdBack: Pick<Life["holdBack"], "tracks"> }
  >;
  readonly networks: readonly (NetworkPeriod | NetworkWords)[];
  /** Lasting states of the nodes, such as being in the critical section or serving a term of leadership. */
  readonly states?: readonly StateSpan[];
  /** The ticks on the axis, and the breaks where no events happen. By default, the ticks show times. */
  readonly axis?: Pick<Axis, "ticks"> & { readonly breaks: readonly number[] };
}

/** A history that can select the items in a window itself, without scanning all of them. */
export interface Windowed<M extends Message = Message> {
  /** Returns everything that overlaps the window. Returns samples if there are more items than can be distinguished. */
  between(from: number, to: number): History<M>;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * `received`: both ends are known. `lost`: the arrow ends in a cross. `flying`: the receiving end is not known yet.
 * `arriving`: the sending end is not known.
 */
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
  /** The role as text, if there is space for it. Otherwise null. */
  readonly role: string | null;
}

export interface Picture<M extends Message = Message> {
  readonly frame: Frame;
  readonly lines: readonly LifeLine[];
  readonly arrows: readonly Arrow<M>[];
  /** Set if there are more messages than can be distinguished. In that case, `arrows` contains samples. */
  readonly crowd: Crowd | null;
  readonly marks: readonly PlacedMark[];
  readonly tracks: readonly PlacedTrack[];
  readonly spans: readonly PlacedSpan[];
  readonly states: readonly PlacedState[];
  readonly letters: readonly Letter[];
  readonly clocks: readonly ClockLabel[];
  readonly axis: Axis;
  /** The positions of the breaks, in pixels. */
  readonly breaks: readonly number[];
  readonly height: number;
}

/** An event at a single node. Starts and crashes may be part of the node's life instead. */
export interface Happening {
  readonly key: number;
  readonly at: number;
  readonly node: NodeId;
  readonly kind: MarkKind;
  readonly name: Name;
  readonly content: Tagged | null;
  /** The label. Default: derived from the name and content. */
  readonly inscription?: Inscription;
  /** The offset to the right, in pixels, if there are other marks for the same step. */
  readonly nudge?: number;
}

export interface Inscription {
  readonly label: string;
  /** The priority of the label. Labels with a higher weight are placed first. */
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
  /** Indexes into the list of messages. */
  readonly samples: readonly number[];
}

export interface ClockLabel {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

/**
 * The text at one end of a message: a key that identifies the step, and the step's clock. Null if the clock is unknown.
 */
export type ClockOf = (
  message: Message,
  end: "sent" | "received",
) => { readonly key: string; readonly text: string } | null;

export interface Burst<M extends Message = Message> {
  readonly from: number;
  readonly to: number;
  readonly messages: readonly M[];
}

/** Which part of the history to show, and how. */
export interface Showing {
  /** The full names of hidden message types. */
  readonly hidden?: ReadonlySet<string>;
  /** Returns the vector clocks of steps. Absent if they are not shown. */
  readonly clockOf?: ClockOf;
  /** Returns the ink of a message, as the name of one of the page's colors. */
  readonly inkOf?: (name: string) => string;
}

/** Returns the time of a message's first known end. */
export function momentOf({ sentAt, receivedAt }: Message): number {
  return sentAt ?? receivedAt ?? 0;
}

/** Returns the time of a message's last known end. */
export function endOf(message: Message): number {
  return Math.max(momentOf(message), message.receivedAt ?? message.loss?.at ?? 0);
}

export const AXIS_PX = 34;

const MARK_PX = 9;
const ARROW_PX = 6;

/** Returns the item under the pointer: a mark if there is one, otherwise the nearest arrow. */
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
