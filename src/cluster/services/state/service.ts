/** What the local sides of shared state may ask of the member's replicated service, and what they are told. */
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

/** The changes of a map, or who is granted what under a name. */
export type Topic = "map" | "grants";

export interface Service {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly self: NodeId;
  readonly counts: Pick<Counts, "locks" | "leaderships">;
  /** How many may wait here for one name. */
  readonly maxWaiters: number;
  /** This member's session; null while it has none. */
  readonly session: SessionId | null;
  /** Until when it is certain that nobody else is given what the session holds; null while nothing says so. */
  readonly until: number | null;
  /** Of the last change that this replica knows; null before it has once been up to date. */
  readonly revision: number | null;
  /** Why nothing more is taken, once the member leaves or has failed. */
  readonly closed: CoordinationError | null;
  /** Why what is asked for may not be answered, as a clause; empty where that is not known. */
  readonly why: string;
  /** The error that says so, where there is one. */
  readonly cause?: Error | undefined;
  /** @throws UsageError without a `dataDir`; CoordinationError once the member leaves. */
  use(): void;
  /** Resolves once this replica has been up to date, with a revision that was current then: before all writes of this member since it was called. */
  current(): Promise<number>;
  /** Whether it is one of this member's. Of what is told of a session before that began, nothing else says so. */
  isOwn(session: SessionId): boolean;
  /** Whether this run of the member has used it; others of its own are of its earlier lives. */
  isOfThisRun(session: SessionId): boolean;
  /** Another number each time, over all lives of this member. */
  number(): number;
  /**
   * Does it once. Resolves when this replica has applied it. If the session ends before, it is asked for in the next one for as long as
   * it is wanted. @throws CoordinationError or UsageError where it was refused.
   */
  submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>>;
  /** What a linearizable read finds. What is not wanted any more need not be asked for again. @throws as `submit` does */
  query<Q extends Query>(query: Q, isWanted?: IsWanted): Promise<Found<Q>>;
  /** The same within the caller's time, with errors in the caller's words. */
  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T>;
  /** What happens there is told, until what is returned is called. Members are told everything, but changes of maps only while one is followed. */
  follow(topic: Topic, name: string): () => void;
  /** Calls back with all that this replica applies, in order, until what is returned is called. */
  listen(listener: Listener): () => void;
}

/** `until`: up to when it is certain, on the platform's clock. */
export type Listener = (event: Told, until: number | null) => void;

export type Told =
  | ServiceEvent
  /** This member's session: what it is granted counts from the first `confirmed` on, for as long as that says. */
  | { readonly type: "began" | "confirmed"; readonly session: SessionId }
  /** Others may be granted what it held from now on. */
  | { readonly type: "lost"; readonly session: SessionId; readonly why?: string | undefined }
  /** Who leads the log. */
  | { readonly type: "led"; readonly leader: NodeId | null; readonly term: number }
  /** This replica was given a snapshot: what happened before it is told by nothing but the state. */
  | { readonly type: "restored"; readonly revision: number }
  /** The engine was restored to an earlier state, such as from a backup: changes that were told may have been undone. */
  | { readonly type: "rolled-back" }
  /** The member leaves, or has failed. */
  | { readonly type: "closed"; readonly reason: CoordinationError };

/** At which it was done: the revision of what it has changed. */
export interface Done<O> {
  readonly revision: number;
  /** In which it was done. */
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
