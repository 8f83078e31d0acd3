/** A replica's state, as plain data. Replicas that have applied the log up to the same index have the same state. */
import type { NodeId } from "../../../core/protocol.ts";
import { type ValuesOf, whole } from "../../options.ts";
import { emptyKeyspace, type Keyspace } from "../keyspace/store.ts";
import { emptyTable, type Table } from "../keyspace/table.ts";
import type { MemberList } from "./member-words.ts";
import {
  type GroupMember,
  type Refusal,
  type Result,
  type Revision,
  refuse,
  type ServiceEvent,
  type SessionId,
  type WaitId,
} from "./operations.ts";

/** All shared state. */
export interface Data {
  /**
   * The highest `STATE_MACHINE_VERSION` of any member that has opened a session. Later entries are applied according to
   * this version's rules.
   */
  version: number;
  /** All keys, which include maps and counters, and all leases. Its revision is the service's revision. */
  keyspace: Keyspace;
  /** The number of sessions that have been opened, which is the id of the last one. */
  begun: SessionId;
  /** The sessions, in ascending order of id. */
  sessions: Session[];
  /** The latest life of each member that has ever opened a session. */
  lives: Record<NodeId, number>;
  /** The highest id of any client whose life has been deleted. */
  forgottenClients: number;
  /** The member list. Null if the members are still the cluster's founders. */
  members: MemberList | null;
  /** The total size of all items in queues and of the parts of split operations, in bytes. */
  bytes: number;
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
  keyspace: emptyKeyspace(),
  begun: 0,
  sessions: [],
  lives: {},
  forgottenClients: 0,
  members: null,
  bytes: 0,
  locks: emptyTable(),
  barriers: emptyTable(),
  queues: emptyTable(),
  machines: emptyTable(),
  groups: emptyTable(),
});

/** Options that limit the size of the state, and so the size of a snapshot. */
export const limitOptions = {
  maxBytes: whole(8_388_608, "the maximum size of all keys, values, items and sessions together, in bytes"),
  maxNames: whole(10_000, "the maximum number of names of each kind: locks, barriers, queues and groups"),
  maxWaiting: whole(1_000, "the maximum number of waiters, holders and arrivals per name"),
  maxItems: whole(10_000, "the maximum number of items in one queue"),
  maxHistoryBytes: whole(
    67_108_864,
    "how many bytes of the latest changes are kept for watches and for reads at past revisions",
  ),
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
export function nextRevision({ keyspace }: Data): Revision {
  keyspace.revision += 1;
  return keyspace.revision;
}

/** Returns the total size of the shared state, in bytes. */
export const sizeOf = ({ keyspace, bytes }: Data): number => keyspace.bytes + bytes;

/** Returns the refusal of an operation that does not fit into the shared state. */
export const refuseFull = ({ data, limits }: Pick<Applying, "data" | "limits">): Refusal =>
  refuse("full", `the service holds ${sizeOf(data)} bytes; the maximum is ${limits.maxBytes}`);

/** Returns the session with the given id. Null if it has ended. */
export const sessionNamed = ({ sessions }: Data, id: SessionId): Session | null =>
  sessions.find((session) => session.id === id) ?? null;
