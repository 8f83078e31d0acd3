/** The vocabulary of ip-multicast (state, messages and events), and checks for invalid messages. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, type Shape, type Shapes, struct } from "../../../core/shape.ts";
import { count, flag, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { type GroupEvent, MAX_MEMBERS, type Multicast } from "../parts/layers.ts";

/** The option table of ip-multicast. */
export const ipMulticastOptions = optionTable(
  "ip-multicast",
  {
    begin: option(
      oneOf("inside", "outside"),
      "inside",
      "with `inside`, all nodes form the group permanently; with `outside`, the group begins when the `change` command installs the first view",
    ),
    inOrder: flag(
      true,
      "whether a message waits for earlier messages from its sender; if `false`, each message is delivered once, on arrival, in any order; must be `true` with views",
    ),
    sessions: flag(
      true,
      "whether nodes periodically report which messages they have received and which are not stable",
    ),
    nackMs: positive(
      5,
      "the minimum time before a node requests a missing message; the actual time is random, up to twice as long",
    ),
    repairMs: positive(
      25,
      "the minimum time before a node other than the sender repairs a loss; the actual time is random, up to twice as long; must exceed a round trip",
    ),
    repeatMs: positive(50, "the wait before a missing message is requested again, doubled each time"),
    maxRepeatMs: positive(1_000, "the longest wait before a missing message is requested again"),
    ackMs: positive(
      10,
      "a received message is acknowledged after this time, unless another message carries the acknowledgement",
    ),
    ackEvery: count(16, "an acknowledgement is sent after this many received messages"),
    promptAcks: flag(
      false,
      "whether a message is acknowledged at once if its sender has no other message in flight and may be waiting for the acknowledgement",
    ),
    sessionMs: positive(100, "the wait before messages that are not stable are reported, doubled each time"),
    maxSessionMs: positive(1_000, "the longest wait before messages that are not stable are reported"),
    maxRepeats: option(
      nullable(natural),
      null,
      "the maximum number of consecutive reports without progress; `null` for no limit until the group changes",
    ),
    windowMessages: count(256, "how many of its own messages a node may multicast before the first of them is stable"),
    windowBytes: count(4_194_304, "how many bytes of its own messages a node may multicast before the first is stable"),
    maxWaiting: whole(1_024, "how many more messages may wait for room in the window"),
  },
  ({ begin, inOrder }, refuse) => {
    if (begin === "outside" && !inOrder) refuse("inOrder", "true with views");
  },
);

/** Options of `ipMulticast()`. */
export type IpMulticastOptions = OptionsOf<typeof ipMulticastOptions>;

/**
 * Returns how many messages a member may be ahead of the slowest one. When the group changes, a member also sends the
 * messages that are waiting for its window.
 */
export const reachOf = ({ windowMessages, maxWaiting }: Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">) =>
  windowMessages + maxWaiting;

/**
 * Returns the number of a member's own unstable messages that always fit, regardless of their size: one message in the
 * window, and all waiting messages.
 * @throws UsageError if an option is unknown or out of range.
 */
export const sureRoom = (given: Partial<IpMulticastOptions> | undefined): number =>
  ipMulticastOptions.settle(given).maxWaiting + 1;

/** Waits that double up to a bound. Their number may be limited. */
interface Patience {
  waitMs(times: number): number;
  /** Counts one more repetition, up to a count beyond which more repetitions make no difference. */
  next(times: number): number;
  isOver(times: number): boolean;
}

/** Creates waits that double from `firstMs` up to `maxMs`. */
export function patience(firstMs: number, maxMs: number, maxRepeats: number | null): Patience {
  const most = maxRepeats ?? Math.max(0, Math.ceil(Math.log2(maxMs / firstMs)));
  return {
    waitMs: (times) => Math.min(maxMs, firstMs * 2 ** times),
    next: (times) => Math.min(times + 1, most),
    isOver: (times) => times === maxRepeats,
  };
}

/** Options that repeat requests at constant intervals, so that the states in a run repeat. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };

/** A message in the buffer, either held back or kept until all members have it. */
export interface Kept<P> {
  payload: P;
  /**
   * `owed`: the message has been requested, and this node will send it unless another node does. `recent`: it has just
   * been sent.
   */
  repair: "none" | "owed" | "recent";
}

/** This node's knowledge of one member's messages, which are numbered from 1. */
export interface Stream<P> {
  /** For each member, in the order of `members`, the last message before its first gap. This node's own entry is R. */
  acks: number[];
  /** The last message that all members have received, along with all earlier ones. */
  stable: number;
  /** The last delivered number: R, unless the group is changing. */
  delivered: number;
  /** The highest number that any node has mentioned. */
  known: number;
  /** The last freed message. It and all earlier messages are stable and delivered. */
  freed: number;
  /** The messages from number `freed` + 1 onward. Missing messages are null. */
  kept: (Kept<P> | null)[];
  /** The last message to request when `nack` expires, if it is missing. Later messages may just be delayed. */
  noticed: number;
  /** The last message covered by requests so far, from this node or another. */
  requested: number;
  /** The last message to request again when `again` expires, if it is still missing. */
  overdue: number;
}

/** Identifies a message by its number and its sender's index among the members. */
export interface Place {
  sender: number;
  number: number;
}

/** A range of requested messages from one sender. `at`: the node that should answer at once. */
export interface Wanted {
  sender: NodeId;
  from: number;
  to: number;
  at: NodeId;
}

/** Vocabulary of reliable multicast over IP multicast. */
export interface IpMulticast<P = string> {
  /** The state of a member. */
  state: {
    /** `outside`: the node is not in a view. `blocked`: the group is changing. */
    phase: "outside" | "open" | "blocked";
    view: number;
    /** The members of the current view, in ascending order. */
    members: NodeId[];
    /** This node's index among the members. −1 if the node is outside. */
    me: number;
    /** One stream per member. */
    streams: Stream<P>[];
    /** Messages that the user has sent but that have not been multicast yet. */
    waiting: P[];
    /** The total size of this node's unstable messages. */
    unstableBytes: number;
    /** Whether the `nack` timer is running. */
    isNacking: boolean;
    isAskingAgain: boolean;
    isRepairing: boolean;
    /**
     * The purpose of the `session` timer: to acknowledge soon, or to report unstable messages later. `none` if it is
     * not running.
     */
    talk: "none" | "soon" | "later";
    /** The number of messages received from other nodes since this node last acknowledged any. */
    fresh: number;
    /**
     * Whether another node has requested acknowledgements, because it lacks a message or does not know that all
     * messages are stable.
     */
    hasRequest: boolean;
    /** Whether this node has sent a message since the `session` timer was started. */
    hasSpoken: boolean;
    /**
     * The number of repeated requests, or of session messages about unstable messages, since progress was last made.
     */
    attempts: number;
    repeats: number;
    /** The messages whose `repair` is not "none". */
    repairs: Place[];
    /**
     * While the group is changing, the messages that this node must obtain first. `holders`: for each member, the node
     * that holds its messages up to the cut.
     */
    fill: { round: number; cut: number[]; holders: NodeId[] } | null;
    /** The value of R when the group began to change. Null if the group is not changing. */
    promised: number[] | null;
  };
  /** The datagrams between members. */
  message: /** A multicast message, with S, the sender's stable number, and R for every member. */
    | { type: "data"; view: number; number: number; stable: number; acks: number[]; payload: P }
    /** A repair from a node that has the message. `acks` belong to that node. */
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
  /** The timers of a member. */
  timer: /** Requests missing messages. */
    | "nack"
    /** Requests missing messages again. */
    | "again"
    /** Sends a repair, unless another node has already sent it. */
    | "repair"
    | "session";
  /** Commands from the user and from the view agreement. */
  command:
    | Multicast<P>["command"]
    /** Reports the received messages and stops delivering, because the group is changing. */
    | { type: "flush"; round: number }
    /** Obtains all messages up to the cut from `holders`. Both lists are in the order of the current view's members. */
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** Delivers up to the cut and starts the next view. */
    | { type: "change"; view: number; members: NodeId[]; cut: number[] }
    | { type: "eject" };
  /** Events for the user and for the view agreement. */
  event:
    | Multicast<P>["event"]
    /** The message was refused, because the window and the queue of waiting messages are full. */
    | { type: "refused"; payload: P }
    /** All members have received this node's own messages in the current view, up to this number. */
    | { type: "stable"; count: number }
    | GroupEvent
    /** R for every member of the current view, in the order of the members. Empty if the node is outside. */
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

/** Returns R for one member. */
export const receivedOf = <P>(state: State<P>, sender: number): number => state.streams[sender]?.acks[state.me] ?? 0;

/** Returns R: the number of messages received from each member. */
export const receivedVector = <P>({ streams, me }: State<P>): number[] => streams.map(({ acks }) => acks[me] as number);

/**
 * Returns the numbers that a node acknowledges. They do not grow while the group is changing, because later messages
 * may be beyond the cut, and then no member delivers them even if all members have them.
 */
export const acknowledged = <P>(state: State<P>): number[] => state.promised ?? receivedVector(state);

// Checks for messages to drop: messages from other views, from non-members, and messages that no correct node sends.
// The numbers that this node has received bound the valid numbers, because no correct node is further ahead of the
// slowest than its reach.

type Bounds = Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">;

/**
 * Whether a message is from an earlier or later view, or from a non-member. Messages from a later view will be
 * repaired.
 */
export const isOfAnotherView = <P>({ phase, view, members }: State<P>, of: number, from: NodeId): boolean =>
  phase === "outside" || of !== view || !members.includes(from);

/** Whether the vector acknowledges messages that cannot have been sent. */
function isAbsurdVector<P>(state: State<P>, bounds: Bounds, acks: readonly number[]): boolean {
  return acks.length !== state.members.length || acks.some((ack, sender) => ack > highestOf(state, sender, bounds));
}

/** Returns the highest number that a member can have used. For this node itself, the number is exact. */
const highestOf = <P>(state: State<P>, sender: number, bounds: Bounds): number =>
  receivedOf(state, sender) + (sender === state.me ? 0 : reachOf(bounds));

/**
 * Whether the next view can start with this cut, which requires that this node holds all messages in the cut and has
 * delivered none beyond it.
 */
export const isCutOf = <P>(state: State<P>, cut: readonly number[]): boolean =>
  cut.length === state.members.length &&
  cut.every((last, sender) => receivedOf(state, sender) >= last && (state.streams[sender]?.delivered ?? 0) <= last);

/** Whether no correct member can have sent the data message or repair. `from`: the original sender. */
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

/** Whether no correct member can have sent the nack. */
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

/** Whether no correct member can have sent the session message. */
export function isAbsurdSession<P>(state: State<P>, bounds: Bounds, { acks, stable }: Message<P, "session">): boolean {
  return (
    isAbsurdVector(state, bounds, acks) ||
    stable.length !== state.members.length ||
    stable.some((upTo, sender) => upTo > receivedOf(state, sender))
  );
}
