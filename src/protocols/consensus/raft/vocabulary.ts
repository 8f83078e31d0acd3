/** Raft's types: its state, messages, commands, events and records. */
import type { Chunk } from "../../../core/chunk.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";
import type { Command, Members, Refusal, ReplicatedLog } from "../family/replicated-log.ts";

/**
 * A configuration (§6). If `outgoing` is not null, the configuration is joint: a decision needs a majority of `voters`
 * and a majority of `outgoing`.
 */
export interface Configuration extends Members {
  outgoing: NodeId[] | null;
}

/** A log entry. */
export type Entry =
  | { type: "command"; term: number; command: Command }
  /** A leader's first entry, which lets it commit an entry of its own term. */
  | { type: "noop"; term: number }
  | { type: "configuration"; term: number; configuration: Configuration };

/**
 * A log. `entries[i]` has index `offset + 1 + i`. Earlier entries are in the snapshot. The entry at `offset` has term
 * `offsetTerm`.
 */
export interface Log {
  offset: number;
  offsetTerm: number;
  entries: Entry[];
}

/** A snapshot that replaces all entries up to `index`. At index 0, it is the empty initial state. */
export interface Snapshot {
  index: number;
  term: number;
  configuration: Configuration;
  chunks: Chunk[];
}

/** A snapshot that is being received, with the chunks received so far. */
export type Incoming = Omit<Snapshot, "configuration">;

/** A read requested at `node`. It may be served once the entries up to `index` are applied. */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
}

/**
 * The leader's view of another node. `next` is the index of the next entry to send. The follower's log is known to
 * equal the leader's up to and including index `match`.
 */
export interface Follower {
  next: number;
  match: number;
  sending: Sending;
  /** Whether messages were in flight at the last heartbeat and are still unanswered. */
  isOverdue: boolean;
  /** Whether the follower has answered since the last quorum check. */
  isActive: boolean;
  /** With `handOverBeats`: whether the follower has answered since the last heartbeat. */
  hasAnswered: boolean;
}

/** How the leader brings one follower up to date. */
export type Sending =
  /** The leader does not yet know where the logs match, so it sends one message at a time. */
  | { is: "probing"; isAwaiting: boolean }
  /** `inFlight` contains the last index of each message in flight. */
  | { is: "pipelining"; inFlight: number[] }
  /** The follower has received the first `received` chunks of the snapshot up to `index` (§7). */
  | { is: "snapshot"; index: number; received: number };

/** The state of a leader. */
export interface Leader {
  is: "leader";
  /** The index of the leader's first entry, a no-op. */
  firstIndex: number;
  /** The leader's own match index: the end of its journaled log. */
  persisted: number;
  followers: PerNode<Follower>;
  /** The heartbeat round. The next one begins when a majority has answered this one. */
  round: number;
  answered: NodeId[];
  /**
   * Reads that are served when this round is answered (`asking`), and reads that wait for the next round (`next`).
   * Thesis §6.4.
   */
  asking: Read[];
  next: Read[];
  /** With `leaseReads`: whether the lease timer of the current round is still running. */
  isTimely: boolean;
  /** The round whose lease the leader holds. No other node is elected before its timer expires (thesis §6.4.1). */
  leaseRound: number | null;
  /** The target of a leadership transfer in progress (thesis §3.10). */
  transfer: NodeId | null;
  /**
   * Whether the leader may use leases. Permanently false once a transfer has begun, because the target may be elected
   * at any time, before other nodes time out.
   */
  mayLease: boolean;
  /** The number of characters in uncommitted operations. */
  uncommittedChars: number;
  /**
   * With `handOverBeats`: the voter that should lead instead, and the number of consecutive heartbeats for which it has
   * kept up.
   */
  heir: { node: NodeId; beats: number } | null;
  /** With `catchUpRounds`: a pending change whose new voters are still catching up with the leader's log. */
  catchUp: CatchUp | null;
}

/** The state of catching up before voting (thesis §4.2.1). */
export interface CatchUp extends Members {
  /** The node that requested the change. It is notified if the change is refused. */
  asker: NodeId;
  /** The future voters. */
  newcomers: NodeId[];
  /**
   * The round, counted from 1. It ends when all newcomers have the log up to `target`, the last index when the round
   * began.
   */
  round: number;
  target: number;
  /** Whether the round has taken longer than the shortest election timeout. */
  isSlow: boolean;
  /** The progress of all newcomers when the timer was last set. */
  progress: number;
}

/** The role of a node in its current term, with the state that only this role has. */
export type Role =
  /**
   * `hasHeard`: whether the leader has sent a message within the shortest election timeout, so that this node votes for
   * no other node.
   */
  | { is: "follower"; leader: NodeId | null; hasHeard: boolean; incoming: Incoming | null }
  | { is: "preCandidate"; votes: NodeId[] }
  | { is: "candidate"; votes: NodeId[] }
  | Leader;

/** Vocabulary of Raft. */
export type Raft = {
  state: {
    /** The current term. Journaled, like `votedFor`, `log` and `snapshot`. */
    term: number;
    votedFor: NodeId | null;
    log: Log;
    snapshot: Snapshot;
    /** Whether the journal contains chunks of an incomplete snapshot. */
    hasReceived: boolean;
    commitIndex: number;
    /** The latest configuration in the log, whether committed or not, and the index of its entry. */
    configuration: Configuration & { index: number };
    role: Role;
    /** Commands proposed here while no leader was known. */
    waiting: Command[];
    /** Reads requested here that wait until the entries up to their index are emitted. */
    reads: Omit<Read, "node">[];
    /** The number of commands dropped here because too many were waiting. */
    dropped: number;
    /** The number of times this node has transferred leadership to a voter with a better priority. */
    handOvers: number;
  };
  message: /** Asks for a pre-vote in a future election in `term`. The receiver's state does not change. */
    | { type: "requestPreVote"; term: number; lastIndex: number; lastTerm: number }
    | { type: "preVote"; term: number; isGranted: boolean }
    /** `isTransfer`: whether the leader requested this election. */
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
     * `conflictTerm` is the term of the entry at `previousIndex`. Null if there is no such entry. `conflictIndex` is
     * the first index of that term, or one past the end of the log.
     */
    | {
        type: "rejected";
        term: number;
        previousIndex: number;
        conflictTerm: number | null;
        conflictIndex: number;
      }
    /** Sent with `tellsCommit`. It needs no answer. */
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

/** A request that a node forwards to the leader. */
export type Forwarded =
  | { type: "propose"; command: Command }
  | { type: "read"; read: number }
  | ({ type: "reconfigure" } & Members)
  | { type: "transfer"; to: NodeId };

type State = Raft["state"];

/** Returns the leader of the current term, or null if this node does not know it. */
export function leaderOf({ role }: State, self: NodeId): NodeId | null {
  if (role.is === "leader") return self;
  return role.is === "follower" ? role.leader : null;
}
