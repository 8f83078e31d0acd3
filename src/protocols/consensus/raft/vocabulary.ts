/** The words of Raft: its state, what is sent, journalled and said, and what can be told from a state. */
import type { Chunk } from "../../../core/chunk.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";
import type { Command, Members, Refusal, ReplicatedLog } from "../family/replicated-log.ts";

/** §6. While `outgoing` is there the configuration is joint: a majority of `voters` and one of `outgoing` decide together. */
export interface Configuration extends Members {
  outgoing: NodeId[] | null;
}

export type Entry =
  | { type: "command"; term: number; command: Command }
  /** What a leader appends first, so that it commits an entry of its own term. */
  | { type: "noop"; term: number }
  | { type: "configuration"; term: number; configuration: Configuration };

/** `entries[i]` stands at index `offset` + 1 + i. What comes before is in the snapshot, and its last entry was of `offsetTerm`. */
export interface Log {
  offset: number;
  offsetTerm: number;
  entries: Entry[];
}

/** Stands for all entries up to `index`. At index 0 it is empty: what all nodes begin with. */
export interface Snapshot {
  index: number;
  term: number;
  configuration: Configuration;
  chunks: Chunk[];
}

/** A snapshot that is being received: its first chunks. */
export type Incoming = Omit<Snapshot, "configuration">;

/** A read that was asked for at a node, and the commit index from which on it is up to date. */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
}

/** What a leader knows of another node. `next`: of the entry to send next. `match`: up to where its log is the leader's. */
export interface Follower {
  next: number;
  match: number;
  sending: Sending;
  /** What was on its way to it when the last heartbeat was sent, and nothing has been heard of since. */
  isOverdue: boolean;
  /** Has answered since the leader last asked whether a majority has. */
  isActive: boolean;
  /** With `handOverBeats`: has answered since the last heartbeat. */
  hasAnswered: boolean;
}

export type Sending =
  /** Where its log meets the leader's is not known: one message at a time. */
  | { is: "probing"; isAwaiting: boolean }
  /** The last index of each message on its way. */
  | { is: "pipelining"; inFlight: number[] }
  /** §7. `received` chunks of the snapshot up to `index`. */
  | { is: "snapshot"; index: number; received: number };

export interface Leader {
  is: "leader";
  /** Of its no-op. */
  firstIndex: number;
  /** Its own match index: what it has journalled. */
  persisted: number;
  followers: PerNode<Follower>;
  /** Of heartbeats. The next begins when a majority has answered this one. */
  round: number;
  answered: NodeId[];
  /** Thesis §6.4: served when this round is answered, and those that wait for the next. */
  asking: Read[];
  next: Read[];
  /** With `leaseReads`: the lease timer of the current round has not expired. */
  isTimely: boolean;
  /** Thesis §6.4.1: no other node is elected before the timer of this round has expired. */
  leaseRound: number | null;
  /** Thesis §3.10: to this node leadership is being handed over. */
  transfer: NodeId | null;
  /** Not once it has begun to hand over: whoever it has asked may be elected before others' time-outs, and late. */
  mayLease: boolean;
  /** Of the operations that are not committed. */
  uncommittedChars: number;
  /** With `handOverBeats`: who is to lead instead, and for how many heartbeats in a row it has kept up. */
  heir: { node: NodeId; beats: number } | null;
  /** With `catchUpRounds`: a change whose new voters are being brought up to the leader's log. */
  catchUp: CatchUp | null;
}

/** Thesis §4.2.1. */
export interface CatchUp extends Members {
  /** Who has asked for the change, and is told if it is refused. */
  asker: NodeId;
  /** The voters to come. */
  newcomers: NodeId[];
  /** 1, 2, 3 …; over when all newcomers have the log up to `target`, where it ended when the round began. */
  round: number;
  target: number;
  /** The round has taken longer than the least election time-out. */
  isSlow: boolean;
  /** How far all of them had come, in sum, when the timer was set last. */
  progress: number;
}

export type Role =
  /** `hasHeard`: from its leader, within the least election time-out. Then it helps nobody else to lead. */
  | { is: "follower"; leader: NodeId | null; hasHeard: boolean; incoming: Incoming | null }
  | { is: "preCandidate"; votes: NodeId[] }
  | { is: "candidate"; votes: NodeId[] }
  | Leader;

export type Raft = {
  state: {
    /** Journalled, like `votedFor`, `log` and `snapshot`. */
    term: number;
    votedFor: NodeId | null;
    log: Log;
    snapshot: Snapshot;
    /** The journal contains chunks of a snapshot that was not received completely. */
    hasReceived: boolean;
    commitIndex: number;
    /** The last one in the log, committed or not, and where it stands. */
    configuration: Configuration & { index: number };
    role: Role;
    /** Commands that were proposed here while no leader was known. */
    waiting: Command[];
    /** Reads that were asked for here, and wait until all up to their index has been told. */
    reads: Omit<Read, "node">[];
    /** Commands that were dropped here since too much waited already. */
    dropped: number;
    /** How often this node has handed over to one that stands before it. */
    handOvers: number;
  };
  message: /** Would a node vote? `term` is that of the election to come. Changes nothing where it arrives. */
    | { type: "requestPreVote"; term: number; lastIndex: number; lastTerm: number }
    | { type: "preVote"; term: number; isGranted: boolean }
    /** `isTransfer`: the leader has asked for this election. */
    | { type: "requestVote"; term: number; lastIndex: number; lastTerm: number; isTransfer: boolean }
    | { type: "vote"; term: number; isGranted: boolean }
    | {
        type: "appendEntries";
        term: number;
        previousIndex: number;
        previousTerm: number;
        entries: Entry[];
        commitIndex: number;
      }
    | { type: "appended"; term: number; matchIndex: number }
    /** `conflictTerm`: of the entry at `previousIndex`, or null if there is none; `conflictIndex`: the first of that term, or the end of the log. */
    | {
        type: "rejected";
        term: number;
        previousIndex: number;
        conflictTerm: number | null;
        conflictIndex: number;
      }
    /** With `tellsCommit`; not answered. */
    | { type: "committed"; term: number; commitIndex: number }
    | { type: "heartbeat"; term: number; round: number; commitIndex: number }
    | { type: "heartbeatAnswered"; term: number; round: number }
    | {
        type: "installSnapshot";
        term: number;
        index: number;
        lastTerm: number;
        configuration: Configuration;
        /** The number of the chunk, from 0. */
        part: number;
        chunk: Chunk;
        isLast: boolean;
      }
    | { type: "chunkReceived"; term: number; index: number; received: number }
    | { type: "timeoutNow"; term: number }
    /** What was given to a node that does not lead, to the node that does. */
    | { type: "forward"; request: Forwarded }
    | { type: "readIndex"; read: number; index: number }
    /** To whoever asked for the change. */
    | ({ type: "changeRefused"; reason: Refusal } & Members);
  timer: "election" | "heartbeat" | "quorum" | "transfer" | "catchUp" | LeaseTimer;
  command: Exclude<ReplicatedLog["command"], { type: "reply" }>;
  event: ReplicatedLog["event"];
  record:
    | { type: "voted"; term: number; votedFor: NodeId | null }
    | { type: "appended"; entries: Entry[] }
    | { type: "truncated"; lastIndex: number }
    /** The log begins after `offset`. */
    | {
        type: "snapshot";
        index: number;
        term: number;
        configuration: Configuration;
        offset: number;
        offsetTerm: number;
        chunks: Chunk[];
      }
    /** A chunk of a snapshot that the leader is sending. */
    | { type: "received"; chunk: Chunk };
};

export type Forwarded =
  | { type: "propose"; command: Command }
  | { type: "read"; read: number }
  | ({ type: "reconfigure" } & Members)
  | { type: "transfer"; to: NodeId };

type State = Raft["state"];

/** Who leads the current term in this node's eyes. */
export function leaderOf({ role }: State, self: NodeId): NodeId | null {
  if (role.is === "leader") return self;
  return role.is === "follower" ? role.leader : null;
}
