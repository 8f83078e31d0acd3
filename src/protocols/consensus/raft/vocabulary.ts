/** Types of Raft: its state, messages, commands, events and records. */
import type { Chunk } from "../../../core/chunk.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";
import type { Command, Members, Refusal, ReplicatedLog } from "../family/replicated-log.ts";

/**
 * A configuration (§6). If `outgoing` is not null it is joint: a decision needs a majority of `voters` and one of
 * `outgoing`.
 */
export interface Configuration extends Members {
  outgoing: NodeId[] | null;
}

export type Entry =
  | { type: "command"; term: number; command: Command }
  /** The first entry of a leader, so that it can commit an entry of its own term. */
  | { type: "noop"; term: number }
  | { type: "configuration"; term: number; configuration: Configuration };

/**
 * `entries[i]` has the index `offset` + 1 + i. Earlier entries are in the snapshot; the entry at `offset` has the term
 * `offsetTerm`.
 */
export interface Log {
  offset: number;
  offsetTerm: number;
  entries: Entry[];
}

/** Replaces all entries up to `index`. At index 0 it is the empty state that all nodes start with. */
export interface Snapshot {
  index: number;
  term: number;
  configuration: Configuration;
  chunks: Chunk[];
}

/** A snapshot that is being received: the chunks so far. */
export type Incoming = Omit<Snapshot, "configuration">;

/** A read requested at `node`. It may be served once the entries up to `index` are applied. */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
}

/**
 * The leader's view of another node. `next` is the index of the entry to send next; `match` is the last index at which
 * the follower's log is known to equal the leader's.
 */
export interface Follower {
  next: number;
  match: number;
  sending: Sending;
  /** Messages were in flight at the last heartbeat, and no answer to them has arrived since. */
  isOverdue: boolean;
  /** Has answered since the last quorum check. */
  isActive: boolean;
  /** With `handOverBeats`: has answered since the last heartbeat. */
  hasAnswered: boolean;
}

export type Sending =
  /** The leader does not know yet where the logs meet, so it sends one message at a time. */
  | { is: "probing"; isAwaiting: boolean }
  /** `inFlight` holds the last index of each message in flight. */
  | { is: "pipelining"; inFlight: number[] }
  /** §7. The follower has received the first `received` chunks of the snapshot up to `index`. */
  | { is: "snapshot"; index: number; received: number };

export interface Leader {
  is: "leader";
  /** The index of its no-op. */
  firstIndex: number;
  /** Its own match index: the end of its journalled log. */
  persisted: number;
  followers: PerNode<Follower>;
  /** The heartbeat round. The next one begins when a majority has answered this one. */
  round: number;
  answered: NodeId[];
  /**
   * Thesis §6.4: `asking` holds reads to serve when this round is answered, `next` those that wait for the next round.
   */
  asking: Read[];
  next: Read[];
  /** With `leaseReads`: the lease timer of the current round has not expired. */
  isTimely: boolean;
  /** Thesis §6.4.1: no other node is elected before the timer of this round has expired. */
  leaseRound: number | null;
  /** Thesis §3.10: the target of a leadership transfer that is in progress. */
  transfer: NodeId | null;
  /** False for good once a transfer has begun: the target may be elected late, and before other nodes time out. */
  mayLease: boolean;
  /** Characters of uncommitted operations. */
  uncommittedChars: number;
  /**
   * With `handOverBeats`: the voter that should lead instead, and the consecutive heartbeats for which it has kept up.
   */
  heir: { node: NodeId; beats: number } | null;
  /** With `catchUpRounds`: a pending change whose new voters are still catching up with the leader's log. */
  catchUp: CatchUp | null;
}

/** Catching up before voting (thesis §4.2.1). */
export interface CatchUp extends Members {
  /** The node that requested the change. It is notified if the change is refused. */
  asker: NodeId;
  /** The future voters. */
  newcomers: NodeId[];
  /** Counts from 1. A round ends when all newcomers have the log up to `target`, its end when the round began. */
  round: number;
  target: number;
  /** The round has taken longer than the shortest election timeout. */
  isSlow: boolean;
  /** The sum of the newcomers' match indices when the timer was last set. */
  progress: number;
}

export type Role =
  /**
   * `hasHeard`: the leader has sent a message within the shortest election timeout, so this node helps no other node to
   * lead.
   */
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
    /** The journal contains chunks of an incomplete snapshot. */
    hasReceived: boolean;
    commitIndex: number;
    /** The latest configuration in the log, committed or not, and the index of its entry. */
    configuration: Configuration & { index: number };
    role: Role;
    /** Commands proposed here while no leader was known. */
    waiting: Command[];
    /** Reads requested here that wait until the entries up to their index are emitted. */
    reads: Omit<Read, "node">[];
    /** The number of commands dropped here because too many were waiting. */
    dropped: number;
    /** How often this node has transferred leadership to a voter with a better priority. */
    handOvers: number;
  };
  message: /** Asks whether a node would vote. `term` is the term of the future election. The receiver's state does not change. */
    | { type: "requestPreVote"; term: number; lastIndex: number; lastTerm: number }
    | { type: "preVote"; term: number; isGranted: boolean }
    /** `isTransfer`: the leader requested this election. */
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
    /**
     * `conflictTerm` is the term of the entry at `previousIndex`, null if there is no such entry. `conflictIndex` is
     * the first index of that term, or one past the end of the log.
     */
    | {
        type: "rejected";
        term: number;
        previousIndex: number;
        conflictTerm: number | null;
        conflictIndex: number;
      }
    /** With `tellsCommit`. It is not answered. */
    | { type: "committed"; term: number; commitIndex: number }
    | { type: "heartbeat"; term: number; round: number; commitIndex: number }
    | { type: "heartbeatAnswered"; term: number; round: number }
    | {
        type: "installSnapshot";
        term: number;
        index: number;
        lastTerm: number;
        configuration: Configuration;
        /** The index of the chunk, from 0. */
        part: number;
        chunk: Chunk;
        isLast: boolean;
      }
    | { type: "chunkReceived"; term: number; index: number; received: number }
    | { type: "timeoutNow"; term: number }
    /** Passes a request from a follower to the leader. */
    | { type: "forward"; request: Forwarded }
    | { type: "readIndex"; read: number; index: number }
    /** Sent to the node that requested the change. */
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

/** @returns the leader of the current term as far as this node knows. */
export function leaderOf({ role }: State, self: NodeId): NodeId | null {
  if (role.is === "leader") return self;
  return role.is === "follower" ? role.leader : null;
}
