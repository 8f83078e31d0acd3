/** The words of ip-multicast: its state, what is sent and said, and which messages make no sense. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, type Shape, type Shapes, struct } from "../../../core/shape.ts";
import { count, flag, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { type GroupEvent, MAX_MEMBERS, type Multicast } from "../parts/layers.ts";

export const ipMulticastOptions = optionTable(
  "ip-multicast",
  {
    begin: option(
      oneOf("inside", "outside"),
      "inside",
      "`inside`: all nodes are the group, forever; `outside`: there is no group until `change` brings the first view",
    ),
    inOrder: flag(
      true,
      "whether a message waits for earlier ones of its sender; otherwise it is delivered on arrival, once and everywhere, in no order; views need the order",
    ),
    sessions: flag(true, "whether nodes report unasked which messages they have received, and which are not stable"),
    nackMs: positive(
      5,
      "the least time, up to twice as long, that a missing message may just be late before a node asks for it",
    ),
    repairMs: positive(
      25,
      "the least time, up to twice as long, before a node that is not the sender repairs a loss; more than a round trip",
    ),
    repeatMs: positive(50, "the time after which a missing message is asked for again, doubled each time"),
    maxRepeatMs: positive(1_000, "the longest such time"),
    ackMs: positive(10, "the time after which a receipt is acknowledged, unless a message carries it"),
    ackEvery: count(16, "the number of messages after which receipts are acknowledged"),
    promptAcks: flag(
      false,
      "whether a message of a sender without others under way, which may wait for it, is acknowledged at once",
    ),
    sessionMs: positive(100, "the time after which messages that are not stable are reported, doubled each time"),
    maxSessionMs: positive(1_000, "the longest such time"),
    maxRepeats: option(
      nullable(natural),
      null,
      "how often in a row that is repeated without progress; `null`: as long as the group stays the same",
    ),
    windowMessages: count(256, "how many of its own messages a node multicasts before the first of them is stable"),
    windowBytes: count(4_194_304, "how many bytes of its own messages it multicasts before the first is stable"),
    maxWaiting: whole(1_024, "how many further messages wait for the window"),
  },
  ({ begin, inOrder }, refuse) => {
    if (begin === "outside" && !inOrder) refuse("inOrder", "true where there are views");
  },
);

export type IpMulticastOptions = OptionsOf<typeof ipMulticastOptions>;

/** How far a member may be ahead of the slowest: when the group changes, it says what has waited for its window, too. */
export const reachOf = ({ windowMessages, maxWaiting }: Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">) =>
  windowMessages + maxWaiting;

/**
 * How many of its own that are not stable a member is sure to take, however long they are: one, and those that wait.
 * @throws UsageError
 */
export const sureRoom = (given: Partial<IpMulticastOptions> | undefined): number =>
  ipMulticastOptions.settle(given).maxWaiting + 1;

/** Waits that grow twofold up to a bound, and perhaps end. */
interface Patience {
  waitMs(times: number): number;
  /** One time more, as long as that makes a difference. */
  next(times: number): number;
  isOver(times: number): boolean;
}

export function patience(firstMs: number, maxMs: number, maxRepeats: number | null): Patience {
  const most = maxRepeats ?? Math.max(0, Math.ceil(Math.log2(maxMs / firstMs)));
  return {
    waitMs: (times) => Math.min(maxMs, firstMs * 2 ** times),
    next: (times) => Math.min(times + 1, most),
    isOver: (times) => times === maxRepeats,
  };
}

/** It asks again at even intervals, so that runs repeat themselves. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };

/** A message that is kept, be it held back or until all members have it. */
export interface Kept<P> {
  payload: P;
  /** `owed`: somebody has asked for it, and this node will send it unless another does. `recent`: it has just been sent. */
  repair: "none" | "owed" | "recent";
}

/** The messages of one member, numbered from 1, as this node knows of them. */
export interface Stream<P> {
  /** Up to which number each member has received all, in the order of the members; this node's own entry is R. */
  acks: number[];
  /** All members have received all up to here. */
  stable: number;
  /** Delivered up to here. It is R, unless the group is about to change. */
  delivered: number;
  /** The highest number that anybody has spoken of. */
  known: number;
  /** All up to here are stable, delivered, and kept no more. */
  freed: number;
  /** From number `freed` + 1; null where one is missing. */
  kept: (Kept<P> | null)[];
  /** When `nack` runs out: those that are missing up to here are asked for. Later ones may just be late. */
  noticed: number;
  /** Of the missing ones up to here all have been asked for, by this node or another. */
  requested: number;
  /** When `again` runs out: those that are still missing up to here are asked for once more. */
  overdue: number;
}

/** A message by its sender's place among the members, and its number. */
export interface Place {
  sender: number;
  number: number;
}

/** So many messages of one sender are asked for; `at`: who should answer at once. */
export interface Wanted {
  sender: NodeId;
  from: number;
  to: number;
  at: NodeId;
}

export interface IpMulticast<P = string> {
  state: {
    /** `outside`: of every view. `blocked`: the group is about to change. */
    phase: "outside" | "open" | "blocked";
    view: number;
    /** Of the present view, ascending. */
    members: NodeId[];
    /** This node's own place among them; −1 outside. */
    me: number;
    /** By member. */
    streams: Stream<P>[];
    /** Sent by the user and not multicast yet. */
    waiting: P[];
    /** How much of this node's own is not stable. */
    unstableBytes: number;
    /** Which timers run. */
    isNacking: boolean;
    isAskingAgain: boolean;
    isRepairing: boolean;
    /** Whether the timer `session` runs, and for what: to acknowledge soon, or to speak of what is not stable. */
    talk: "none" | "soon" | "later";
    /** How many messages of others have come since this node last said what it has. */
    fresh: number;
    /** Somebody who does not know that all is stable, or lacks a message, has asked. */
    hasRequest: boolean;
    /** Since `session` was armed. */
    hasSpoken: boolean;
    /** How often in a row, without a step forward, it has asked again, and has spoken of what is not stable. */
    attempts: number;
    repeats: number;
    /** Messages that somebody has asked for, and of which `repair` is not "none". */
    repairs: Place[];
    /** While the group is about to change: what this node is to get before. `holders`: who has the cut of each member's. */
    fill: { round: number; cut: number[]; holders: NodeId[] } | null;
    /** R as it was when the group began to change; null while it does not. */
    promised: number[] | null;
  };
  message: /** A multicast: S, what is stable of the sender's messages, and R of every member. */
    | { type: "data"; view: number; number: number; stable: number; acks: number[]; payload: P }
    /** The same from a node that has it. `acks` are those of the node that repairs. */
    | {
        type: "repair";
        view: number;
        sender: NodeId;
        number: number;
        stable: number;
        acks: number[];
        payload: P;
      }
    | { type: "nack"; view: number; acks: number[]; wanted: Wanted[] }
    /** `asks`: whether a node that knows more should say so. */
    | { type: "session"; view: number; acks: number[]; stable: number[]; asks: boolean };
  timer: /** Until messages that are missing are requested for. */
    | "nack"
    /** Until they are asked for again. */
    | "again"
    /** Until what others miss is sent, unless somebody else has sent it. */
    | "repair"
    | "session";
  command:
    | Multicast<P>["command"]
    /** The group is about to change: says what has been received; delivers nothing more. */
    | { type: "flush"; round: number }
    /** Get all up to the cut, which `holders` have: by member, in the order of the present view. */
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** Deliver up to the cut; the next view begins. */
    | { type: "change"; view: number; members: NodeId[]; cut: number[] }
    | { type: "eject" };
  event:
    | Multicast<P>["event"]
    /** There is no room for it: neither in the window nor among those that wait. */
    | { type: "refused"; payload: P }
    /** This number of the node's own messages of the present view has been received by all its members. */
    | { type: "stable"; count: number }
    | GroupEvent
    /** R of every member of the present view, in the order of the members; empty outside. */
    | { type: "flushed"; round: number; received: number[] }
    | { type: "filled"; round: number };
}

export type State<P> = IpMulticast<P>["state"];
export type Ctx<P> = Context<IpMulticast<P>>;
export type Message<P, T extends IpMulticast["message"]["type"]> = Extract<IpMulticast<P>["message"], { type: T }>;

/** In one negative acknowledgement. */
export const MAX_WANTED = 64;

const vector = list(natural, MAX_MEMBERS);
const wanted = struct<Wanted>({ sender: natural, from: natural, to: natural, at: natural });

export const messageShapes = <P>(payload: Shape<P>): Shapes<IpMulticast<P>["message"]> => ({
  data: { view: natural, number: natural, stable: natural, acks: vector, payload },
  repair: { view: natural, sender: natural, number: natural, stable: natural, acks: vector, payload },
  nack: { view: natural, acks: vector, wanted: list(wanted, MAX_WANTED) },
  session: { view: natural, acks: vector, stable: vector, asks: boolean },
});

export const commandShapes = <P>(payload: Shape<P>): Shapes<IpMulticast<P>["command"]> => ({
  send: { payload },
  flush: { round: natural },
  fill: { round: natural, cut: vector, holders: vector },
  change: { view: natural, members: vector, cut: vector },
  eject: {},
});

/** R of one member. */
export const receivedOf = <P>(state: State<P>, sender: number): number => state.streams[sender]?.acks[state.me] ?? 0;

export const receivedVector = <P>({ streams, me }: State<P>): number[] => streams.map(({ acks }) => acks[me] as number);

/**
 * What a node says to the others that it has received. While the group changes that is no more than it had before: what
 * comes later may be beyond the cut, and then nobody delivers it, although all of them have it.
 */
export const acknowledged = <P>(state: State<P>): number[] => state.promised ?? receivedVector(state);

// Messages that are dropped: of other views, of strangers, and such as nobody who follows the protocol sends. A number is
// bounded by what this node has received, since nobody is more than its reach ahead of the slowest.

type Bounds = Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">;

/** Late, early, or not of a member. What is early will be repaired. */
export const isOfAnotherView = <P>({ phase, view, members }: State<P>, of: number, from: NodeId): boolean =>
  phase === "outside" || of !== view || !members.includes(from);

/** Acknowledges what cannot have been sent. */
function isAbsurdVector<P>(state: State<P>, bounds: Bounds, acks: readonly number[]): boolean {
  return acks.length !== state.members.length || acks.some((ack, sender) => ack > highestOf(state, sender, bounds));
}

/** The highest number that a member can have used; this node's own it knows. */
const highestOf = <P>(state: State<P>, sender: number, bounds: Bounds): number =>
  receivedOf(state, sender) + (sender === state.me ? 0 : reachOf(bounds));

/** Whether the next view can begin with that cut: this node holds all of it, and has delivered nothing beyond. */
export const isCutOf = <P>(state: State<P>, cut: readonly number[]): boolean =>
  cut.length === state.members.length &&
  cut.every((last, sender) => receivedOf(state, sender) >= last && (state.streams[sender]?.delivered ?? 0) <= last);

/** A data message or a repair: `from` is whose message it is. */
export function isAbsurdMessage<P>(
  state: State<P>,
  bounds: Bounds,
  { from, number, stable, acks }: { from: NodeId; number: number; stable: number; acks: readonly number[] },
): boolean {
  const sender = state.members.indexOf(from);
  return (
    sender < 0 ||
    number < 1 ||
    number > highestOf(state, sender, bounds) ||
    stable > receivedOf(state, sender) ||
    isAbsurdVector(state, bounds, acks)
  );
}

export function isAbsurdNack<P>(
  state: State<P>,
  bounds: Bounds,
  { acks, wanted }: { acks: readonly number[]; wanted: readonly Wanted[] },
): boolean {
  const isAbsurdWish = ({ sender, from, to }: Wanted): boolean => {
    const place = state.members.indexOf(sender);
    return place < 0 || from < 1 || to < from || to - from >= MAX_WANTED || to > highestOf(state, place, bounds);
  };
  return isAbsurdVector(state, bounds, acks) || wanted.some(isAbsurdWish);
}

export function isAbsurdSession<P>(state: State<P>, bounds: Bounds, { acks, stable }: Message<P, "session">): boolean {
  return (
    isAbsurdVector(state, bounds, acks) ||
    stable.length !== state.members.length ||
    stable.some((upTo, sender) => upTo > receivedOf(state, sender))
  );
}
