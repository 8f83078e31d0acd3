/** The replicated service as this process's shared state uses it, and the events that it reports. */
import type { NodeId } from "../../../core/protocol.ts";
import type {
  Answer,
  Change,
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

/** The kinds of things to follow: the changes of a map, or the grants of a name. */
export type Topic = "map" | "grants";

/** The replicated service of a member, a client or an engine. */
export interface Service {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly self: NodeId;
  readonly counts: Pick<Counts, "locks" | "leaderships">;
  /** The maximum number of waiters per name in this process. */
  readonly maxWaiters: number;
  /** This member's session. Null if it has none. */
  readonly session: SessionId | null;
  /** The time until which no other session can acquire this session's grants. Null if the session is unconfirmed. */
  readonly until: number | null;
  /** The revision of the last change that this replica knows. Null until it has been up to date once. */
  readonly revision: number | null;
  /** Why no more calls are accepted. Null until the member leaves or fails. */
  readonly closed: CoordinationError | null;
  /** Why calls might not be answered, as a clause. Empty if unknown. */
  readonly why: string;
  /** The error behind `why`, if there is one. */
  readonly cause?: Error | undefined;
  /** @throws UsageError if the member has no `dataDir`; CoordinationError once the member leaves */
  use(): void;
  /**
   * Resolves once this replica has been up to date, with a revision that was current at that time. That revision
   * precedes all writes that this member has made since the call.
   */
  current(): Promise<number>;
  /**
   * Whether the session belongs to this member. Events that arrive before the session's `began` event can be recognized
   * only in this way.
   */
  isOwn(session: SessionId): boolean;
  /**
   * Whether this incarnation of the member has used the session. The member's other sessions belong to earlier
   * incarnations.
   */
  isOfThisRun(session: SessionId): boolean;
  /** Returns a number that is unique across all incarnations of this member. */
  number(): number;
  /**
   * Submits the operation once. Resolves when this replica has applied it. If the session ends first, the operation is
   * submitted again in the next session, as long as it is wanted.
   * @throws CoordinationError or UsageError if the operation was refused
   */
  submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>>;
  /**
   * Performs a linearizable read. An abandoned query is not repeated.
   * @throws the same errors as `submit`
   */
  query<Q extends Query>(query: Q, isWanted?: IsWanted): Promise<Found<Q>>;
  /** Runs requests within the caller's timeout. Their errors name the call. */
  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T>;
  /**
   * Starts reporting events for the given name. Members report all events anyway, except map changes, which are
   * reported only while the map is followed.
   * @returns a function that stops this
   */
  follow(topic: Topic, name: string): () => void;
  /**
   * Calls the listener with all events that this replica applies, in order.
   * @returns a function that removes the listener
   */
  listen(listener: Listener): () => void;
}

/** A listener for events. `until` is when the confirmation expires, according to the platform's clock. */
export type Listener = (event: Told, until: number | null) => void;

export type Told =
  | ServiceEvent
  /** A key of a map has changed. */
  | ({ readonly type: "changed" } & Change)
  /**
   * This member's session has begun or was confirmed. Its grants are valid from the first `confirmed` event until the
   * confirmation expires.
   */
  | { readonly type: "began" | "confirmed"; readonly session: SessionId }
  /** This member's session was lost. Other sessions can acquire its grants from now on. */
  | { readonly type: "lost"; readonly session: SessionId; readonly why?: string | undefined }
  /** The log has a new leader, or none. */
  | { readonly type: "led"; readonly leader: NodeId | null; readonly term: number }
  /** This replica installed a snapshot. Earlier events are missing, and their effects are visible only in the state. */
  | { readonly type: "restored"; readonly revision: number }
  /** The engine was restored to an earlier state, for example from a backup. Reported changes may have been undone. */
  | { readonly type: "rolled-back" }
  /** The member is leaving or has failed. */
  | { readonly type: "closed"; readonly reason: CoordinationError };

/** A completed operation, with the revision of its changes. */
export interface Done<O> {
  readonly revision: number;
  /** The session that submitted the operation. */
  readonly session: SessionId;
  readonly result: Extract<Result, { type: ResultTypes[TypeOf<O> & keyof ResultTypes] }>;
}

/** The answer to a query, with the revision at which it is true. */
export interface Found<Q> {
  readonly revision: number;
  readonly answer: Extract<Answer, { type: AnswerTypes[TypeOf<Q> & keyof AnswerTypes] }>;
}

type TypeOf<T> = T extends { readonly type: infer K } ? K : never;

interface ResultTypes {
  put: "stored";
  delete: "stored";
  transaction: "transaction";
  keys: "keys";
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
  readKeys: "keys";
  count: "counted";
  holders: "holders";
  backlog: "backlog";
  arrival: "arrival";
  sessions: "sessions";
  members: "members";
  ask: "answered";
}
