/** The types of a member's session: its state, commands, events, records and replies. */
import type { NodeId, Protocol, RequestId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, real, struct, text } from "../../../core/shape.ts";
import type { Command } from "../../consensus/family/replicated-log.ts";
import type { LeaseTimer } from "../../leases.ts";
import {
  type Answer,
  answerShape,
  type Operation,
  operationShape,
  type Query,
  queryShape,
  type RefusalCode,
  type Result,
  type Revision,
  refusalCodes,
  resultShape,
  type SessionId,
} from "./operations.ts";
import type { Answered, Seen } from "./replica.ts";
import type { Reply } from "./state.ts";

/** Vocabulary of a member's session, which sends its operations to the log and waits for the results. */
export type MemberSession = {
  state: {
    /** How many times this node has started. Journaled, like `life`. */
    run: number;
    /** The number of sessions that this node has opened. */
    life: number;
    /** The number of commands proposed since the last start. */
    proposals: number;
    /** The session's phase. `closing`: the node has requested to close the session, which may be refused. */
    phase: "none" | "open" | "closing";
    /** The session's id. Null until this node's replica has opened the session. */
    session: SessionId | null;
    /**
     * The numbers of the last operations in this life that have been requested (`given`), proposed (`proposed`), and
     * applied by this node's replica (`applied`).
     */
    given: number;
    proposed: number;
    applied: number;
    /**
     * The number of the last operation in this life that has ever been proposed. `proposed` is reset to `applied` when
     * everything is proposed again.
     */
    tried: number;
    /** For each command in flight, the number of its last operation. */
    underWay: number[];
    /** The operations that have not been applied yet, in order. */
    pending: Pending[];
    /** Operations from lost sessions with outcomes that are not yet known. */
    unresolved: (Pending & { life: number })[];
    lease: Lease;
    /** Whether new requests wait until `uncork`. */
    isCorked: boolean;
    /** Whether there has been a request since the last idle check. */
    isUsed: boolean;
    reads: Reads;
    leader: NodeId | null;
    term: number;
    /** For each session, the number of sweeps since its latest sign of life. */
    watched: Watched[];
  };
  timer: "retry" | "renew" | "idle" | "readAgain" | "sweep" | LeaseTimer;
  command: /** An operation from the application. Answered once it has been applied here. */
    | { type: "submit"; request: RequestId; operation: Operation }
    /**
     * An operation from another part of this node. That part learns the outcome from the replica. The operation is lost
     * if the session ends.
     */
    | { type: "perform"; operation: Operation }
    /** A query, which is answered from this node's replica once the replica is up to date. */
    | { type: "query"; request: RequestId; query: Query }
    /** Delays requests because more will follow soon. They are proposed together at the next `uncork`. */
    | { type: "cork" }
    | { type: "uncork" }
    /** Ends the session and releases its grants, because this node is about to shut down. */
    | { type: "depart" }
    /** Commands from the replica. */
    | ({ type: "answered" } & Answered)
    | { type: "queried"; request: RequestId; revision: Revision; answer: Answer }
    | { type: "seen"; sessions: Seen[] }
    /** Commands from the log. */
    | { type: "readable"; read: number }
    | { type: "led"; leader: NodeId | null; term: number };
  event: /**
   * Events about this member's session. Grants may be relied on from the first `confirmed` until the end of the lease
   * that the last one confirmed.
   */
    | { type: "began"; session: SessionId }
    | { type: "confirmed"; session: SessionId }
    /**
     * The lease is over, or the log has ended the session. From now on, the session's locks may be granted to others.
     */
    | { type: "lost"; session: SessionId }
    /** Events for the log. */
    | { type: "proposed"; command: Command }
    | { type: "reading"; read: number }
    /** Events for the replica. */
    | { type: "query"; request: RequestId; query: Query }
    | { type: "looking" };
  record: { type: "life"; run: number; life: number };
  reply:
    | { type: "done"; session: SessionId; revision: Revision; result: Result }
    | { type: "read"; revision: Revision; answer: Answer }
    | { type: "refused"; code: RefusalCode; reason: string };
};

/** An operation that has not been answered yet. */
export interface Pending {
  sequence: number;
  /** The request to answer. Null if no caller is waiting for the answer. */
  request: RequestId | null;
  /** Whether the operation opens or closes the session. */
  isOwn: boolean;
  /** The operation as JSON. */
  operation: string;
  /** If this is the last part of a split operation, the whole operation. */
  whole?: string;
  /** Set for all parts of a split operation except the last. They have no caller and do not count as calls. */
  isPart?: true;
}

/**
 * A session's lease. A round begins when a command is proposed, and is confirmed when that command is applied. The
 * lease counts from when the round began.
 */
export interface Lease {
  round: number;
  /** The last confirmed round, or 0 if there is none. */
  confirmed: number;
  /** The running timers, which belong to the last round and the one before it. */
  running: LeaseTimer[];
  /** Whether the next command begins a round. */
  isDue: boolean;
}

/** The reads at this member. Reads that are requested while a read is in progress wait for the next one. */
export interface Reads {
  /** The number of the last read. */
  read: number;
  underWay: Asked[];
  next: Asked[];
}

interface Asked {
  request: RequestId;
  query: Query;
}

/** A session that the leader watches for signs of life. */
export interface Watched {
  session: SessionId;
  seen: number;
  sweeps: number;
}

const MAX_REPLIES = 100_000;
const MAX_SESSIONS = 100_000;

export const shapes: Protocol<MemberSession>["shapes"] = {
  command: {
    submit: { request: natural, operation: operationShape },
    query: { request: natural, query: queryShape },
    perform: { operation: operationShape },
    cork: {},
    uncork: {},
    depart: {},
    answered: {
      life: natural,
      session: nullable(natural),
      round: natural,
      first: natural,
      replies: list(struct<Reply>({ revision: natural, result: resultShape }), MAX_REPLIES),
      isOver: boolean,
      isRestored: boolean,
    },
    queried: { request: natural, revision: natural, answer: answerShape },
    seen: { sessions: list(struct<Seen>({ session: natural, seen: natural, ttlMs: real }), MAX_SESSIONS) },
    readable: { read: natural },
    led: { leader: nullable(natural), term: natural },
  },
  record: { life: { run: natural, life: natural } },
  reply: {
    done: { session: natural, revision: natural, result: resultShape },
    read: { revision: natural, answer: answerShape },
    refused: { code: oneOf(...refusalCodes), reason: text(1_000) },
  },
};
