/** What nodes know of tokens, and what they say to each other. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, real, type Shape, struct } from "../../../core/shape.ts";

/** A token in one of its lives. Of two with one id, the later counts: (epoch, moves), and at last the holder's id. */
export interface Token {
  id: number;
  /** How often it was lost and made anew. */
  epoch: number;
  /** How often it has moved, or tried to, in this epoch. */
  moves: number;
}

/** What a node has heard of a token. */
export interface Sighting extends Token {
  holder: NodeId;
  /** Rounds since the holder said so. */
  age: number;
  /** Whether its holder is a super-peer. */
  isSettled: boolean;
}

/** A token whose holder has named this node its heir. */
export interface Legacy extends Token {
  holder: NodeId;
  /** Rounds since the holder said so. */
  silence: number;
}

export type SuperPeerTokens = {
  state: {
    neighbours: NodeId[];
    token: Token | null;
    /** Rounds for which the token has been here, up to what a super-peer needs. */
    held: number;
    /** Rounds that are left for a move to come to an end; 0 while none is under way. */
    moving: number;
    heir: NodeId | null;
    legacies: Legacy[];
    /** Of tokens elsewhere, the nearest first. */
    known: Sighting[];
    /** The node that this one gossips with next. */
    turn: number;
    /** The one that it gossiped with last, until that one answers. */
    partner: NodeId | null;
    /** Neighbours that did not answer the last time. */
    silent: NodeId[];
    superPeer: NodeId | null;
  };
  message: /** What I know of tokens; tell me what you know. */
    | { type: "gossip"; tokens: Sighting[] }
    | { type: "answer"; tokens: Sighting[] }
    /** Goes from node to node, each nearer to the goal; the last takes it. */
    | { type: "move"; token: Token; goal: number[]; holder: NodeId }
    | { type: "taken"; token: Token }
    | { type: "refused"; token: Token }
    /** Should I fall silent, make this token anew. Or: no longer. */
    | { type: "heir"; token: Token; isOver: boolean }
    /** I am the heir of this token, and have not heard of you: do you still hold it? */
    | { type: "check"; token: Token };
  timer: "round";
  /** Begins a round now. */
  command: { type: "call" };
  /** The node's super-peer is another one than before. */
  event: { type: "elected"; leader: NodeId };
  /** The node has run: the token that it began with is elsewhere by now, or was lost with it. */
  record: { type: "begun" };
};

export type State = SuperPeerTokens["state"];
export type Ctx = Context<SuperPeerTokens>;

/** So many tokens a node knows of at most: those nearest to it. */
export const MAX_KNOWN = 12;
const MAX_DIMENSIONS = 16;

const token: Shape<Token> = struct<Token>({ id: natural, epoch: natural, moves: natural });
const sightings = list(
  struct<Sighting>({ id: natural, epoch: natural, moves: natural, holder: natural, age: natural, isSettled: boolean }),
  MAX_KNOWN + 1,
);

export const shapes = {
  message: {
    gossip: { tokens: sightings },
    answer: { tokens: sightings },
    move: { token, goal: list(real, MAX_DIMENSIONS), holder: natural },
    taken: { token },
    refused: { token },
    heir: { token, isOver: boolean },
    check: { token },
  },
  command: { call: {} },
  record: { begun: {} },
} as const;

/** Whether the first is the later life of one token. Equal lives at two nodes: the higher id keeps it. */
export function isLater(a: Token & { holder: NodeId }, b: Token & { holder: NodeId }): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.moves !== b.moves ? a.moves > b.moves : a.holder > b.holder;
}
