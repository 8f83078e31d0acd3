/** The words of a member's session: what it remembers, is asked, answers and tells. */
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
    /** How often this node has been started. Journalled, as is `life`. */
    run: number;
    /** How many sessions it has opened. */
    life: number;
    /** How many commands it has put to the log in this run. */
    proposals: number;
    /** Closing: it has asked to close it, unless that is refused. */
    phase: "none" | "open" | "closing";
    /** Once its own replica knows it. */
    session: SessionId | null;
    /** Of the operations of this life: the last one given, put to the log, and applied by its own replica. */
    given: number;
    proposed: number;
    applied: number;
    /** The last that has ever been put to the log; `proposed` goes back to what is applied when all is put to it again. */
    tried: number;
    /** The number of the last operation of each command that is under way. */
    underWay: number[];
    /** What is not applied, in order. */
    pending: Pending[];
    /** Of lives that are lost: it is not known yet whether they are applied. */
    unresolved: (Pending & { life: number })[];
    lease: Lease;
    /** Until it is uncorked, what is asked for waits. */
    isCorked: boolean;
    /** Whether something has been asked since it was last looked for. */
    isUsed: boolean;
    reads: Reads;
    leader: NodeId | null;
    term: number;
    /** How many sweeps ago each session was heard of. */
    watched: Watched[];
  };
  timer: "retry" | "renew" | "idle" | "readAgain" | "sweep" | LeaseTimer;
  command: /** Answered once it has been applied here. */
    | { type: "submit"; request: RequestId; operation: Operation }
    /** Of another part of this node, which hears from the replica what comes of it. Forgotten with the session. */
    | { type: "perform"; operation: Operation }
    /** Answered from this node's replica, once that is up to date. */
    | { type: "query"; request: RequestId; query: Query }
    /** More is asked for in a moment: it goes to the log together, at the next `uncork`. */
    | { type: "cork" }
    | { type: "uncork" }
    /** This node is about to end, in order: its session ends, and what it holds is released. */
    | { type: "depart" }
    /** From the replica. */
    | ({ type: "answered" } & Answered)
    | { type: "queried"; request: RequestId; revision: Revision; answer: Answer }
    | { type: "seen"; sessions: Seen[] }
    /** From the log. */
    | { type: "readable"; read: number }
    | { type: "led"; leader: NodeId | null; term: number };
  event: /** This member's session. What it is granted counts from the first `confirmed` on, for as long as that says. */
    | { type: "began"; session: SessionId }
    | { type: "confirmed"; session: SessionId }
    /** Others may be granted what it held from now on: its lease is over, or the log has ended it. */
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
  /** Null: nobody is answered. */
  request: RequestId | null;
  /** The session opens or closes. */
  isOwn: boolean;
  /** As JSON. */
  operation: string;
  /** Of the last part of an operation: all of it. */
  whole?: string;
  /** One of its other parts: they are there for nobody's answer, and no calls. */
  isPart?: true;
}

/** Rounds are begun as something is proposed, and confirmed as it is applied: what they are worth counts from when they began. */
export interface Lease {
  round: number;
  /** The last that was confirmed; 0 before. */
  confirmed: number;
  /** The timers that run: of the last round, and of the one before. */
  running: LeaseTimer[];
  /** The next command begins a round. */
  isDue: boolean;
}

/** All that are asked for while one is under way wait for the next. */
export interface Reads {
  /** Of the last one. */
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
