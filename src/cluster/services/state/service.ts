/** The interface of a member's replicated service for the local sides of shared state, and its events. */
import type { NodeId } from "../../../core/protocol.ts";
import type {
  Answer,
  Operation,
  Query,
  Result,
  ServiceEvent,
  SessionId,
} from "../../../protocols/service/coordination-service/operations.ts";
import type { Counts } from "../../../runtime/metrics.ts";
import type { Platform } from "../../../runtime/platform/platform.ts";
import type { CoordinationError } from "../coordination-error.ts";
import type { Call, IsWanted } from "./calls.ts";

/** The changes of a map, or the grants of a name. */
export type Topic = "map" | "grants";

export interface Service {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly self: NodeId;
  readonly counts: Pick<Counts, "locks" | "leaderships">;
  /** The most waiters of this process for one name. */
  readonly maxWaiters: number;
  /** This member's session; null while it has none. */
  readonly session: SessionId | null;
  /** Until when the session's grants are certainly not given to others; null while unconfirmed. */
  readonly until: number | null;
  /** The revision of the last change that this replica knows; null before it has been up to date once. */
  readonly revision: number | null;
  /** Why no more calls are accepted, once the member leaves or has failed. */
  readonly closed: CoordinationError | null;
  /** Why calls may not be answered, as a clause; empty if unknown. */
  readonly why: string;
  /** The error with that reason, if there is one. */
  readonly cause?: Error | undefined;
  /** @throws UsageError without a `dataDir`; CoordinationError once the member leaves. */
  use(): void;
  /**
   * Resolves once this replica has been up to date, with a revision that was current then: before all writes that this
   * member has made since the call.
   */
  current(): Promise<number>;
  /** Whether it is one of this member's. Only this identifies events of a session that precede `began`. */
  isOwn(session: SessionId): boolean;
  /** Whether this run of the member has used it; other sessions of its own belong to earlier lives. */
  isOfThisRun(session: SessionId): boolean;
  /** A number that differs from all others, in all lives of this member. */
  number(): number;
  /**
   * Submits the operation once. Resolves when this replica has applied it. If the session ends before, the operation is
   * submitted in the next one, as long as it is wanted. @throws CoordinationError or UsageError if it was refused.
   */
  submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>>;
  /** Makes a linearizable read. An abandoned query need not be repeated. @throws as `submit` does */
  query<Q extends Query>(query: Q, isWanted?: IsWanted): Promise<Found<Q>>;
  /** Runs requests within the caller's time limit, with errors in terms of the call. */
  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T>;
  /**
   * Reports events of that name. Members report all events, but changes of maps only while a map is followed. @returns a
   * function that ends it
   */
  follow(topic: Topic, name: string): () => void;
  /** Calls the listener with all events that this replica applies, in order. @returns a function that removes it */
  listen(listener: Listener): () => void;
}

/** `until`: when the confirmation expires, by the platform's clock. */
export type Listener = (event: Told, until: number | null) => void;

export type Told =
  | ServiceEvent
  /** Of this member's session: its grants are valid from the first `confirmed` on, until the confirmation expires. */
  | { readonly type: "began" | "confirmed"; readonly session: SessionId }
  /** Others can acquire its grants from now on. */
  | { readonly type: "lost"; readonly session: SessionId; readonly why?: string | undefined }
  /** The leader of the log. */
  | { readonly type: "led"; readonly leader: NodeId | null; readonly term: number }
  /** This replica installed a snapshot: earlier events are missing, and only the state shows their effects. */
  | { readonly type: "restored"; readonly revision: number }
  /** The engine was restored to an earlier state, such as from a backup: reported changes may have been undone. */
  | { readonly type: "rolled-back" }
  /** The member leaves, or has failed. */
  | { readonly type: "closed"; readonly reason: CoordinationError };

/** A completed operation, with the revision of its changes. */
export interface Done<O> {
  readonly revision: number;
  /** The session that submitted it. */
  readonly session: SessionId;
  readonly result: Extract<Result, { type: ResultTypes[TypeOf<O> & keyof ResultTypes] }>;
}

export interface Found<Q> {
  readonly revision: number;
  readonly answer: Extract<Answer, { type: AnswerTypes[TypeOf<Q> & keyof AnswerTypes] }>;
}

type TypeOf<T> = T extends { readonly type: infer K } ? K : never;

interface ResultTypes {
  put: "stored";
  delete: "stored";
  transaction: "transaction";
  add: "counted";
  set: "counted";
  acquire: "granted" | "waiting";
  release: "done";
  withdraw: "done";
  arrive: "passed" | "waiting";
  leave: "done";
  enqueue: "enqueued";
  take: "item" | "waiting";
  stopTaking: "done";
  finish: "done";
  giveBack: "done";
  enterGroup: "done";
  leaveGroup: "done";
  expelFromGroup: "done";
  say: "done";
  execute: "executed" | "unknown";
  foundMembers: "done";
  addMember: "done";
  nameJournal: "done";
  promoteMember: "done";
  removeMember: "done";
  moveMember: "done";
  changeMembers: "done";
}

interface AnswerTypes {
  get: "found";
  range: "entries";
  changes: "changes";
  count: "counted";
  holders: "holders";
  backlog: "backlog";
  arrival: "arrival";
  sessions: "sessions";
  members: "members";
  ask: "answered";
}
