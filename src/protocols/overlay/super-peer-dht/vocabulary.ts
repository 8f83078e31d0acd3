/** What nodes of the ring know, and what they say to each other. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable } from "../../../core/shape.ts";

/** What a lookup is for. The first three upkeep the ring; `find` was asked for from outside. */
export type Purpose = "join" | "finger" | "superPeer" | "find";

export interface Task {
  purpose: Purpose;
  /** Which finger; 0 for other purposes. */
  finger: number;
  /** The place on the ring that is looked up. */
  place: number;
}

/** A lookup under way: the node asks one after the other itself, so that it notices who does not answer. */
export interface Lookup extends Task {
  current: NodeId;
  /** Who was asked before. */
  trail: NodeId[];
  /** Who did not answer. */
  avoid: NodeId[];
  hops: number;
}

export type SuperPeerDht = {
  state: {
    membership: "outside" | "joining" | "member";
    /** The place, among the contacts, of the one that this node asked for a way in. */
    contact: number;
    /** Whether a contact that would found the ring first has been heard of, in this turn through the contacts. */
    yields: boolean;
    predecessor: NodeId | null;
    /** Rounds since it was heard of. */
    silence: number;
    /** Clockwise, the next first; oneself where nobody else is known. */
    successors: NodeId[];
    /** Rounds in which the next one has not answered. */
    unanswered: number;
    /** Finger i: who is responsible for the identifier 2^i beyond one's own. */
    fingers: (NodeId | null)[];
    /** The finger that is refreshed next. */
    turn: number;
    /** Who is responsible for one's own identifier with all but the reserved bits cleared. */
    superPeer: NodeId | null;
    lookup: Lookup | null;
    /** Lookups that wait for the one under way. */
    waiting: Task[];
  };
  message: /** Who is responsible for this place? Not one of `avoid`. */
    | { type: "ask"; place: number; avoid: NodeId[] }
    /** That one is, or knows more. Null: I am no member, or know nobody nearer. */
    | { type: "way"; place: number; node: NodeId | null; isOwner: boolean }
    /** I take you for my successor: who are your neighbours? */
    | { type: "stabilize" }
    | { type: "neighbours"; predecessor: NodeId | null; successors: NodeId[] }
    /** I have not heard of you, and take you for my predecessor: are you there? */
    | { type: "check" }
    | { type: "present" }
    | { type: "leaving"; predecessor: NodeId | null; successors: NodeId[] };
  timer: "round" | "answer";
  command: /** Joins the ring, or, as a member, begins a round now. */
    | { type: "call" }
    | { type: "leave" }
    /** Looks up who is responsible for an identifier. */
    | { type: "find"; key: number };
  event: /** The node's super-peer is another one than before. */
  { type: "elected"; leader: NodeId } | { type: "found"; key: number; owner: NodeId; hops: number };
};

export type State = SuperPeerDht["state"];
export type Ctx = Context<SuperPeerDht>;

export const MAX_SUCCESSORS = 16;
/** So many silent nodes on one lookup, and it is given up until the next round. */
export const MAX_AVOIDED = 8;

export const shapes = {
  message: {
    ask: { place: natural, avoid: list(natural, MAX_AVOIDED) },
    way: { place: natural, node: nullable(natural), isOwner: boolean },
    stabilize: {},
    neighbours: { predecessor: nullable(natural), successors: list(natural, MAX_SUCCESSORS) },
    check: {},
    present: {},
    leaving: { predecessor: nullable(natural), successors: list(natural, MAX_SUCCESSORS) },
  },
  command: { call: {}, leave: {}, find: { key: natural } },
} as const;
