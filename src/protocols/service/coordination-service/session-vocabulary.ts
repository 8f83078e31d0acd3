/** Types of a member's session: its state, commands, events, records and replies. */
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

export type MemberSession = {
  state: {
    /** How often this node has started. Journalled, like `life`. */
    run: number;
    /** The number of sessions it has opened. */
    life: number;
    /** The number of commands it has proposed in this run. */
    proposals: number;
    /** `closing`: it has requested to close, which may be refused. */
    phase: "none" | "open" | "closing";
    /** Set once this node's replica has opened it. */
    session: SessionId | null;
    /** The last operation of this life that was requested (`given`), proposed, and applied by its own replica. */
    given: number;
    proposed: number;
    applied: number;
    /**
     * The last operation that has ever been proposed. `proposed` moves back to `applied` when everything is proposed
     * again.
     */
    tried: number;
    /** The number of the last operation of each command in flight. */
    underWay: number[];
    /** Operations that are not applied yet, in order. */
    pending: Pending[];
    /** Operations of lost sessions whose outcome is not known yet. */
    unresolved: (Pending & { life: number })[];
    lease: Lease;
    /** New requests wait until `uncork`. */
    isCorked: boolean;
    /** Whether there was a request since the last idle check. */
    isUsed: boolean;
    reads: Reads;
    leader: NodeId | null;
    term: number;
    /** The number of sweeps since each session's latest sign of life. */
    watched: Watched[];
  };
  timer: "retry" | "renew" | "idle" | "readAgain" | "sweep" | LeaseTimer;
  command: /** Answered once it has been applied here. */
    | { type: "submit"; request: RequestId; operation: Operation }
    /** From another part of this node, which learns the outcome from the replica. Lost with the session. */
    | { type: "perform"; operation: Operation }
    /** Answered from this node's replica, once it is current. */
    | { type: "query"; request: RequestId; query: Query }
    /** More requests follow soon: they are proposed together at the next `uncork`. */
    | { type: "cork" }
    | { type: "uncork" }
    /** This node is about to shut down: its session ends, and its grants are released. */
    | { type: "depart" }
    /** From the replica. */
    | ({ type: "answered" } & Answered)
    | { type: "queried"; request: RequestId; revision: Revision; answer: Answer }
    | { type: "seen"; sessions: Seen[] }
    /** From the log. */
    | { type: "readable"; read: number }
    | { type: "led"; leader: NodeId | null; term: number };
  event: /**
   * This member's session. Grants may be relied on from the first `confirmed` on, until the lease of the last one ends.
   */
    | { type: "began"; session: SessionId }
    | { type: "confirmed"; session: SessionId }
    /** The lease is over, or the log has ended the session: others may be granted its locks from now on. */
    | { type: "lost"; session: SessionId }
    /** To the log. */
    | { type: "proposed"; command: Command }
    | { type: "reading"; read: number }
    /** To the replica. */
    | { type: "query"; request: RequestId; query: Query }
    | { type: "looking" };
  record: { type: "life"; run: number; life: number };
  reply:
    | { type: "done"; session: SessionId; revision: Revision; result: Result }
    | { type: "read"; revision: Revision; answer: Answer }
    | { type: "refused"; code: RefusalCode; reason: string };
};

export interface Pending {
  sequence: number;
  /** Null: no caller waits for the answer. */
  request: RequestId | null;
  /** An operation that opens or closes the session. */
  isOwn: boolean;
  /** As JSON. */
  operation: string;
  /** With the last part of an operation: the whole operation. */
  whole?: string;
  /** Another part of a split operation. It has no caller and does not count as a call. */
  isPart?: true;
}

/**
 * Lease rounds begin when something is proposed and are confirmed when it is applied. The lease counts from the
 * beginning.
 */
export interface Lease {
  round: number;
  /** The last confirmed round; 0: none. */
  confirmed: number;
  /** The running timers: of the last round and the one before. */
  running: LeaseTimer[];
  /** The next command begins a round. */
  isDue: boolean;
}

/** Reads requested while a read is in progress wait for the next one. */
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
