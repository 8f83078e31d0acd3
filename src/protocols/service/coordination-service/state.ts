/** A replica's state, as plain data. Replicas that have applied the log up to the same index have the same state. */
import type { NodeId } from "../../../core/protocol.ts";
import { type ValuesOf, whole } from "../../options.ts";
import type { MemberList } from "./member-words.ts";
import type {
  Change,
  GroupMember,
  Refusal,
  Result,
  Revision,
  ServiceEvent,
  SessionId,
  Stored,
  WaitId,
} from "./operations.ts";
import { emptyTable, type Table } from "./table.ts";

/** All shared state. */
export interface Data {
  /**
   * The highest `STATE_MACHINE_VERSION` of any member that has opened a session. Later entries are applied according to
   * this version's rules.
   */
  version: number;
  /** The revision of the last change. */
  revision: Revision;
  /** The sessions, in ascending order of id. */
  sessions: Session[];
  /** The latest life of each member that has ever opened a session. */
  lives: Record<NodeId, number>;
  /** The highest id of any client whose life has been deleted. */
  forgottenClients: number;
  /** The member list. Null if the members are still the cluster's founders. */
  members: MemberList | null;
  maps: Table<Table<Stored>>;
  /** The total size of all keys, values and items, in bytes. */
  bytes: number;
  kept: Kept;
  counters: Table<number>;
  locks: Table<Lock>;
  barriers: Table<Barrier>;
  queues: Table<Queue>;
  machines: Table<MachineState>;
  groups: Table<Group>;
}

/** A session. */
export interface Session {
  id: SessionId;
  member: NodeId;
  life: number;
  ttlMs: number;
  /** The log index of the session's latest sign of life. */
  seen: number;
  /** The number of the last applied operation. */
  applied: number;
  /** The results of the latest operations, up to `applied`, that the member has not acknowledged yet. */
  replies: Reply[];
  /** The parts of a split operation that have been received so far. */
  staged: Staged | null;
}

/** A split operation whose parts have not all arrived yet. */
export interface Staged {
  /** The number of parts received. */
  parts: number;
  text: string;
  /** The size of the text, which counts toward the size of the state. */
  bytes: number;
  /** The reason why the operation will not be executed, if so. Its text has then been dropped. */
  refusal: Refusal | null;
}

/** The outcome of an operation, retained in case the operation is repeated. */
export interface Reply {
  revision: Revision;
  result: Result;
}

/** The latest changes to all maps, so that a watch can resume. */
export interface Kept {
  changes: Change[];
  bytes: number;
  /** Changes up to this revision may be missing, for any map. */
  forgotten: Revision;
  /** For maps that lack changes after `forgotten`, the last missing revision. */
  forgottenOf: Table<Revision>;
}

/** A lock with its holders and waiters. */
export interface Lock {
  capacity: number;
  holders: Held[];
  /** The waiters, in FIFO order. */
  waiters: Waiter[];
}

interface Waiter {
  session: SessionId;
  wait: WaitId;
  mode: "exclusive" | "shared";
  permits: number;
  note: string;
}

/** A grant. */
export interface Held extends Waiter {
  token: Revision;
}

/** A barrier with the arrivals in the current round. */
export interface Barrier {
  parties: number;
  arrivals: { session: SessionId; wait: WaitId }[];
}

/** A group of sessions. */
export interface Group {
  /** The setting that the first member passed. */
  setting: string;
  members: GroupMember[];
}

/** A queue with its items and takers. */
export interface Queue {
  items: Item[];
  taken: Taken[];
  takers: { session: SessionId; wait: WaitId }[];
}

/** An item in a queue. */
export interface Item {
  /** The revision at which the item was enqueued. */
  id: Revision;
  value: string;
}

/** An item that a session has taken. */
export interface Taken extends Item {
  session: SessionId;
  wait: WaitId;
  token: Revision;
}

/** A machine's state, or its pending commands. */
export interface MachineState {
  state: unknown;
  isDefined: boolean;
  /** Commands that were decided before this member defined the machine. */
  pending: string[];
  /** The size of the pending commands, and the last measured size of the state. */
  pendingBytes: number;
  bytes: number;
  /** The number of commands applied since the state was last measured. */
  unmeasured: number;
}

/** Returns a new cluster's state. */
export const emptyData = (): Data => ({
  version: 0,
  revision: 0,
  sessions: [],
  lives: {},
  forgottenClients: 0,
  members: null,
  maps: emptyTable(),
  bytes: 0,
  kept: { changes: [], bytes: 0, forgotten: 0, forgottenOf: emptyTable() },
  counters: emptyTable(),
  locks: emptyTable(),
  barriers: emptyTable(),
  queues: emptyTable(),
  machines: emptyTable(),
  groups: emptyTable(),
});

/** Options that limit the size of the state, so that a snapshot always fits in the log. */
export const limitOptions = {
  maxBytes: whole(8_388_608, "the maximum size of all keys, values and items together, in bytes of JSON"),
  maxNames: whole(10_000, "the maximum number of maps, counters, locks, barriers, queues and machines together"),
  maxWaiting: whole(1_000, "the maximum number of waiters, holders and arrivals per name"),
  maxItems: whole(10_000, "the maximum number of items in one queue"),
  maxChanges: whole(
    10_000,
    "how many of the latest changes are kept for watches; at times, up to an eighth more are kept",
  ),
  maxChangeBytes: whole(1_048_576, "how many bytes of changes are kept for watches"),
  maxPendingBytes: whole(
    33_554_432,
    "the maximum size, in bytes, of commands that wait for machines not defined at this member; the replica stops at this limit, because it must not drop commands",
  ),
  maxMachines: whole(8, "the maximum number of state machines"),
  maxMachineBytes: whole(
    524_288,
    "the maximum size of each machine's state as JSON, in bytes; the total must be less than half the snapshot size limit",
  ),
};

/** Limits on the shared state. */
export type Limits = ValuesOf<typeof limitOptions>;

/** The context of an operation that is being applied. */
export interface Applying {
  data: Data;
  limits: Limits;
  tell(event: ServiceEvent): void;
}

/** Allocates the revision for the next change. */
export function nextRevision(data: Data): Revision {
  data.revision += 1;
  return data.revision;
}

/** Returns the session with the given id. Null if it has ended. */
export const sessionNamed = ({ sessions }: Data, id: SessionId): Session | null =>
  sessions.find((session) => session.id === id) ?? null;

/**
 * Patterns for strings of single-byte characters. In JSON, the only printable ones that take a second byte are quotes
 * and backslashes. Matching is much faster than counting.
 */
const PRINTABLE = /^[ -~]*$/;
const ASCII = /^[\0-\x7f]*$/;

/** Returns the size of a string in a snapshot, in bytes. Snapshots are JSON in UTF-8. */
export function bytesOf(text: string): number {
  if (PRINTABLE.test(text)) return text.length + 2 + countOf(text, '"') + countOf(text, "\\");
  let bytes = 2;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || isHalf(unit)) bytes += 6;
    else if (unit === 0x22 || unit === 0x5c) bytes += 2;
    else bytes += widthOf(unit);
  }
  return bytes;
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}

/** Returns the size of a string in UTF-8, in bytes. */
export function utf8BytesOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length; at++) bytes += widthOf(text.charCodeAt(at));
  return bytes;
}

/**
 * Returns whether a string fits in the given number of UTF-8 bytes. Most strings are so short that their bytes do not
 * have to be counted, because a UTF-16 unit takes at most three bytes.
 */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8BytesOf(text) <= most;

/**
 * Returns the number of bytes that a UTF-16 unit takes. Each half of a surrogate pair counts as three, which is an
 * upper bound.
 */
const widthOf = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;
