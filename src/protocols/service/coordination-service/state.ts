/**
 * The state of a replica as plain data. Replicas that have applied the log up to the same index have the same state.
 */
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

export interface Data {
  /**
   * The highest `STATE_MACHINE_VERSION` of any member that has opened a session. Later entries are applied by its
   * rules.
   */
  version: number;
  /** The revision of the last change. */
  revision: Revision;
  /** Ascending by id. */
  sessions: Session[];
  /** The latest life of each member that has ever opened a session. */
  lives: Record<NodeId, number>;
  /** The lives of clients with ids up to this one may have been deleted. */
  forgottenClients: number;
  /** Null: the members are the founders of the cluster. */
  members: MemberList | null;
  maps: Table<Table<Stored>>;
  /** Bytes of all keys, values and items. */
  bytes: number;
  kept: Kept;
  counters: Table<number>;
  locks: Table<Lock>;
  barriers: Table<Barrier>;
  queues: Table<Queue>;
  machines: Table<MachineState>;
  groups: Table<Group>;
}

export interface Session {
  id: SessionId;
  member: NodeId;
  life: number;
  ttlMs: number;
  /** The log index of its latest sign of life. */
  seen: number;
  /** The number of its last operation. */
  applied: number;
  /** The results of its latest operations, up to `applied`: those that it has not acknowledged. */
  replies: Reply[];
  /** The parts received so far of an operation that is split into parts. */
  staged: Staged | null;
}

export interface Staged {
  /** The number of parts received. */
  parts: number;
  text: string;
  /** The size of the text, which counts toward the size of the state. */
  bytes: number;
  /** Why the operation will not be executed. Its text is dropped then. */
  refusal: Refusal | null;
}

export interface Reply {
  revision: Revision;
  result: Result;
}

/** The latest changes of all maps, so that a watch can resume where it stopped. */
export interface Kept {
  changes: Change[];
  bytes: number;
  /** Some changes up to this revision are missing, in any map. */
  forgotten: Revision;
  /** The last missing revision of maps that lack later changes. */
  forgottenOf: Table<Revision>;
}

export interface Lock {
  capacity: number;
  holders: Held[];
  /** First come, first served. */
  waiters: Waiter[];
}

interface Waiter {
  session: SessionId;
  wait: WaitId;
  mode: "exclusive" | "shared";
  permits: number;
  note: string;
}

export interface Held extends Waiter {
  token: Revision;
}

export interface Barrier {
  parties: number;
  arrivals: { session: SessionId; wait: WaitId }[];
}

export interface Group {
  /** The setting of its first member. */
  setting: string;
  members: GroupMember[];
}

export interface Queue {
  items: Item[];
  taken: Taken[];
  takers: { session: SessionId; wait: WaitId }[];
}

export interface Item {
  /** The revision at which it was enqueued. */
  id: Revision;
  value: string;
}

export interface Taken extends Item {
  session: SessionId;
  wait: WaitId;
  token: Revision;
}

export interface MachineState {
  state: unknown;
  isDefined: boolean;
  /** Commands that were decided before this member had defined the machine. */
  pending: string[];
  /** The size of the pending commands, and the size of the state when it was last measured. */
  pendingBytes: number;
  bytes: number;
  /** The number of commands applied since then. */
  unmeasured: number;
}

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

/** Limits of the state, so that a snapshot always fits in the log. */
export const limitOptions = {
  maxBytes: whole(8_388_608, "the maximum size of all keys, values and items together, in bytes of JSON"),
  maxNames: whole(10_000, "the maximum number of maps, counters, locks, barriers, queues and machines together"),
  maxWaiting: whole(1_000, "the maximum number of waiters, holders and arrivals per name"),
  maxItems: whole(10_000, "the maximum number of items in one queue"),
  maxChanges: whole(10_000, "how many of the last changes are kept for watches; at times up to an eighth more"),
  maxChangeBytes: whole(1_048_576, "how many bytes of changes are kept for watches"),
  maxPendingBytes: whole(
    33_554_432,
    "the maximum size, in bytes, of commands that wait for machines not defined at this member; the replica stops at this limit, because it must not drop commands",
  ),
  maxMachines: whole(8, "the maximum number of state machines"),
  maxMachineBytes: whole(
    524_288,
    "the maximum size of the state of each machine, in bytes of JSON; all together less than half of a snapshot",
  ),
};

export type Limits = ValuesOf<typeof limitOptions>;

/** The context of an operation that is being applied. */
export interface Applying {
  data: Data;
  limits: Limits;
  tell(event: ServiceEvent): void;
}

/** Allocates the revision of the next change. */
export function nextRevision(data: Data): Revision {
  data.revision += 1;
  return data.revision;
}

export const sessionNamed = ({ sessions }: Data, id: SessionId): Session | null =>
  sessions.find((session) => session.id === id) ?? null;

/**
 * Texts of single-byte characters. In JSON only quotes and backslashes take a second byte. Testing is much faster than
 * counting.
 */
const PRINTABLE = /^[ -~]*$/;
const ASCII = /^[\0-\x7f]*$/;

/** @returns the size of a text in a snapshot, which is JSON in UTF-8. */
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

/** @returns the size of a text in UTF-8. */
export function utf8BytesOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length; at++) bytes += widthOf(text.charCodeAt(at));
  return bytes;
}

/**
 * Whether a text fits in this many bytes of UTF-8. Most texts are too short to need counting, since a UTF-16 unit takes
 * at most three bytes.
 */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8BytesOf(text) <= most;

/** Each half of a surrogate pair counts as three bytes, which is an upper bound. */
const widthOf = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;
