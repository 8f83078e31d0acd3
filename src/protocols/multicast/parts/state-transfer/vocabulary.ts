/** What members of a group with state transfer say to each other, and to who uses them. */
import type { NodeId } from "../../../../core/protocol.ts";
import { natural, oneOf, type Shape, type Shapes, struct, text, variants } from "../../../../core/shape.ts";
import { type GroupCommand, type GroupEvent, groupCommandShapes } from "../layers.ts";

/** Of one part, in UTF-8. */
export const MAX_PART_BYTES = 60_000;
/** Of a state: 16 MiB and what splitting between characters leaves empty. */
export const MAX_PARTS = 300;

/**
 * `seeking`: wants the state. `returning`: the same, and had it before the others left this node out. `lacking`: has no state
 * and wants none. `holding`: its user has applied all that was delivered up to here.
 */
export type Standing = "seeking" | "returning" | "lacking" | "holding";

/** A position in the order: a view, and how many entries had been delivered in it. */
export interface Place {
  view: number;
  place: number;
}

/** What goes through the order. */
export type Entry<P> =
  | { type: "message"; payload: P }
  /**
   * How its sender stands in the view in which it says so. `number`: of that view, and which of its words there it is: see
   * `beforeWordsOf`. `place`: where the state was taken that it has got; 0 if it is not about that.
   * `waitingSince`: if the sender wants the state, the position from which on its deliveries wait for it.
   */
  | { type: "standing"; number: number; is: Standing; place: number; waitingSince: Place };

/** Nobody says so many words on its standing in one view. */
const WORDS = 2 ** 20;
/** Words said in a view are numbered from this on, beginning with the next: so their numbers grow, and tell in which view they were said. */
export const beforeWordsOf = (view: number): number => view * WORDS;
/** Whether a word with this number was said in that view. */
export const isOfView = (number: number, view: number): boolean => Math.floor(number / WORDS) === view;

export const entryShape = <P>(payload: Shape<P>): Shape<Entry<P>> =>
  variants<Entry<P>>({
    message: { payload },
    standing: {
      number: natural,
      is: oneOf("seeking", "returning", "lacking", "holding"),
      place: natural,
      waitingSince: struct<Place>({ view: natural, place: natural }),
    },
  });

/** What the user of state transfer gives and hears, beside what it has of every multicast. */
export type StateCommand =
  /** It wants the state, and what is delivered from there on. */
  | { type: "seek" }
  /** It wants it no more, and gives none. */
  | { type: "lack" }
  /** The state that it was asked for, as it was at that place of that view. */
  | { type: "snapshot"; view: number; place: number; parts: string[] };

export type StateEvent =
  /** What is delivered from here on waits: this node was left out, and its state is one of many pasts. */
  | { type: "waiting" }
  /** The state that is to come covers all deliveries so far. They still wait, in case it does not come. */
  | { type: "placed" }
  /** The state. Deliveries since `placed` follow it. */
  | { type: "state"; parts: string[] }
  /** No member has a state: this user's own becomes the state of the group, and all waiting deliveries follow it. */
  | { type: "founded" }
  /** The user is to say its state as it is when it has applied all that was delivered before this, and nothing after. */
  | { type: "wanted"; view: number; place: number };

export type Transfer<P> = {
  state: {
    standing: Standing;
    view: number;
    /** Ascending. */
    members: NodeId[];
    membership: "member" | "changing" | "outside";
    /** Of what has been delivered in this view, the last. */
    place: number;
    /** The number of the last of its own words on its standing. */
    spoken: number;
    /** The first of its words since its user wanted the state last. */
    since: number;
    /** The position from which on deliveries wait for a state; null before this node is in a view. */
    waitingSince: Place | null;
    /** What has been delivered of members' standings in this view: the same everywhere at each place. */
    known: Record<NodeId, { number: number; is: Standing; waitingSince: Place }>;
    /** Of seekers that wait for a state: who gives it to them, and as of which place. The same everywhere, too. */
    sources: Record<NodeId, { from: NodeId; place: number }>;
    /** What this node has got so far of its own. */
    parts: string[];
    /** States that this node gives, or is to give: null until its user has said them. */
    snapshots: { place: number; parts: string[] | null }[];
  };
  message: /** The parts from that one on are wanted. */
    | { type: "request"; view: number; place: number; part: number }
    /** One of so many. */
    | { type: "part"; view: number; place: number; part: number; count: number; text: string };
  timer: "request" | "repeat";
  command:
    | { type: "deliver"; from: NodeId; payload: Entry<P>; id: string }
    | Exclude<GroupCommand, { type: "stable" }>
    /** The order had no room for a word of this node's on its standing. */
    | { type: "refuse" }
    /** Whatever else the order says, for its user. */
    | { type: "pass"; event: OtherEvent }
    | StateCommand;
  event:
    | { type: "say"; payload: Entry<P> }
    | { type: "delivered"; from: NodeId; payload: P; id: string }
    | GroupEvent
    | OtherEvent
    | StateEvent;
};

/** Of the order's carrier. */
type OtherEvent = { type: "stable"; count: number } | { type: "left" | "stalled" | "resumed" };

export const messageShapes: Shapes<Transfer<never>["message"]> = {
  request: { view: natural, place: natural, part: natural },
  part: { view: natural, place: natural, part: natural, count: natural, text: text(MAX_PART_BYTES) },
};

const { block, install, eject } = groupCommandShapes;
export const commandShapes = {
  block,
  install,
  eject,
  refuse: {},
  seek: {},
  lack: {},
  snapshot: {
    view: natural,
    place: natural,
    parts: { kind: "list", items: text(MAX_PART_BYTES), maxItems: MAX_PARTS } as Shape<string[]>,
  },
};
