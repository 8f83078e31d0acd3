/** The vocabulary of ip-multicast: its state, messages and events, and checks for invalid messages. */
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
      "`inside`: all nodes form the group permanently; `outside`: the group begins when the command `change` installs the first view",
    ),
    inOrder: flag(
      true,
      "whether a message waits for earlier messages from its sender; otherwise each message is delivered once, on arrival, in any order; required with views",
    ),
    sessions: flag(
      true,
      "whether nodes periodically report which messages they have received and which are not stable",
    ),
    nackMs: positive(5, "the minimum time before a node requests a missing message, randomized up to twice as long"),
    repairMs: positive(
      25,
      "the minimum time before a node other than the sender repairs a loss, randomized up to twice as long; must exceed a round trip",
    ),
    repeatMs: positive(50, "a missing message is requested again after this time, doubled each time"),
    maxRepeatMs: positive(1_000, "the maximum of that time"),
    ackMs: positive(
      10,
      "a received message is acknowledged after this time, unless another message carries the acknowledgement",
    ),
    ackEvery: count(16, "an acknowledgement is sent after this many received messages"),
    promptAcks: flag(
      false,
      "whether a message is acknowledged at once if its sender has no others in flight and may be waiting for it",
    ),
    sessionMs: positive(100, "messages that are not stable are reported after this time, doubled each time"),
    maxSessionMs: positive(1_000, "the maximum of that time"),
    maxRepeats: option(
      nullable(natural),
      null,
      "the maximum number of consecutive reports without progress; `null`: unlimited until the group changes",
    ),
    windowMessages: count(256, "how many of its own messages a node multicasts before the first of them is stable"),
    windowBytes: count(4_194_304, "how many bytes of its own messages a node multicasts before the first is stable"),
    maxWaiting: whole(1_024, "how many further messages wait for the window"),
  },
  ({ begin, inOrder }, refuse) => {
    if (begin === "outside" && !inOrder) refuse("inOrder", "true with views");
  },
);

/** Options of `ipMulticast()`. */
export type IpMulticastOptions = OptionsOf<typeof ipMulticastOptions>;

/**
 * How far a member may be ahead of the slowest one. When the group changes, it also sends the messages that wait for its
 * window.
 */
export const reachOf = ({ windowMessages, maxWaiting }: Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">) =>
  windowMessages + maxWaiting;

/**
 * The number of a member's own unstable messages that always fit, regardless of their size: one, and those that wait.
 * @throws UsageError if an option is unknown or out of range.
 */
export const sureRoom = (given: Partial<IpMulticastOptions> | undefined): number =>
  ipMulticastOptions.settle(given).maxWaiting + 1;

/** Waits that double up to a bound, and may end. */
interface Patience {
  waitMs(times: number): number;
  /** Counts one more repetition, until further ones make no difference. */
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

/** Repeats requests at even intervals, so that the states of runs repeat. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };

/** A message in the buffer: held back, or kept until all members have it. */
export interface Kept<P> {
  payload: P;
  /** `owed`: requested, and this node will send it unless another does. `recent`: just sent. */
  repair: "none" | "owed" | "recent";
}

/** The messages of one member, numbered from 1, as known to this node. */
export interface Stream<P> {
  /** For each member, in the order of `members`: it has received all messages up to this number. This node's own entry is R. */
  acks: number[];
  /** All members have received all messages up to this number. */
  stable: number;
  /** The last delivered number: R, unless the group is changing. */
  delivered: number;
  /** The highest number that any node has mentioned. */
  known: number;
  /** All messages up to this number are stable, delivered and freed. */
  freed: number;
  /** Messages from number `freed` + 1; null for missing ones. */
  kept: (Kept<P> | null)[];
  /** When `nack` expires, missing messages up to this number are requested. Later ones may just be delayed. */
  noticed: number;
  /** All missing messages up to this number have been requested, by this node or another. */
  requested: number;
  /** When `again` expires, missing messages up to this number are requested again. */
  overdue: number;
}

/** Identifies a message by its sender's index among the members, and its number. */
export interface Place {
  sender: number;
  number: number;
}

/** A range of requested messages of one sender. `at`: the node that should answer at once. */
export interface Wanted {
  sender: NodeId;
  from: number;
  to: number;
  at: NodeId;
}

/** Vocabulary of reliable multicast over IP multicast. */
export interface IpMulticast<P = string> {
  state: {
    /** `outside`: in no view. `blocked`: the group is changing. */
    phase: "outside" | "open" | "blocked";
    view: number;
    /** The members of the current view, ascending. */
    members: NodeId[];
    /** This node's index among them; −1 outside. */
    me: number;
    /** One per member. */
    streams: Stream<P>[];
    /** Sent by the user and not multicast yet. */
    waiting: P[];
    /** The total size of this node's unstable messages. */
    unstableBytes: number;
    /** Which timers run. */
    isNacking: boolean;
    isAskingAgain: boolean;
    isRepairing: boolean;
    /** Whether the timer `session` runs, and for what: to acknowledge soon, or to report unstable messages. */
    talk: "none" | "soon" | "later";
    /** The number of other nodes' messages received since this node last acknowledged. */
    fresh: number;
    /** A node that lacks a message, or does not know that all are stable, has asked for acknowledgements. */
    hasRequest: boolean;
    /** Whether this node has sent a message since `session` was armed. */
    hasSpoken: boolean;
    /** The number of repeated requests, and of session messages about unstable messages, since the last progress. */
    attempts: number;
    repeats: number;
    /** Requested messages whose `repair` is not "none". */
    repairs: Place[];
    /**
     * While the group changes: the messages that this node must obtain first. `holders`: the nodes that hold the cut, by
     * member.
     */
    fill: { round: number; cut: number[]; holders: NodeId[] } | null;
    /** R when the group began to change. Null while it does not. */
    promised: number[] | null;
  };
  message: /** A multicast: S, the sender's stable number, and R of every member. */
    | { type: "data"; view: number; number: number; stable: number; acks: number[]; payload: P }
    /** A repair by a node that has the message. `acks` belong to the repairing node. */
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
    /** `asks`: whether a node that knows more should reply. */
    | { type: "session"; view: number; acks: number[]; stable: number[]; asks: boolean };
  timer: /** Requests missing messages. */
    | "nack"
    /** Requests them again. */
    | "again"
    /** Sends a repair, unless another node has sent it. */
    | "repair"
    | "session";
  command:
    | Multicast<P>["command"]
    /** The group is changing: reports the received messages and delivers no more. */
    | { type: "flush"; round: number }
    /** Obtains all messages up to the cut from `holders`. Both are listed by member, in the order of the current view. */
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** Delivers up to the cut and starts the next view. */
    | { type: "change"; view: number; members: NodeId[]; cut: number[] }
    | { type: "eject" };
  event:
    | Multicast<P>["event"]
    /** The window and the queue of waiting messages are full. */
    | { type: "refused"; payload: P }
    /** All members have received this node's own messages of the current view up to this number. */
    | { type: "stable"; count: number }
    | GroupEvent
    /** R of every member of the current view, in the order of the members; empty outside. */
    | { type: "flushed"; round: number; received: number[] }
    | { type: "filled"; round: number };
}

export type State<P> = IpMulticast<P>["state"];
export type Ctx<P> = Context<IpMulticast<P>>;
export type Message<P, T extends IpMulticast["message"]["type"]> = Extract<IpMulticast<P>["message"], { type: T }>;

/** The maximum number of messages in one negative acknowledgement. */
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
 * The numbers that a node acknowledges. While the group changes, they do not grow: later messages may be beyond the cut,
 * and then no member delivers them even if all have them.
 */
export const acknowledged = <P>(state: State<P>): number[] => state.promised ?? receivedVector(state);

// Dropped messages: from other views, from non-members, and messages that no correct node sends. Numbers are bounded by
// this node's received ones, because no correct node is further than its reach ahead of the slowest.

type Bounds = Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">;

/** Late, early, or from a non-member. Early messages will be repaired. */
export const isOfAnotherView = <P>({ phase, view, members }: State<P>, of: number, from: NodeId): boolean =>
  phase === "outside" || of !== view || !members.includes(from);

/** Acknowledges messages that cannot have been sent. */
function isAbsurdVector<P>(state: State<P>, bounds: Bounds, acks: readonly number[]): boolean {
  return acks.length !== state.members.length || acks.some((ack, sender) => ack > highestOf(state, sender, bounds));
}

/** The highest number that a member can have used. This node knows its own exactly. */
const highestOf = <P>(state: State<P>, sender: number, bounds: Bounds): number =>
  receivedOf(state, sender) + (sender === state.me ? 0 : reachOf(bounds));

/** Whether the next view can start with this cut: this node holds all of it and has delivered nothing beyond. */
export const isCutOf = <P>(state: State<P>, cut: readonly number[]): boolean =>
  cut.length === state.members.length &&
  cut.every((last, sender) => receivedOf(state, sender) >= last && (state.streams[sender]?.delivered ?? 0) <= last);

/** Checks a data message or a repair. `from`: the original sender. */
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
