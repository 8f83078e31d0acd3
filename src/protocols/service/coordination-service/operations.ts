/** The vocabulary of the service: its operations, queries, results and events, with their shapes and limits. */
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
import { type MemberList, type MemberOperation, memberListShape, memberOperationShapes } from "./member-words.ts";

/** The log gives clients that are not members ids from here on, each only once. */
export const FIRST_CLIENT: NodeId = 2 ** 40;
export const isClient = (member: NodeId): boolean => member >= FIRST_CLIENT;

/** The map of the addresses where members serve clients. Names with this prefix are reserved for members. */
export const OWN_NAMES = "coterie/";
export const isOwn = (name: string): boolean => name.startsWith(OWN_NAMES);
export const ENDPOINTS = `${OWN_NAMES}endpoints`;
/** The map of the addresses where members serve etcd's API. */
export const ETCD_ENDPOINTS = `${OWN_NAMES}etcd-endpoints`;

/** Identifies a session of a member: the revision at which it was opened. */
export type SessionId = number;

/** Increases with every change, over all names, forever. The revision of a grant is its fencing token. */
export type Revision = number;

/** Identifies something that a session waits for, such as a grant. Unique within its member. */
export type WaitId = number;

/** Operations change the state and go through the log. */
export type Operation =
  | KeyOperation
  | CounterOperation
  | GrantOperation
  | BarrierOperation
  | QueueOperation
  | GroupOperation
  | Command
  | MemberOperation;

export type KeyOperation =
  /** `isLeased`: the key is deleted when the session ends. */
  | { type: "put"; map: string; key: string; value: string; isLeased: boolean }
  | { type: "delete"; map: string; key: string }
  /** Runs all of `success` if all comparisons hold, otherwise all of `failure`, at one revision. */
  | { type: "transaction"; compare: Comparison[]; success: Step[]; failure: Step[] };

export type Comparison =
  /** Revision 0: the key is absent. */
  | { type: "revision"; map: string; key: string; revision: Revision }
  | { type: "value"; map: string; key: string; value: string };

export type Step =
  | { type: "put"; map: string; key: string; value: string; isLeased: boolean }
  | { type: "delete"; map: string; key: string }
  | { type: "get"; map: string; key: string };

export type CounterOperation = { type: "add"; name: string; by: number } | { type: "set"; name: string; to: number };

export type GrantOperation =
  /**
   * Waits in the fair queue of the name. `exclusive` takes the whole capacity, `shared` as many permits as given. A
   * repeated request with the same `wait` gets the same answer. `note` describes the holder to others, for example by
   * its address.
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
  /** Stops waiting, or releases the grant if it was made meanwhile. */
  | { type: "withdraw"; name: string; wait: WaitId };

export type BarrierOperation =
  /** Waits until this many parties have arrived. */
  { type: "arrive"; name: string; wait: WaitId; parties: number } | { type: "leave"; name: string; wait: WaitId };

export type QueueOperation =
  | { type: "enqueue"; name: string; value: string }
  /** Waits in a fair queue for an item. No other session gets the item unless it is given back. */
  | { type: "take"; name: string; wait: WaitId }
  /** Stops waiting, or gives back the item received meanwhile. */
  | { type: "stopTaking"; name: string; wait: WaitId }
  /** Removes a processed item for good. */
  | { type: "finish"; name: string; token: Revision }
  /** Puts the item back at the front of the queue. */
  | { type: "giveBack"; name: string; token: Revision };

export type GroupOperation =
  /**
   * Joins the group as a new member, from the next view on. `wait` identifies this membership. `setting` describes how
   * the group is used; all its members must agree on it.
   */
  | { type: "enterGroup"; name: string; wait: WaitId; setting: string }
  | { type: "leaveGroup"; name: string }
  /**
   * Removes the member named by `session` and `sessionWait`, unless this session has left the group or entered it
   * again.
   */
  | { type: "expelFromGroup"; name: string; wait: WaitId; session: SessionId; sessionWait: WaitId }
  /**
   * Sends a message to all members of the group, or to one, unless the session has left the group or entered it again.
   * `number` counts from 1 since it entered, and messages are accepted only in that order; 0: in any order.
   */
  | { type: "say"; name: string; wait: WaitId; number: number; to: NodeId | null; text: string };

/** For a state machine that the application has defined. */
export type Command = { type: "execute"; machine: string; command: string };

/** Operations that a member adds for its own session. */
export type SessionOperation =
  /** Always the first of a session. `version` is the member's `STATE_MACHINE_VERSION`. */
  | { type: "begin"; ttlMs: number; version: number }
  /**
   * A fragment of the JSON of an operation that is too long for one log entry. Fragments count from 1; the last one
   * executes the operation.
   */
  | { type: "part"; number: number; isLast: boolean; text: string }
  /** `ifIdle`: is refused if the session holds or waits for something. */
  | { type: "close"; ifIdle: boolean };

/** The content of a log entry, as JSON. */
export type Proposal =
  /**
   * Operations of a session, numbered from `first` on. They are applied in order, each once; those after a gap are
   * proposed again. The member has received all replies up to `acknowledged`. `round` is a lease round that began
   * before this was first proposed.
   */
  | {
      type: "operations";
      life: number;
      round: number;
      acknowledged: number;
      first: number;
      operations: (Operation | SessionOperation)[];
    }
  /** From a leader: expires the session unless the log has a later sign of life than the one at index `seen`. */
  | { type: "expire"; session: SessionId; seen: number };

/** An up-to-date replica answers queries. */
export type Query =
  | { type: "get"; map: string; key: string }
  /** Keys from `from` up to but excluding `to`, in order; null: to the end. */
  | { type: "range"; map: string; from: string; to: string | null; limit: number }
  /**
   * All changes of a map after a revision. To continue without a duplicate, follow the events after the answer's
   * revision.
   */
  | { type: "changes"; map: string; after: Revision }
  | { type: "count"; name: string }
  | { type: "holders"; name: string }
  | { type: "backlog"; name: string }
  /** The state of an arrival at a barrier that has been applied. */
  | { type: "arrival"; name: string; session: SessionId; wait: WaitId }
  | { type: "sessions" }
  | { type: "members" }
  /** Queries all state, as the machine defines it. */
  | { type: "ask"; machine: string; question: string };

/** The value of a key. */
export interface Stored {
  value: string;
  /** The revision of its last change. */
  revision: Revision;
  /** The session whose end deletes it, if it is leased. */
  session: SessionId | null;
}

export interface KeyEntry extends Stored {
  key: string;
}

export interface Change {
  revision: Revision;
  map: string;
  key: string;
  /** Null: the key was deleted. */
  value: string | null;
}

export interface Holder {
  session: SessionId;
  member: NodeId;
  token: Revision;
  mode: "exclusive" | "shared";
  permits: number;
  note: string;
}

export type StepResult = { type: "stored"; previous: Stored | null } | { type: "found"; entry: Stored | null };

/** The outcome of an operation. */
export type Result =
  | { type: "done" }
  /** By `put` and `delete`. */
  | { type: "stored"; previous: Stored | null }
  | { type: "transaction"; succeeded: boolean; results: StepResult[] }
  /** The new value. */
  | { type: "counted"; value: number }
  | { type: "granted"; token: Revision }
  /** This many are ahead. An event follows when it is granted. */
  | { type: "waiting"; ahead: number }
  | { type: "passed"; generation: Revision }
  | { type: "enqueued"; item: Revision }
  | { type: "item"; token: Revision; value: string }
  /** By a state machine. */
  | { type: "executed"; result: string }
  /** Applied, but the result is unknown: the replicas that would know it have not defined the machine. */
  | { type: "unknown" }
  | Refusal;

export type Refusal = { type: "refused"; code: RefusalCode; reason: string };

export const refusalCodes = [
  /** An operation, a key or a name is too large. */
  "too-large",
  /** The state of the service has reached its limit. */
  "full",
  /** More waiters, items or names than allowed. */
  "too-many",
  /** Too many operations of this member are in progress. */
  "overloaded",
  "bad-operation",
  /** A counter would leave the range of safe integers. */
  "overflow",
  /** The name is in use with another capacity or another number of parties. */
  "in-use",
  /** The session holds nothing with this token. */
  "not-held",
  /** The session ended before the operation was applied: it has not been applied and will not be. */
  "session-expired",
  /** The session ended, and this member does not know whether the operation was applied before. */
  "outcome-unknown",
  /** The changes after that revision are no longer kept. */
  "compacted",
  /** This member has not defined the state machine. */
  "unknown-machine",
  "machine-failed",
  /** About the member list. */
  "unknown-member",
  "member-exists",
  "last-voter",
  /** Only one change of the voters is allowed at a time. */
  "change-under-way",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

export const refuse = (code: RefusalCode, reason: string): Refusal => ({ type: "refused", code, reason });

/** The answer to a query. */
export type Answer =
  | { type: "found"; entry: Stored | null }
  /** `isMore`: the limit cut the result short. */
  | { type: "entries"; entries: KeyEntry[]; isMore: boolean }
  | { type: "changes"; changes: Change[] }
  | { type: "counted"; value: number }
  | { type: "holders"; holders: Holder[]; waiting: number }
  | { type: "backlog"; items: number; taken: number; waiting: number }
  /** `passed`: passed, or withdrawn. `unknown`: the session has ended, before or after the barrier opened. */
  | { type: "arrival"; state: "waiting" | "passed" | "unknown" }
  | { type: "sessions"; sessions: { session: SessionId; member: NodeId }[] }
  /** Null: still the founders of the cluster. */
  | { type: "members"; list: MemberList | null }
  /** The machine's answer, as JSON. */
  | { type: "answered"; answer: string }
  | Refusal;

export interface GroupMember {
  session: SessionId;
  member: NodeId;
  wait: WaitId;
  /** The number of numbered messages it has sent since it entered. */
  spoken: number;
}

export type EndReason = "closed" | "expired" | "replaced";

/**
 * Events that every replica emits as it applies the log, in log order. After a restart it emits them again from the
 * last snapshot on. A repeated request for a grant repeats the event.
 */
export type ServiceEvent =
  | ({ type: "changed" } & Change)
  /** The entry that opens a session may also grant its first request; `opened` comes first. */
  | { type: "granted"; name: string; session: SessionId; wait: WaitId; token: Revision; note: string }
  /** Also emitted when the session ends. */
  | { type: "released"; name: string; session: SessionId; token: Revision }
  | { type: "passed"; name: string; generation: Revision; arrivals: { session: SessionId; wait: WaitId }[] }
  | { type: "item"; name: string; session: SessionId; wait: WaitId; token: Revision; value: string }
  /** The members of a group from here on, in order of entry. Views increase. */
  | { type: "grouped"; name: string; view: Revision; members: GroupMember[] }
  | { type: "said"; name: string; from: NodeId; to: NodeId | null; text: string; revision: Revision }
  | { type: "opened"; session: SessionId; member: NodeId; life: number }
  | { type: "ended"; session: SessionId; member: NodeId; life: number; reason: EndReason }
  /** A change by a built-in machine, as plain data that the machine defines. */
  | { type: "machineChanged"; machine: string; change: unknown }
  /**
   * A replica has not defined the machine. Emitted each time another eighth of `maxBytes` is used by waiting commands.
   */
  | { type: "commandsWait"; machine: string; bytes: number; maxBytes: number }
  /** The members from here on. */
  | { type: "members"; list: MemberList };

/** The most bytes in a log entry. */
export const MAX_PROPOSAL_BYTES = 65_536;
/**
 * The most bytes of one operation as JSON, leaving room for the rest of the proposal. A longer one is split into parts.
 */
export const MAX_OPERATION_BYTES = 65_000;
/** As UTF-8, such as JSON. */
export const MAX_VALUE_BYTES = 1_048_576;
/**
 * The most bytes of an operation as JSON, over all its parts: room for a value whose characters must all be escaped.
 */
export const MAX_WHOLE_BYTES = 2 * MAX_VALUE_BYTES + 65_536;
/** The length of a part, in UTF-16 units. Each takes at most three bytes of JSON; a few at a cut may take six. */
export const PART_CHARS = 21_000;
/**
 * The version of the meaning of log entries. Replicas with different rules would diverge, so members of different
 * versions do not exchange messages of the log: docs/operate/upgrade.md.
 */
export const STATE_MACHINE_VERSION = 1;
export const MAX_NAME_BYTES = 256;
export const MAX_KEY_BYTES = 1_024;
export const MAX_NOTE_BYTES = 4_096;
/** For the setting of a group. */
export const MAX_SETTING_BYTES = 4_096;
export const MAX_STEPS = 128;
export const MAX_OPERATIONS = 1_024;
/** For one answer to a range query. */
export const MAX_RANGE = 10_000;
export const MAX_PERMITS = 1_000_000;
export const MAX_PARTIES = 10_000;
/** Bounds lists in the state, and so in an answer. */
const MAX_KEPT = 100_000;
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

export const groupOperationShapes: Shapes<GroupOperation> = {
  enterGroup: { name, wait: natural, setting: text(MAX_SETTING_BYTES) },
  leaveGroup: { name },
  expelFromGroup: { name, wait: natural, session: natural, sessionWait: natural },
  say: { name, wait: natural, number: natural, to: nullable(natural), text: value },
};

const operationShapes = {
  ...stepShapes,
  transaction: { compare: comparisons, success: steps, failure: steps },
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

export const operationShape: Shape<Operation> = variants<Operation>(operationShapes);

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

export const queryShape: Shape<Query> = variants<Query>({
  get: { map: name, key },
  range: { map: name, from: key, to: nullable(key), limit: natural },
  changes: { map: name, after: natural },
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
const refused = { code: oneOf(...refusalCodes), reason: text(1_000) };
export const refusalShape: Shape<Refusal> = variants<Refusal>({ refused });

export const resultShape: Shape<Result> = variants<Result>({
  done: {},
  stored: { previous: stored },
  transaction: {
    succeeded: boolean,
    results: list(variants<StepResult>({ stored: { previous: stored }, found: { entry: stored } }), MAX_STEPS),
  },
  counted: { value: real },
  granted: { token: natural },
  waiting: { ahead: natural },
  passed: { generation: natural },
  enqueued: { item: natural },
  item: { token: natural, value },
  executed: { result: text(MAX_ANSWER_BYTES) },
  unknown: {},
  refused,
});

export const answerShape: Shape<Answer> = variants<Answer>({
  found: { entry: stored },
  entries: { entries: list(struct<KeyEntry>({ key, ...storedFields }), MAX_RANGE), isMore: boolean },
  changes: {
    changes: list(struct<Change>({ revision: natural, map: name, key, value: nullable(value) }), MAX_KEPT),
  },
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
  refused,
});

/** @returns the range of all keys with a prefix. */
export function prefixRange(prefix: string): { from: string; to: string | null } {
  for (let at = prefix.length - 1; at >= 0; at--) {
    const unit = prefix.charCodeAt(at);
    if (unit < 0xff_ff) return { from: prefix, to: prefix.slice(0, at) + String.fromCharCode(unit + 1) };
  }
  return { from: prefix, to: null };
}
