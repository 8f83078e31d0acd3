/** The words of the service: what may be asked of it, what it answers, and what it tells while it works. */
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

/** Clients that are no members have numbers of their own, given by the log and never twice: from here on. */
export const FIRST_CLIENT: NodeId = 2 ** 40;
export const isClient = (member: NodeId): boolean => member >= FIRST_CLIENT;

/** The map in which members say where they serve clients. Names that begin as it does are kept for members themselves. */
export const OWN_NAMES = "coterie/";
export const isOwn = (name: string): boolean => name.startsWith(OWN_NAMES);
export const ENDPOINTS = `${OWN_NAMES}endpoints`;
/** The same of where they serve etcd's API. */
export const ETCD_ENDPOINTS = `${OWN_NAMES}etcd-endpoints`;

/** Names one life of a member's session: the revision at which it was opened. */
export type SessionId = number;

/** Grows with every change, over all names and for ever: of a grant it is the fencing token. */
export type Revision = number;

/** Names what a session waits for, such as a grant: unique among those of its member. */
export type WaitId = number;

/** What changes something, and goes through the log. */
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
  /** `isLeased`: the key goes when the session ends. */
  | { type: "put"; map: string; key: string; value: string; isLeased: boolean }
  | { type: "delete"; map: string; key: string }
  /** All of `success` if all comparisons hold, otherwise all of `failure`: at one revision. */
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
   * Waits in one fair queue for each name. `exclusive` takes the whole capacity, `shared` so many permits of it. Asked again with the
   * same `wait` it is answered as before. `note`: what others are told of the holder, such as its address.
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
  /** Gives up waiting, or gives back what has been granted meanwhile. */
  | { type: "withdraw"; name: string; wait: WaitId };

export type BarrierOperation =
  /** Waits until so many have arrived. */
  { type: "arrive"; name: string; wait: WaitId; parties: number } | { type: "leave"; name: string; wait: WaitId };

export type QueueOperation =
  | { type: "enqueue"; name: string; value: string }
  /** Waits in a fair queue for an item, which nobody else gets unless it is given back. */
  | { type: "take"; name: string; wait: WaitId }
  /** Gives up waiting, or gives back the item that it was given meanwhile. */
  | { type: "stopTaking"; name: string; wait: WaitId }
  /** The item is done with. */
  | { type: "finish"; name: string; token: Revision }
  /** To the front of the queue. */
  | { type: "giveBack"; name: string; token: Revision };

export type GroupOperation =
  /**
   * From the next view on it is in the group, as another member than before. `wait` names this time of its being in. `setting`: how the
   * group is used, which all its members agree on.
   */
  | { type: "enterGroup"; name: string; wait: WaitId; setting: string }
  | { type: "leaveGroup"; name: string }
  /** Removes another member, as `session` and `sessionWait` name it; unless this session has left the group, or entered it again. */
  | { type: "expelFromGroup"; name: string; wait: WaitId; session: SessionId; sessionWait: WaitId }
  /**
   * To all members of the group, or to one; unless the session has left it since, or entered it anew. `number`: since it entered, from 1,
   * and done in that order only; 0: in any.
   */
  | { type: "say"; name: string; wait: WaitId; number: number; to: NodeId | null; text: string };

/** For a state machine that the application has defined. */
export type Command = { type: "execute"; machine: string; command: string };

/** What a member itself puts to the log, beside what it is asked for. */
export type SessionOperation =
  /** Always the first of a life. `version`: of the state machine, as the member that opens it runs it. */
  | { type: "begin"; ttlMs: number; version: number }
  /** Of an operation that is longer than a command of the log may be: its JSON in fragments, numbered 1, 2, 3 …; the last has it done. */
  | { type: "part"; number: number; isLast: boolean; text: string }
  /** `ifIdle`: unless it holds or waits for something. */
  | { type: "close"; ifIdle: boolean };

/** What a command of the log says, as JSON. */
export type Proposal =
  /**
   * Operations of a session, numbered from `first` on. Applied in their order, each once: what comes after a gap is proposed again.
   * Replies up to `acknowledged` have come. `round`: of the lease, begun before this was proposed for the first time.
   */
  | {
      type: "operations";
      life: number;
      round: number;
      acknowledged: number;
      first: number;
      operations: (Operation | SessionOperation)[];
    }
  /** Of a leader: takes effect unless the session has been heard of after the place `seen` of the log. */
  | { type: "expire"; session: SessionId; seen: number };

/** What is read at a replica that is up to date. */
export type Query =
  | { type: "get"; map: string; key: string }
  /** Keys from `from` on and before `to`, in order; null: to the end. */
  | { type: "range"; map: string; from: string; to: string | null; limit: number }
  /** All changes of a map after a revision, and none twice if one goes on with the events after the answer's revision. */
  | { type: "changes"; map: string; after: Revision }
  | { type: "count"; name: string }
  | { type: "holders"; name: string }
  | { type: "backlog"; name: string }
  /** What became of an arrival at a barrier that has been applied. */
  | { type: "arrival"; name: string; session: SessionId; wait: WaitId }
  | { type: "sessions" }
  | { type: "members" }
  /** All that there is. */
  | { type: "ask"; machine: string; question: string };

/** What stands under a key. */
export interface Stored {
  value: string;
  /** Of its last change. */
  revision: Revision;
  /** It goes with this session. */
  session: SessionId | null;
}

export interface KeyEntry extends Stored {
  key: string;
}

export interface Change {
  revision: Revision;
  map: string;
  key: string;
  /** Null: it was deleted. */
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

/** What came of an operation. */
export type Result =
  | { type: "done" }
  /** By `put` and `delete`. */
  | { type: "stored"; previous: Stored | null }
  | { type: "transaction"; succeeded: boolean; results: StepResult[] }
  /** The value after it. */
  | { type: "counted"; value: number }
  | { type: "granted"; token: Revision }
  /** Behind so many; an event tells when its turn has come. */
  | { type: "waiting"; ahead: number }
  | { type: "passed"; generation: Revision }
  | { type: "enqueued"; item: Revision }
  | { type: "item"; token: Revision; value: string }
  /** By a state machine. */
  | { type: "executed"; result: string }
  /** Applied, and no replica that could say what came of it has told this one: its machine is not defined where it was needed. */
  | { type: "unknown" }
  | Refusal;

export type Refusal = { type: "refused"; code: RefusalCode; reason: string };

export const refusalCodes = [
  /** One operation, a key or a name. */
  "too-large",
  /** All that the service holds. */
  "full",
  /** More waiters, items or names than are allowed. */
  "too-many",
  /** Too many operations of this member are under way. */
  "overloaded",
  "bad-operation",
  /** A counter would leave the safe integers. */
  "overflow",
  /** Others use the name with another capacity, or another number of parties. */
  "in-use",
  /** Nothing is held with this token. */
  "not-held",
  /** The session ended before the operation was applied: it has not been and will not be. */
  "session-expired",
  /** The session ended, and this member has not seen whether the operation was applied before. */
  "outcome-unknown",
  /** Changes after that revision are not kept any more. */
  "compacted",
  /** This member has not defined the state machine. */
  "unknown-machine",
  "machine-failed",
  /** Of the list of members. */
  "unknown-member",
  "member-exists",
  "last-voter",
  /** Who votes changes one step at a time. */
  "change-under-way",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

export const refuse = (code: RefusalCode, reason: string): Refusal => ({ type: "refused", code, reason });

/** What came of a query. */
export type Answer =
  | { type: "found"; entry: Stored | null }
  /** `isMore`: the limit cut it short. */
  | { type: "entries"; entries: KeyEntry[]; isMore: boolean }
  | { type: "changes"; changes: Change[] }
  | { type: "counted"; value: number }
  | { type: "holders"; holders: Holder[]; waiting: number }
  | { type: "backlog"; items: number; taken: number; waiting: number }
  /** `passed`: or it has been taken back. `unknown`: its session has ended, before that or after. */
  | { type: "arrival"; state: "waiting" | "passed" | "unknown" }
  | { type: "sessions"; sessions: { session: SessionId; member: NodeId }[] }
  /** Null: it is as it was when the cluster was founded. */
  | { type: "members"; list: MemberList | null }
  /** The replica's data, as JSON. */
  | { type: "answered"; answer: string }
  | Refusal;

export interface GroupMember {
  session: SessionId;
  member: NodeId;
  wait: WaitId;
  /** How many numbered words it has said since it entered. */
  spoken: number;
}

export type EndReason = "closed" | "expired" | "replaced";

/**
 * What every replica tells as it applies the log, in its order. After a restart it is told anew from the last snapshot on. A grant that
 * is asked for again is told again.
 */
export type ServiceEvent =
  | ({ type: "changed" } & Change)
  /** In the entry that opens a session what it asks for may be granted already: `opened` comes first. */
  | { type: "granted"; name: string; session: SessionId; wait: WaitId; token: Revision; note: string }
  /** Also by the end of the session. */
  | { type: "released"; name: string; session: SessionId; token: Revision }
  | { type: "passed"; name: string; generation: Revision; arrivals: { session: SessionId; wait: WaitId }[] }
  | { type: "item"; name: string; session: SessionId; wait: WaitId; token: Revision; value: string }
  /** Who is in a group from here on, in the order in which they entered it. Views grow. */
  | { type: "grouped"; name: string; view: Revision; members: GroupMember[] }
  | { type: "said"; name: string; from: NodeId; to: NodeId | null; text: string; revision: Revision }
  | { type: "opened"; session: SessionId; member: NodeId; life: number }
  | { type: "ended"; session: SessionId; member: NodeId; life: number; reason: EndReason }
  /** By a machine of Coterie's own, of what it has done: plain data, in its own words. */
  | { type: "machineChanged"; machine: string; change: unknown }
  /** Told by a replica that has not defined the machine, at each eighth of the bytes of commands that may wait there. */
  | { type: "commandsWait"; machine: string; bytes: number; maxBytes: number }
  /** The members are these from here on. */
  | { type: "members"; list: MemberList };

/** What a command of the log holds at most, in bytes. */
export const MAX_PROPOSAL_BYTES = 65_536;
/** One operation as JSON; the rest of a proposal needs some room. What is longer comes in parts. */
export const MAX_OPERATION_BYTES = 65_000;
/** As UTF-8, such as JSON. */
export const MAX_VALUE_BYTES = 1_048_576;
/** One operation as JSON, in all its parts: room for a value in which each character has to be escaped. */
export const MAX_WHOLE_BYTES = 2 * MAX_VALUE_BYTES + 65_536;
/** Of a part, in UTF-16 units: each takes three bytes of JSON at most, or is one of few at a cut that take six. */
export const PART_CHARS = 21_000;
/**
 * Of what the commands of the log mean. Replicas that understand them differently would come to differ, so members of different
 * versions do not hear each other on the log: docs/operate/upgrade.md.
 */
export const STATE_MACHINE_VERSION = 1;
export const MAX_NAME_BYTES = 256;
export const MAX_KEY_BYTES = 1_024;
export const MAX_NOTE_BYTES = 4_096;
/** Of a group. */
export const MAX_SETTING_BYTES = 4_096;
export const MAX_STEPS = 128;
export const MAX_OPERATIONS = 1_024;
/** In one answer to a range. */
export const MAX_RANGE = 10_000;
export const MAX_PERMITS = 1_000_000;
export const MAX_PARTIES = 10_000;
/** Of what is kept in the state, and so of what one answer may hold. */
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

/** The range of all keys that begin with a prefix. */
export function prefixRange(prefix: string): { from: string; to: string | null } {
  for (let at = prefix.length - 1; at >= 0; at--) {
    const unit = prefix.charCodeAt(at);
    if (unit < 0xff_ff) return { from: prefix, to: prefix.slice(0, at) + String.fromCharCode(unit + 1) };
  }
  return { from: prefix, to: null };
}
