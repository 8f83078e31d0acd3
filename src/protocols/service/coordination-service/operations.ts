/** The service's vocabulary: its operations, queries, results and events, with their shapes and limits. */
import type { NodeId } from "../../../core/protocol.ts";
import {
  boolean,
  list,
  natural,
  nullable,
  oneOf,
  real,
  type Shape,
  type Shapes,
  struct,
  text,
  variants,
} from "../../../core/shape.ts";
import { MAX_KEY_BYTES, MAX_NAME_BYTES, OWN_NAMES } from "../keyspace/layout.ts";
import { keyspaceCommandShape, keyspaceQuestionShape, keyspaceResponseShape } from "../keyspace/shapes.ts";
import type { KeyspaceChange, KeyspaceCommand, KeyspaceQuestion, KeyspaceResponse } from "../keyspace/vocabulary.ts";
import { type MemberList, type MemberOperation, memberListShape, memberOperationShapes } from "./member-words.ts";
import { type Refusal, refusalFields } from "./refusals.ts";

export { isOwn, MAX_KEY_BYTES, MAX_NAME_BYTES, OWN_NAMES } from "../keyspace/layout.ts";
export { type Refusal, type RefusalCode, refusalCodes, refusalShape, refuse } from "./refusals.ts";

/** The lowest client id. A client is a process that is not a member. The log assigns each id only once. */
export const FIRST_CLIENT: NodeId = 2 ** 40;
/** Returns whether an id belongs to a client rather than a member. */
export const isClient = (member: NodeId): boolean => member >= FIRST_CLIENT;

/** The name of the map with the addresses at which members serve clients. */
export const ENDPOINTS = `${OWN_NAMES}endpoints`;
/** The name of the map with the addresses at which members serve the etcd API. */
export const ETCD_ENDPOINTS = `${OWN_NAMES}etcd-endpoints`;

/** The id of a session. Sessions are numbered in the order in which they are opened. */
export type SessionId = number;

/**
 * The number of a change. Revisions increase with every change to any name and never start over. A grant's revision is
 * its fencing token.
 */
export type Revision = number;

/** The id of something that a session waits for, such as a grant. Unique within the session's member. */
export type WaitId = number;

/** An operation, which changes the state and goes through the log. */
export type Operation =
  | KeyOperation
  | KeyspaceOperation
  | CounterOperation
  | GrantOperation
  | BarrierOperation
  | QueueOperation
  | GroupOperation
  | Command
  | MemberOperation;

/** An operation that writes keys in maps. */
export type KeyOperation =
  /** `isLeased`: whether the key is deleted when the session ends. */
  | { type: "put"; map: string; key: string; value: string; isLeased: boolean }
  | { type: "delete"; map: string; key: string }
  /** Runs all steps in `success` if all comparisons hold, or else all steps in `failure`, at a single revision. */
  | { type: "transaction"; compare: Comparison[]; success: Step[]; failure: Step[] };

/**
 * A command from a client of etcd, and the caller that waits for its response. Replicas retain results until the session
 * acknowledges them, so a long response is not retained, but emitted when the command is applied.
 */
export type KeyspaceOperation = { type: "keys"; caller: string; command: KeyspaceCommand };

/** A condition in a transaction. */
export type Comparison =
  /** Revision 0 means that the key does not exist. */
  | { type: "revision"; map: string; key: string; revision: Revision }
  | { type: "value"; map: string; key: string; value: string };

/** A single read or write in a transaction. */
export type Step =
  | { type: "put"; map: string; key: string; value: string; isLeased: boolean }
  | { type: "delete"; map: string; key: string }
  | { type: "get"; map: string; key: string };

/** Adds to a counter, or replaces its value. */
export type CounterOperation = { type: "add"; name: string; by: number } | { type: "set"; name: string; to: number };

/** Acquires or releases a lock, permits or a leadership. */
export type GrantOperation =
  /**
   * Waits in the name's fair queue. `exclusive` takes the whole capacity, and `shared` takes the given number of
   * permits. A repeated request with the same `wait` gets the same answer. `note` describes the holder to others, for
   * example by its address.
   */
  | {
      type: "acquire";
      name: string;
      wait: WaitId;
      mode: "exclusive" | "shared";
      permits: number;
      capacity: number;
      note: string;
    }
  | { type: "release"; name: string; token: Revision }
  /** Stops waiting, or releases the grant if it has already been made. */
  | { type: "withdraw"; name: string; wait: WaitId };

/** Arrives at a barrier, or withdraws the arrival. */
export type BarrierOperation =
  /** Waits until this number of parties has arrived. */
  { type: "arrive"; name: string; wait: WaitId; parties: number } | { type: "leave"; name: string; wait: WaitId };

/** Adds, takes, finishes or gives back an item in a queue. */
export type QueueOperation =
  | { type: "enqueue"; name: string; value: string }
  /** Waits in a fair queue for an item. No other session receives the same item unless it is given back. */
  | { type: "take"; name: string; wait: WaitId }
  /** Stops waiting, or gives back the item if it has already been received. */
  | { type: "stopTaking"; name: string; wait: WaitId }
  /** Removes a processed item permanently. */
  | { type: "finish"; name: string; token: Revision }
  /** Puts the item back at the front of the queue. */
  | { type: "giveBack"; name: string; token: Revision };

/** Changes the members of a channel, or sends a message through the log. */
export type GroupOperation =
  /**
   * Joins the group as a new member, starting with the next view. `wait` identifies this membership. `setting`
   * describes how the group is used, and must be the same for all members.
   */
  | { type: "enterGroup"; name: string; wait: WaitId; setting: string }
  | { type: "leaveGroup"; name: string }
  /**
   * Removes the member identified by `session` and `sessionWait`, unless the requesting session has left the group or
   * entered it again.
   */
  | { type: "expelFromGroup"; name: string; wait: WaitId; session: SessionId; sessionWait: WaitId }
  /**
   * Sends a message to all members of the group, or to one, unless the session has left the group or entered it again.
   * `number` counts the messages since the session entered, starting at 1, and messages are accepted only in that
   * order. A message with number 0 is accepted in any order.
   */
  | { type: "say"; name: string; wait: WaitId; number: number; to: NodeId | null; text: string };

/** An operation that executes a command on a state machine. */
export type Command = { type: "execute"; machine: string; command: string };

/** An operation that a member adds to manage its own session. */
export type SessionOperation =
  /**
   * Opens the session. This is always the session's first operation. `version` is the member's `STATE_MACHINE_VERSION`.
   */
  | { type: "begin"; ttlMs: number; version: number }
  /**
   * A fragment of an operation whose JSON is too long for one log entry. Fragments are numbered from 1, and the last
   * one executes the operation.
   */
  | { type: "part"; number: number; isLast: boolean; text: string }
  /** Closes the session. With `ifIdle`, the operation is refused if the session holds or is waiting for something. */
  | { type: "close"; ifIdle: boolean };

/** The content of a log entry, which is stored as JSON. */
export type Proposal =
  /**
   * A session's operations, numbered consecutively from `first`. They are applied in order, each only once. Operations
   * after a gap are proposed again. The member has received all replies up to `acknowledged`. `round` is a lease round
   * that began before this entry was first proposed.
   */
  | {
      type: "operations";
      life: number;
      round: number;
      acknowledged: number;
      first: number;
      operations: (Operation | SessionOperation)[];
    }
  /**
   * Proposed by a leader. Expires the session, unless the log contains a later sign of life than the one at index
   * `seen`.
   */
  | { type: "expire"; session: SessionId; seen: number };

/** A query, which an up-to-date replica answers. */
export type Query =
  | { type: "get"; map: string; key: string }
  /**
   * Returns the keys from `from` up to but not including `to`, in order. If `to` is null, the range extends to the end.
   */
  | { type: "range"; map: string; from: string; to: string | null; limit: number }
  /**
   * Returns the changes to a map after a revision, up to a limited size. To continue after the last one, follow the
   * events after the answer's revision.
   */
  | { type: "changes"; map: string; after: Revision }
  /** Answers a question from a client of etcd. */
  | { type: "readKeys"; question: KeyspaceQuestion }
  | { type: "count"; name: string }
  | { type: "holders"; name: string }
  | { type: "backlog"; name: string }
  /** Returns the state of an arrival at a barrier. The arrival must have been applied. */
  | { type: "arrival"; name: string; session: SessionId; wait: WaitId }
  | { type: "sessions" }
  | { type: "members" }
  /** Asks a state machine a question about its state. */
  | { type: "ask"; machine: string; question: string };

/** The value of a key. */
export interface Stored {
  /** The value, a string of at most `MAX_VALUE_BYTES`. */
  value: string;
  /** The revision of the key's last change. */
  revision: Revision;
  /** The session that leases the key; the key is deleted when the session ends. Null if the key is not leased. */
  session: SessionId | null;
}

/** A key and its value. */
export interface KeyEntry extends Stored {
  /** The key, a string of at most `MAX_KEY_BYTES`. */
  key: string;
}

/** A change to a key. */
export interface Change {
  /** The revision of the operation that changed the key. */
  revision: Revision;
  /** The map that contains the key. */
  map: string;
  /** The changed key. */
  key: string;
  /** The new value. Null if the key was deleted. */
  value: string | null;
}

/** A grant that a session holds. */
export interface Holder {
  /** The session that holds the grant; the grant is released when the session ends. */
  session: SessionId;
  /** The member or client that the session belongs to. */
  member: NodeId;
  /** The fencing token. */
  token: Revision;
  /** `exclusive` if there can be no other holder. */
  mode: "exclusive" | "shared";
  /** The number of permits that the grant takes. */
  permits: number;
  /** The text passed to `acquire`. */
  note: string;
}

/** The result of one step in a transaction. */
export type StepResult = { type: "stored"; previous: Stored | null } | { type: "found"; entry: Stored | null };

/** The outcome of an operation. */
export type Result =
  | { type: "done" }
  /** The result of `put` and `delete`. */
  | { type: "stored"; previous: Stored | null }
  | { type: "transaction"; succeeded: boolean; results: StepResult[] }
  /** The response to a client of etcd. Null if it is too long to retain, so it was only emitted. */
  | { type: "keys"; response: KeyspaceResponse | null }
  /** The new value of the counter. */
  | { type: "counted"; value: number }
  | { type: "granted"; token: Revision }
  /** `ahead` is the number of waiters that will be served first. An event follows when the request is granted. */
  | { type: "waiting"; ahead: number }
  | { type: "passed"; generation: Revision }
  | { type: "enqueued"; item: Revision }
  | { type: "item"; token: Revision; value: string }
  /** The result from a state machine. */
  | { type: "executed"; result: string }
  /**
   * The command was applied, but its result is unknown, because no replica that could report the result has defined the
   * machine.
   */
  | { type: "unknown" }
  | Refusal;

/** The answer to a query. */
export type Answer =
  | { type: "found"; entry: Stored | null }
  /** `isMore`: whether there are more entries than the limit. */
  | { type: "entries"; entries: KeyEntry[]; isMore: boolean }
  /** `isMore`: whether there are more changes. To continue, query the changes after the last one's revision. */
  | { type: "changes"; changes: Change[]; isMore: boolean }
  | { type: "keys"; response: KeyspaceResponse }
  | { type: "counted"; value: number }
  | { type: "holders"; holders: Holder[]; waiting: number }
  | { type: "backlog"; items: number; taken: number; waiting: number }
  /** `passed`: the barrier has opened, or the arrival was withdrawn. `unknown`: the session has ended. */
  | { type: "arrival"; state: "waiting" | "passed" | "unknown" }
  | { type: "sessions"; sessions: { session: SessionId; member: NodeId }[] }
  /** Null if the members are still the cluster's founders. */
  | { type: "members"; list: MemberList | null }
  /** The machine's answer, as JSON. */
  | { type: "answered"; answer: string }
  | Refusal;

/** A member of a group. */
export interface GroupMember {
  /** The session that entered the group. */
  session: SessionId;
  /** The member or client that the session belongs to. */
  member: NodeId;
  /** The id of this membership. */
  wait: WaitId;
  /** How many numbered messages the member has sent since it entered. */
  spoken: number;
}

/** The reason why a session ended. `replaced` means that its member opened a new one. */
export type EndReason = "closed" | "expired" | "replaced";

/**
 * An event that every replica emits, in log order, when it applies the log. After a restart, a replica again emits the
 * events after the last snapshot. A repeated request for a grant repeats the event.
 */
export type ServiceEvent =
  /** Keys or leases have changed. */
  | ({ type: "keysChanged" } & KeyspaceChange)
  /** The response to a command from a client of etcd that is too long for the operation's result. */
  | { type: "keysAnswered"; caller: string; response: KeyspaceResponse }
  /** The entry that opens a session may also grant its first request. In that case, `opened` comes first. */
  | { type: "granted"; name: string; session: SessionId; wait: WaitId; token: Revision; note: string }
  /** A grant was released, or its session ended. */
  | { type: "released"; name: string; session: SessionId; token: Revision }
  | { type: "passed"; name: string; generation: Revision; arrivals: { session: SessionId; wait: WaitId }[] }
  | { type: "item"; name: string; session: SessionId; wait: WaitId; token: Revision; value: string }
  /** A group has a new view with these members, in order of entry. View numbers increase. */
  | { type: "grouped"; name: string; view: Revision; members: GroupMember[] }
  | { type: "said"; name: string; from: NodeId; to: NodeId | null; text: string; revision: Revision }
  | { type: "opened"; session: SessionId; member: NodeId; life: number }
  | { type: "ended"; session: SessionId; member: NodeId; life: number; reason: EndReason }
  /**
   * This replica has not defined the machine. Emitted each time the waiting commands use up another eighth of
   * `maxBytes`.
   */
  | { type: "commandsWait"; machine: string; bytes: number; maxBytes: number }
  /** The member list has changed to the given one. */
  | { type: "members"; list: MemberList };

/** The maximum size of a log entry, in bytes. */
export const MAX_PROPOSAL_BYTES = 65_536;
/** The maximum size of an operation as JSON, in bytes. A longer operation is split into parts. */
export const MAX_OPERATION_BYTES = 65_000;
/** The maximum size of a value, in UTF-8 bytes. */
export const MAX_VALUE_BYTES = 1_048_576;
/**
 * The maximum total size of an operation as JSON, over all its parts, in bytes. Every character may need to be escaped.
 */
export const MAX_WHOLE_BYTES = 2 * MAX_VALUE_BYTES + 65_536;
/**
 * The length of a part, in UTF-16 units. A unit takes at most three bytes in JSON, except for a few next to a cut,
 * which take up to six.
 */
export const PART_CHARS = 21_000;
/**
 * The version of the rules for applying log entries. Replicas with different rules would diverge, so members with
 * different versions do not exchange log messages. See docs/operate/upgrade.md.
 */
export const STATE_MACHINE_VERSION = 1;
/** The maximum length of a grant's note, in UTF-8 bytes. */
export const MAX_NOTE_BYTES = 4_096;
/** The maximum length of a group's setting, in UTF-8 bytes. */
export const MAX_SETTING_BYTES = 4_096;
/** The maximum number of comparisons in a transaction, and the maximum number of steps in each branch. */
export const MAX_STEPS = 128;
/** The maximum number of operations in one log entry. */
export const MAX_OPERATIONS = 1_024;
/** The size of the answer to a query for changes, in bytes, unless one revision is larger. */
export const MAX_CHANGES_BYTES = 1_048_576;
/** The maximum length of the name of a caller. */
const MAX_CALLER_BYTES = 100;
/** The maximum number of entries in the answer to a range query. */
export const MAX_RANGE = 10_000;
/** The maximum capacity of a semaphore. */
export const MAX_PERMITS = 1_000_000;
/** The maximum number of parties at a barrier. */
export const MAX_PARTIES = 10_000;
/** A bound on lists in answers, beyond what the state can contain: one revision may delete all its keys. */
const MAX_KEPT = 1_000_000;
const MAX_ANSWER_BYTES = 16_777_216;

const name = text(MAX_NAME_BYTES);
const key = text(MAX_KEY_BYTES);
const value = text(MAX_VALUE_BYTES);

const stepShapes = {
  put: { map: name, key, value, isLeased: boolean },
  delete: { map: name, key },
} as const;

const comparisons = list(
  variants<Comparison>({
    revision: { map: name, key, revision: natural },
    value: { map: name, key, value },
  }),
  MAX_STEPS,
);
const steps = list(variants<Step>({ ...stepShapes, get: { map: name, key } }), MAX_STEPS);

/** The shapes of group operations, for machines with commands that contain them. */
export const groupOperationShapes: Shapes<GroupOperation> = {
  enterGroup: { name, wait: natural, setting: text(MAX_SETTING_BYTES) },
  leaveGroup: { name },
  expelFromGroup: { name, wait: natural, session: natural, sessionWait: natural },
  say: { name, wait: natural, number: natural, to: nullable(natural), text: value },
};

const operationShapes = {
  ...stepShapes,
  transaction: { compare: comparisons, success: steps, failure: steps },
  keys: { caller: text(MAX_CALLER_BYTES), command: keyspaceCommandShape },
  add: { name, by: real },
  set: { name, to: real },
  acquire: {
    name,
    wait: natural,
    mode: oneOf("exclusive", "shared"),
    permits: natural,
    capacity: natural,
    note: text(MAX_NOTE_BYTES),
  },
  release: { name, token: natural },
  withdraw: { name, wait: natural },
  arrive: { name, wait: natural, parties: natural },
  leave: { name, wait: natural },
  enqueue: { name, value },
  take: { name, wait: natural },
  stopTaking: { name, wait: natural },
  finish: { name, token: natural },
  giveBack: { name, token: natural },
  ...groupOperationShapes,
  execute: { machine: name, command: value },
  ...memberOperationShapes,
} as const;

/** The shape of an operation. */
export const operationShape: Shape<Operation> = variants<Operation>(operationShapes);

/** The shape of a log entry. */
export const proposalShape: Shape<Proposal> = variants<Proposal>({
  operations: {
    life: natural,
    round: natural,
    acknowledged: natural,
    first: natural,
    operations: list(
      variants<Operation | SessionOperation>({
        ...operationShapes,
        begin: { ttlMs: natural, version: natural },
        part: { number: natural, isLast: boolean, text: text(MAX_OPERATION_BYTES) },
        close: { ifIdle: boolean },
      }),
      MAX_OPERATIONS,
    ),
  },
  expire: { session: natural, seen: natural },
});

/** The shape of a query. */
export const queryShape: Shape<Query> = variants<Query>({
  get: { map: name, key },
  range: { map: name, from: key, to: nullable(key), limit: natural },
  changes: { map: name, after: natural },
  readKeys: { question: keyspaceQuestionShape },
  count: { name },
  holders: { name },
  backlog: { name },
  arrival: { name, session: natural, wait: natural },
  sessions: {},
  members: {},
  ask: { machine: name, question: value },
});

const storedFields = { value, revision: natural, session: nullable(natural) };
const stored = nullable(struct<Stored>(storedFields));

/** The shape of a result. */
export const resultShape: Shape<Result> = variants<Result>({
  done: {},
  stored: { previous: stored },
  transaction: {
    succeeded: boolean,
    results: list(variants<StepResult>({ stored: { previous: stored }, found: { entry: stored } }), MAX_STEPS),
  },
  keys: { response: nullable(keyspaceResponseShape) },
  counted: { value: real },
  granted: { token: natural },
  waiting: { ahead: natural },
  passed: { generation: natural },
  enqueued: { item: natural },
  item: { token: natural, value },
  executed: { result: text(MAX_ANSWER_BYTES) },
  unknown: {},
  refused: refusalFields,
});

/** The shape of an answer. */
export const answerShape: Shape<Answer> = variants<Answer>({
  found: { entry: stored },
  entries: { entries: list(struct<KeyEntry>({ key, ...storedFields }), MAX_RANGE), isMore: boolean },
  changes: {
    changes: list(struct<Change>({ revision: natural, map: name, key, value: nullable(value) }), MAX_KEPT),
    isMore: boolean,
  },
  keys: { response: keyspaceResponseShape },
  counted: { value: real },
  holders: {
    holders: list(
      struct<Holder>({
        session: natural,
        member: natural,
        token: natural,
        mode: oneOf("exclusive", "shared"),
        permits: natural,
        note: text(MAX_NOTE_BYTES),
      }),
      MAX_KEPT,
    ),
    waiting: natural,
  },
  backlog: { items: natural, taken: natural, waiting: natural },
  arrival: { state: oneOf("waiting", "passed", "unknown") },
  sessions: {
    sessions: list(struct<{ session: SessionId; member: NodeId }>({ session: natural, member: natural }), MAX_KEPT),
  },
  members: { list: nullable(memberListShape) },
  answered: { answer: text(MAX_ANSWER_BYTES) },
  refused: refusalFields,
});

/** Returns the range of all keys with the given prefix. Keys are in the order of their code points. */
export function prefixRange(prefix: string): { from: string; to: string | null } {
  const codes = Array.from(prefix, (character) => character.codePointAt(0) as number);
  for (let last = codes.pop(); last !== undefined; last = codes.pop())
    if (last < 0x10_ff_ff) return { from: prefix, to: String.fromCodePoint(...codes, last + 1) };
  return { from: prefix, to: null };
}
