/** What a replica of the service holds: plain data, the same at every replica that has applied as much of the log. */
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
  /** The highest `STATE_MACHINE_VERSION` that a member has opened a session with. Entries after that are applied by its rules. */
  version: number;
  /** Of the last change. */
  revision: Revision;
  /** Ascending by their ids. */
  sessions: Session[];
  /** Of each member that has ever opened a session: its last life. */
  lives: Record<NodeId, number>;
  /** Of clients up to this number it is forgotten whether they had one. */
  forgottenClients: number;
  /** Null: the members are the founders of the cluster. */
  members: MemberList | null;
  maps: Table<Table<Stored>>;
  /** Of keys and values and items, in bytes. */
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
  /** The place in the log where it was last heard of. */
  seen: number;
  /** The number of its last operation. */
  applied: number;
  /** What came of its last operations, up to that one: those whose replies it has not acknowledged. */
  replies: Reply[];
  /** The parts received of an operation that comes in parts. */
  staged: Staged | null;
}

export interface Staged {
  /** How many have come. */
  parts: number;
  text: string;
  /** What the text takes, which counts among all that is held. */
  bytes: number;
  /** Why it will not be done; its text is not kept then. */
  refusal: Refusal | null;
}

export interface Reply {
  revision: Revision;
  result: Result;
}

/** The last changes of all maps, so that a watch can go on where it stopped. */
export interface Kept {
  changes: Change[];
  bytes: number;
  /** Changes up to this revision are not all here any more, whatever the map. */
  forgotten: Revision;
  /** Of maps that lack later ones: the last that is not here. */
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
  /** As its first member entered it. */
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
  /** Commands that came before this member had defined the machine. */
  pending: string[];
  /** What is pending takes, and what the state took as it was last measured. */
  pendingBytes: number;
  bytes: number;
  /** How many commands were applied since. */
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

/** Bounds of the state, so that a snapshot of it is never larger than the log takes. */
export const limitOptions = {
  maxBytes: whole(8_388_608, "how many bytes of JSON all keys, values and items take together"),
  maxNames: whole(10_000, "how many maps, counters, locks, barriers, queues and machines there are, together"),
  maxWaiting: whole(1_000, "how many waiters, holders and arrivals one name has"),
  maxItems: whole(10_000, "how many items one queue has"),
  maxChanges: whole(10_000, "how many of the last changes are kept for watches; at times an eighth more"),
  maxChangeBytes: whole(1_048_576, "how many bytes of changes are kept for watches"),
  maxPendingBytes: whole(
    33_554_432,
    "how many bytes commands take that wait for machines that are not defined here; above, the replica stops, as it may drop none",
  ),
  maxMachines: whole(8, "how many state machines there are"),
  maxMachineBytes: whole(
    524_288,
    "how many bytes of JSON the state of each machine takes; all together less than half of a snapshot",
  ),
};

export type Limits = ValuesOf<typeof limitOptions>;

/** One operation is being applied. */
export interface Applying {
  data: Data;
  limits: Limits;
  tell(event: ServiceEvent): void;
}

/** Of the next change. */
export function nextRevision(data: Data): Revision {
  data.revision += 1;
  return data.revision;
}

export const sessionNamed = ({ sessions }: Data, id: SessionId): Session | null =>
  sessions.find((session) => session.id === id) ?? null;

/** Text each of whose characters is a byte, in JSON as well but for those with a backslash before them. Looked for much faster than counted. */
const PRINTABLE = /^[ -~]*$/;
const ASCII = /^[\0-\x7f]*$/;

/** How much room a text takes in a snapshot: JSON in UTF-8. */
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

/** In UTF-8. */
export function utf8BytesOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length; at++) bytes += widthOf(text.charCodeAt(at));
  return bytes;
}

/** In UTF-8. Most texts are so short that they need not be counted: a unit of UTF-16 takes at most three bytes. */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8BytesOf(text) <= most;

/** Of a character of two halves each counts for three: at most that. */
const widthOf = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;
