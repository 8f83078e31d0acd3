/** The vocabulary of state transfer: messages between group members, and the interface to their users. */
import type { NodeId } from "../../../../core/protocol.ts";
import { natural, oneOf, type Shape, type Shapes, struct, text, variants } from "../../../../core/shape.ts";
import { type GroupCommand, type GroupEvent, groupCommandShapes } from "../layers.ts";

/** The maximum size of a part, in UTF-8 bytes. */
export const MAX_PART_BYTES = 60_000;
/**
 * The maximum number of parts. This is enough for 16 MiB, with some slack because parts are split between characters.
 */
export const MAX_PARTS = 300;

/**
 * A member's standing with respect to the state. `seeking`: wants the state. `returning`: wants the state, and held it
 * before the others excluded this node. `lacking`: has no state and does not want it. `holding`: its user has applied
 * all deliveries so far.
 */
export type Standing = "seeking" | "returning" | "lacking" | "holding";

/** A position in the order: a view, and the number of entries delivered in that view. */
export interface Place {
  view: number;
  place: number;
}

/** An entry in the order. */
export type Entry<P> =
  | { type: "message"; payload: P }
  /**
   * A report of the sender's standing in a view. `number` encodes the view and the report's number within it; see
   * `beforeWordsOf`. `place`: the position of the state that the sender has just received, or 0. `waitingSince`: if the
   * sender wants the state, the position since which its deliveries have been waiting for the state.
   */
  | { type: "standing"; number: number; is: Standing; place: number; waitingSince: Place };

/** Exceeds the number of reports that any member makes in one view. */
const WORDS = 2 ** 20;
/**
 * Returns the number that precedes all report numbers in a view. Report numbers increase, and they identify the view.
 */
export const beforeWordsOf = (view: number): number => view * WORDS;
/** Whether the report with this number belongs to the view. */
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

/** The commands that state transfer adds to those that all multicasts have. */
export type StateCommand =
  /** The user requests the state and all later deliveries. */
  | { type: "seek" }
  /** The user no longer wants the state and does not provide it. */
  | { type: "lack" }
  /** The requested state, as of the given position in the given view. */
  | { type: "snapshot"; view: number; place: number; parts: string[] };

/** Events about the state, for the user. */
export type StateEvent =
  /** From now on, deliveries have to wait, because this node was excluded and its state may have diverged. */
  | { type: "waiting" }
  /** The awaited state covers all deliveries so far. They keep waiting in case it does not arrive. */
  | { type: "placed" }
  /** The state has arrived. Deliveries since `placed` come after it. */
  | { type: "state"; parts: string[] }
  /** No member has a state, so this user's own becomes the group's. All waiting deliveries come after it. */
  | { type: "founded" }
  /** The user must return its state as of this event, with all earlier deliveries applied and no later ones. */
  | { type: "wanted"; view: number; place: number };

/** Vocabulary of state transfer. */
export type Transfer<P> = {
  state: {
    standing: Standing;
    view: number;
    /** The members, in ascending order. */
    members: NodeId[];
    membership: "member" | "changing" | "outside";
    /** The position of the last delivery in this view. */
    place: number;
    /** The number of this node's latest report. */
    spoken: number;
    /** The number of the first report that this node has made since its user last requested the state. */
    since: number;
    /** The position since which deliveries have been waiting for a state. Null until this node is in a view. */
    waitingSince: Place | null;
    /**
     * The members' standings that have been delivered in this view, keyed by member. At each position, they are the
     * same at all members.
     */
    known: Record<NodeId, { number: number; is: Standing; waitingSince: Place }>;
    /**
     * For each seeker that is waiting for a state, the source and the state's position. At each position, they are the
     * same at all members.
     */
    sources: Record<NodeId, { from: NodeId; place: number }>;
    /** The parts of the state that this node has received so far. */
    parts: string[];
    /** States that this node provides or will provide. `parts` is null until its user has returned the state. */
    snapshots: { place: number; parts: string[] | null }[];
  };
  message: /** Requests the parts from `part` onward. */
    | { type: "request"; view: number; place: number; part: number }
    /** Sends one of `count` parts. */
    | { type: "part"; view: number; place: number; part: number; count: number; text: string };
  timer: "request" | "repeat";
  command:
    | { type: "deliver"; from: NodeId; payload: Entry<P>; id: string }
    | Exclude<GroupCommand, { type: "stable" }>
    /** The order had no room for a report from this node. */
    | { type: "refuse" }
    /** Any other event from the order, for this node's user. */
    | { type: "pass"; event: OtherEvent }
    | StateCommand;
  event:
    | { type: "say"; payload: Entry<P> }
    | { type: "delivered"; from: NodeId; payload: P; id: string }
    | GroupEvent
    | OtherEvent
    | StateEvent;
};

/** Events from the order's carrier. */
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
