/** Messages between members of a group with state transfer, and the interface to their users. */
import type { NodeId } from "../../../../core/protocol.ts";
import { natural, oneOf, type Shape, type Shapes, struct, text, variants } from "../../../../core/shape.ts";
import { type GroupCommand, type GroupEvent, groupCommandShapes } from "../layers.ts";

/** The maximum size of one part, in bytes of UTF-8. */
export const MAX_PART_BYTES = 60_000;
/** The maximum number of parts: 16 MiB, plus slack from splitting between characters. */
export const MAX_PARTS = 300;

/**
 * `seeking`: wants the state. `returning`: the same, and had it before the others left this node out. `lacking`: has no
 * state and wants none. `holding`: its user has applied all deliveries up to here.
 */
export type Standing = "seeking" | "returning" | "lacking" | "holding";

/** A position in the order: a view, and the number of entries delivered in it. */
export interface Place {
  view: number;
  place: number;
}

/** The entries of the order. */
export type Entry<P> =
  | { type: "message"; payload: P }
  /**
   * A report of the sender's standing in a view. `number` encodes the view and the number of the report in it: see
   * `beforeWordsOf`. `place`: the position of the state that the sender has received; 0 if the report is not about that.
   * `waitingSince`: if the sender wants the state, its deliveries since that position wait for it.
   */
  | { type: "standing"; number: number; is: Standing; place: number; waitingSince: Place };

/** More than the reports of any member in one view. */
const WORDS = 2 ** 20;
/** Reports in a view have the following numbers: they increase, and they identify the view. */
export const beforeWordsOf = (view: number): number => view * WORDS;
/** Whether a report with this number belongs to that view. */
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

/** The commands and events of state transfer, in addition to the common ones of all multicasts. */
export type StateCommand =
  /** The user requests the state and all later deliveries. */
  | { type: "seek" }
  /** The user no longer wants the state and provides none. */
  | { type: "lack" }
  /** The requested state, as of that position in that view. */
  | { type: "snapshot"; view: number; place: number; parts: string[] };

export type StateEvent =
  /** Deliveries from here on wait: this node was left out, and its state may have diverged. */
  | { type: "waiting" }
  /** The state to come covers all deliveries so far. They still wait, in case it does not arrive. */
  | { type: "placed" }
  /** The state. Deliveries since `placed` follow it. */
  | { type: "state"; parts: string[] }
  /** No member has a state: this user's own becomes the state of the group, and all waiting deliveries follow it. */
  | { type: "founded" }
  /** The user must return its state after it has applied all deliveries before this event, and none after. */
  | { type: "wanted"; view: number; place: number };

export type Transfer<P> = {
  state: {
    standing: Standing;
    view: number;
    /** Ascending. */
    members: NodeId[];
    membership: "member" | "changing" | "outside";
    /** The position of the last delivery in this view. */
    place: number;
    /** The number of its own latest report. */
    spoken: number;
    /** The number of its first report since its user last requested the state. */
    since: number;
    /** Deliveries since this position wait for a state. Null before this node is in a view. */
    waitingSince: Place | null;
    /** The delivered standings of members in this view. At each position, all members have the same ones. */
    known: Record<NodeId, { number: number; is: Standing; waitingSince: Place }>;
    /** For seekers that wait for a state: its source and its position. The same at all members too. */
    sources: Record<NodeId, { from: NodeId; place: number }>;
    /** The parts of the state that this node has received so far. */
    parts: string[];
    /** States that this node provides or will provide. Null until its user has returned them. */
    snapshots: { place: number; parts: string[] | null }[];
  };
  message: /** Requests the parts from `part` on. */
    | { type: "request"; view: number; place: number; part: number }
    /** One of `count` parts. */
    | { type: "part"; view: number; place: number; part: number; count: number; text: string };
  timer: "request" | "repeat";
  command:
    | { type: "deliver"; from: NodeId; payload: Entry<P>; id: string }
    | Exclude<GroupCommand, { type: "stable" }>
    /** The order had no room for a report of this node. */
    | { type: "refuse" }
    /** Any other event of the order, for its user. */
    | { type: "pass"; event: OtherEvent }
    | StateCommand;
  event:
    | { type: "say"; payload: Entry<P> }
    | { type: "delivered"; from: NodeId; payload: P; id: string }
    | GroupEvent
    | OtherEvent
    | StateEvent;
};

/** Events of the order's carrier. */
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
