/** What proposers, acceptors and learners of Paxos remember, say and journal. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { natural, nullable, type Shapes, struct, text } from "../../../core/shape.ts";

/** The number of a proposal: unique, since the node is part of it and its round only grows. */
export interface Ballot {
  round: number;
  node: NodeId;
}

export interface Proposal {
  ballot: Ballot;
  value: string;
}

export type Paxos = {
  /** Unless the options say otherwise, every node is a proposer, an acceptor and a learner. */
  state: {
    proposer: Proposer;
    /** The highest round that this node knows of. */
    round: number;
    /** The acceptor ignores all ballots below this one. */
    promised: Ballot | null;
    /** What the acceptor has accepted last. */
    accepted: Proposal | null;
    /** The learner: what each acceptor has accepted last, as far as it knows. */
    learnt: Record<NodeId, Proposal>;
    decided: string | null;
    /** Of a proposer that has decided: learners that may not know it, and how often they were reminded. */
    silent: NodeId[];
    reminders: number;
  };
  message:
    | { type: "prepare"; ballot: Ballot }
    | { type: "promise"; ballot: Ballot; accepted: Proposal | null }
    | { type: "accept"; proposal: Proposal }
    | { type: "accepted"; proposal: Proposal }
    | { type: "nack"; ballot: Ballot; promised: Ballot }
    /** To a learner, or to a node that asks for what is decided already. */
    | { type: "decided"; value: string }
    /** Of a learner that is told what it knows. */
    | { type: "learnt" };
  timer: "retry" | "learn";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
  record:
    | { type: "promised"; ballot: Ballot }
    | { type: "accepted"; proposal: Proposal }
    | { type: "decided"; value: string };
};

/** `value` is the node's own; what it may ask the acceptors to accept is another if one of them has accepted before. */
type Proposer =
  | { is: "idle" }
  | { is: "preparing"; value: string; ballot: Ballot; promises: Record<NodeId, Proposal | null> }
  | { is: "proposing"; value: string; ballot: Ballot }
  | { is: "backing off"; value: string };

export type State = Paxos["state"];
export type Ctx = Context<Paxos>;

const ballotShape = struct<Ballot>({ round: natural, node: natural });
const valueShape = text(65_536);
const proposalShape = struct<Proposal>({ ballot: ballotShape, value: valueShape });

export const shapes: {
  readonly message: Shapes<Paxos["message"]>;
  readonly command: Shapes<Paxos["command"]>;
  readonly record: Shapes<Paxos["record"]>;
} = {
  message: {
    prepare: { ballot: ballotShape },
    promise: { ballot: ballotShape, accepted: nullable(proposalShape) },
    accept: { proposal: proposalShape },
    accepted: { proposal: proposalShape },
    nack: { ballot: ballotShape, promised: ballotShape },
    decided: { value: valueShape },
    learnt: {},
  },
  command: { propose: { value: valueShape } },
  record: {
    promised: { ballot: ballotShape },
    accepted: { proposal: proposalShape },
    decided: { value: valueShape },
  },
};

export const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
export const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;
