/** The words of ip-multicast: its state, what is sent and said, and which messages make no sense. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, type Shape, type Shapes, struct } from "../../../core/shape.ts";
import { type GroupEvent, MAX_MEMBERS, type Multicast } from "../parts/layers.ts";

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
