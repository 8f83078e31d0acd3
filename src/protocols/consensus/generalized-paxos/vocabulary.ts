/** The words of Generalized Paxos: votes for histories, eras between checkpoints, and the messages about them. */

import type { Chunk } from "../../../core/chunk.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, perNode, type Shapes, struct } from "../../../core/shape.ts";
import {
  type Command,
  commandShape,
  MAX_MEMBERS,
  type ReplicatedLog,
  snapshotShape,
} from "../family/replicated-log.ts";
import { type Ballot, type Balloting, ballotShape, type Round, roundShape } from "../parts/ballots.ts";

/** Rounds of a ballot with an odd step are fast: acceptors append what proposers send them. In step 0 the coordinator alone appends. */
export const CLASSIC = 0;
export const FAST = 1;
export const isFast = ({ step }: Round): boolean => step % 2 === FAST;

/** bal and val in the paper. */
export interface Vote {
  round: Round;
  history: Command[];
  /** So much of it stands as the coordinator began the round; the acceptor itself has appended the rest. */
  begun: number;
  /** The acceptor appends no more in this round: its vote is a promise for the next one, too. */
  closed: boolean;
}

/** An era of the log is one c-struct, from one checkpoint to the next. */
export interface Promised {
  era: number;
  vote: Vote | null;
}

export interface Snapshot {
  index: number;
  snapshot: Chunk[];
  /** The era in which it was taken, the place before that, and what it holds of that era. */
  era: number;
  base: number;
  learnt: Command[];
  /** Of each client, the number of its last command up to there. */
  latest: PerNode<number>;
}

export type Coordinator =
  | { is: "none" }
  | { is: "preparing"; promises: Record<NodeId, Promised> }
  | { is: "leading"; joined: NodeId[]; watched: number | null };

export type GeneralizedPaxos = {
  /** Open: from that era on, fast rounds of the promised ballot begin with the empty history. */
  state: Balloting & {
    era: number;
    /** How many places the eras before this one take. */
    base: number;
    /** Of this era: the acceptor's vote, what each acceptor is known to have voted for, and what is learnt, in this node's order. */
    vote: Vote | null;
    heard: Record<NodeId, Vote>;
    learnt: Command[];
    /** What the acceptor is to append as soon as it may. */
    pending: Command[];
    /** The number of each client's last command that is learnt. */
    latest: Record<NodeId, number>;
    snapshot: Snapshot | null;
    /** Eras that are over, from that of the snapshot on. */
    finished: { commands: Command[] }[];
    coordinator: Coordinator;
  };
  message:
    | { type: "propose"; command: Command }
    | { type: "prepare"; ballot: Ballot }
    | ({ type: "promise"; ballot: Ballot } & Promised)
    /** Phase 2a: this history, and from an era on whatever proposers send. */
    | { type: "accept"; era: number; round: Round; history: Command[]; open: number | null }
    /** Phase 2b. */
    | ({ type: "accepted"; era: number } & Vote)
    | { type: "nack"; promised: Ballot }
    | { type: "heartbeat"; ballot: Ballot; open: number | null; era: number; learnt: number }
    | { type: "catchUp"; era: number }
    | { type: "learnt"; era: number; commands: Command[]; isOver: boolean }
    | ({ type: "snapshot" } & Snapshot);
  timer: "patience" | "heartbeat" | "recover";
  command: Extract<ReplicatedLog["command"], { type: "propose" | "compact" }>;
  event: Extract<ReplicatedLog["event"], { type: "decided" | "installed" | "led" }>;
  record:
    | { type: "promised"; ballot: Ballot }
    | ({ type: "voted"; era: number } & Vote)
    | { type: "finished"; commands: Command[] }
    | ({ type: "snapshot" } & Snapshot);
};

export type State = GeneralizedPaxos["state"];

/** In one history: an era has twice `checkpointEvery` commands at most, and what one coordinator adds. */
const MAX_HISTORY = 4_096;

const historyShape = list(commandShape, MAX_HISTORY);
const vote = { round: roundShape, history: historyShape, begun: natural, closed: boolean };
const latest = perNode(natural, MAX_MEMBERS);
const snapshot = { index: natural, snapshot: snapshotShape, era: natural, base: natural, learnt: historyShape, latest };

export const messageShapes: Shapes<GeneralizedPaxos["message"]> = {
  propose: { command: commandShape },
  prepare: { ballot: ballotShape },
  promise: { ballot: ballotShape, era: natural, vote: nullable(struct<Vote>(vote)) },
  accept: { era: natural, round: roundShape, history: historyShape, open: nullable(natural) },
  accepted: { era: natural, ...vote },
  nack: { promised: ballotShape },
  heartbeat: { ballot: ballotShape, open: nullable(natural), era: natural, learnt: natural },
  catchUp: { era: natural },
  learnt: { era: natural, commands: historyShape, isOver: boolean },
  snapshot,
};

export const recordShapes: Shapes<GeneralizedPaxos["record"]> = {
  promised: { ballot: ballotShape },
  voted: { era: natural, ...vote },
  finished: { commands: historyShape },
  snapshot,
};
