/** The words of epoch-bully: its state, what is sent, journalled and said, and what can be told from a state. */
import type { NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";

/** That nobody else is helped to lead this epoch. At first everybody has promised epoch 0, in which nobody leads, to itself. */
export interface Pledge {
  epoch: number;
  to: NodeId;
}

/** A term of leadership: who leads an epoch, with which rank. */
export interface Term {
  epoch: number;
  leader: NodeId;
  rank: number;
}

export type EpochBully = {
  state: {
    phase: Phase;
    /** Journalled. Its epoch never goes back. */
    promised: Pledge;
    /** While the timer `bound` runs: no vote for anybody but the node that the promise was made to. */
    isBound: boolean;
    /** The last promise known to have been given back by the node that it was made to. */
    released: Pledge | null;
    /** The last leader that this node has known. It follows that leader while it is bound to it. */
    term: Term | null;
    /** This node's own. */
    rank: number;
    /** Whether it stands for election. */
    isCandidate: boolean;
    /** Has let somebody higher go first, and in vain: the next time it does not. Spent by the vote that comes of it. */
    insists: boolean;
    /** How many pre-votes in a row have heard from less than a majority in time: each doubles all waits of the next election. */
    patience: number;
    /** Ascending. */
    suspected: NodeId[];
    /** How many nodes, this one included, make a majority. */
    quorum: number;
  };
  message: /** May there be an election? Changes nothing for the node that is asked. `promised`: the sender's own, so far. */
    | { type: "election"; promised: number; released: Pledge | null; rank: number }
    /** `boundTo`: nobody else may lead. `isAbove`: stands and outranks the asker. */
    | { type: "answer"; promised: number; boundTo: NodeId | null; isAbove: boolean }
    | { type: "requestVote"; epoch: number; released: Pledge | null }
    | { type: "voteGranted"; epoch: number }
    /** Announces the leader at first, and then renews its lease, round by round. */
    | { type: "coordinator"; epoch: number; round: number; rank: number }
    | { type: "confirm"; epoch: number; round: number }
    /** A majority would have the sender, which outranks the leader of the epoch, in its place. */
    | { type: "displace"; epoch: number; rank: number }
    /** The sender does not lead this epoch, or no longer, and never will again. `successor`: the node that it makes way for. */
    | { type: "resign"; epoch: number; successor: NodeId | null };
  timer: /** When the next election is called. */
    | "call"
    /** When an election that this node has called is given up. */
    | "answer"
    | "bound"
    | "renew"
    | LeaseTimer;
  command: /** Calls an election, unless this node leads, or is bound to somebody higher. */
    | { type: "call" }
    /** Nobody waits for the answer of a node that is suspected. */
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Steps down and is no longer a candidate; still follows and votes. */
    | { type: "resign" }
    /** Takes a resignation back. */
    | { type: "stand" }
    /** Of this node, from now on. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId; epoch: number }
    /** At the leader: certain that nobody else leads until the deadline. */
    | { type: "confirmed"; epoch: number }
    /** At the leader: no longer certain. */
    | { type: "deposed"; epoch: number };
  record: { type: "promised"; epoch: number; to: NodeId };
};

type Phase =
  | { is: "following" }
  /** `promised`: the highest epoch that anybody who answered has promised. */
  | { is: "preVoting"; awaited: NodeId[]; backers: NodeId[]; promised: number }
  /** A majority backs this node; the leader is asked to make way. */
  | { is: "displacing"; promised: number }
  /** Asks for votes for the epoch that it has promised itself. */
  | { is: "requestingVotes"; votes: NodeId[] }
  | { is: "leading"; round: number; confirms: NodeId[] };

type State = EpochBully["state"];

export const isSame = (a: Pledge | null, b: Pledge): boolean => a !== null && a.epoch === b.epoch && a.to === b.to;

/** Who leads in this node's eyes: itself, or the node that it is bound to. */
export function leaderOf({ phase, isBound, promised, term }: State, self: NodeId): NodeId | null {
  if (phase.is === "leading") return self;
  if (!isBound || term === null) return null;
  return term.epoch === promised.epoch && term.leader === promised.to ? term.leader : null;
}

/** Whether this node stands and outranks another. */
export const isAbove = (state: State, self: NodeId, rank: number, node: NodeId): boolean =>
  state.isCandidate && (state.rank > rank || (state.rank === rank && self > node));

export const isAboveLeader = (state: State, self: NodeId): boolean =>
  state.term !== null &&
  leaderOf(state, self) === state.term.leader &&
  isAbove(state, self, state.term.rank, state.term.leader);

export const mayLead = ({ phase }: State): boolean => phase.is === "requestingVotes" || phase.is === "leading";

export const isConfirmed = ({ phase, quorum }: State): boolean =>
  phase.is === "leading" && phase.confirms.length + 1 >= quorum;

/** Whether this node must not help `node` to lead, as the one that it is sure of now may still lead. */
export const isBoundAgainst = ({ phase, isBound, promised }: State, node: NodeId): boolean =>
  phase.is === "leading" || (isBound && promised.to !== node);

/** Of a term that has ended, as far as this node knows. Lower epochs are ignored. */
export const isOver = ({ promised, released }: State, term: Pledge): boolean =>
  term.epoch < promised.epoch || isSame(released, term);
