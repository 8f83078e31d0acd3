/**
 * The keyspace: all keys with their values and revisions, leases, and the latest changes. It has etcd's data model, and
 * is plain data. https://etcd.io/docs/v3.5/learning/data_model/
 *
 * The table of keys contains only current values. Each change in the history contains the value before it, so a past
 * revision is read by undoing the changes since then. The oldest changes are dropped when a client compacts them, or when
 * the history takes too many bytes.
 */
import {
  ALL_FROM,
  changedKeysIn,
  changesFrom,
  countWithin,
  covers,
  dropFirst,
  firstChanges,
  within,
} from "./history-index.ts";
import { emptyTable, enter, entriesOf, lookUp, placeIn, strike, type Table } from "./table.ts";
import type { ByteText, Interval, KeyEvent, KeyValue, LeaseId } from "./vocabulary.ts";

export { ALL_FROM, covers } from "./history-index.ts";

/** All keys, the latest changes, and the leases. */
export interface Keyspace {
  /** The revision of the last change. An empty keyspace starts at 1, as in etcd. */
  revision: number;
  /**
   * The revision of the last compaction by a client, or 0 if there was none. Reads at earlier revisions are refused.
   */
  compacted: number;
  /** Changes before this revision have been dropped to bound the history. 0 if a later revision has been compacted. */
  trimmed: number;
  /** The keys deleted by changes that have been dropped to bound the history, in ascending order. */
  deletions: Deletion[];
  keys: Table<KeyValue>;
  /** The latest changes, in order. They are never modified. */
  history: KeyEvent[];
  historyBytes: number;
  leases: Table<Lease>;
  /** The total number of lease grants and renewals. */
  renewals: number;
  /** The size of all keys, values and leases. */
  bytes: number;
}

/**
 * An interval of keys with dropped deletions. No key from `from` to `to` has a dropped deletion after the given
 * revision.
 */
export interface Deletion {
  from: ByteText;
  to: ByteText;
  revision: number;
}

/** A lease with its keys. */
export interface Lease {
  /** The time to live, in seconds. */
  ttl: number;
  /**
   * The number of the last renewal, or of the grant if there was none. An expiry names the renewal that it counted
   * from. 0 for a session's lease, which the session renews.
   */
  renewal: number;
  /** The keys attached to the lease, in ascending order. */
  keys: ByteText[];
}

/** The lease id of a key without a lease. */
export const NO_LEASE: LeaseId = "0";

/**
 * A session is a lease, too: the keys that it leases are attached to this lease. Ids from here on are reserved for
 * sessions, so they cannot collide with ids chosen by etcd clients.
 */
const FIRST_SESSION_LEASE = 2n ** 62n;
const FIRST_SESSION_TEXT = String(FIRST_SESSION_LEASE);

/** Returns the id of a session's lease. */
export const leaseOf = (session: number): LeaseId => String(FIRST_SESSION_LEASE + BigInt(session));

/** Returns the session that a lease belongs to. Null if it is not the lease of a session. */
export const sessionOfLease = (lease: LeaseId): number | null =>
  lease.length === FIRST_SESSION_TEXT.length && lease >= FIRST_SESSION_TEXT
    ? Number(BigInt(lease) - FIRST_SESSION_LEASE)
    : null;

/** Returns an empty keyspace. */
export const emptyKeyspace = (): Keyspace => ({
  revision: 1,
  compacted: 0,
  trimmed: 0,
  deletions: [],
  keys: emptyTable(),
  history: [],
  historyBytes: 0,
  leases: emptyTable(),
  renewals: 0,
  bytes: 0,
});

/** The sizes of an entry, a change and a lease, excluding their keys and values. */
const ENTRY_BYTES = 64;
const CHANGE_BYTES = 128;
export const LEASE_BYTES = 64;

/** Returns the size of a key with its value. */
export const entryBytes = ({ key, value }: Pick<KeyValue, "key" | "value">): number =>
  ENTRY_BYTES + key.length + value.length;

/** Returns the size of a change. */
export const changeBytes = ({ kv, prev }: KeyEvent): number =>
  CHANGE_BYTES + kv.key.length + kv.value.length + (prev === null ? 0 : prev.value.length);

/** Returns the entries at the given revision, in order of their keys. */
export function entriesIn(space: Keyspace, interval: Interval, revision: number): KeyValue[] {
  const current = [...within(space.keys, interval)];
  const later = firstOf(space.history, revision + 1);
  if (later === space.history.length) return current;
  const past = new Map(firstChanges(space.history, interval, later).map(({ kv, prev }) => [kv.key, prev]));
  if (past.size === 0) return current;
  const others = current.filter(({ key }) => !past.has(key));
  const changed = [...past.values()].filter((entry) => entry !== null);
  return [...others, ...changed].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Returns about how many entries and changed keys a read of an interval visits. */
export function visitsOf(space: Keyspace, interval: Interval, revision: number): number {
  const isPast = firstOf(space.history, revision + 1) < space.history.length;
  return countWithin(space.keys, interval) + (isPast ? changedKeysIn(space.history, interval) : 0);
}

/** Returns the size of all current entries that at least one of the intervals contains. */
export function bytesWithin(space: Keyspace, intervals: readonly Interval[]): number {
  let [bytes, reached] = [0, ""];
  for (const { key, end } of [...intervals].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))) {
    const to = end === "" ? `${key}\0` : end;
    if (key > reached) reached = key;
    // Entries before that have been counted.
    for (const [of, entry] of entriesOf(space.keys, reached, end === ALL_FROM ? null : to))
      if (covers({ key, end }, of)) bytes += entryBytes(entry);
    if (end === ALL_FROM) break;
    if (to > reached) reached = to;
  }
  return bytes;
}

/** Returns at most `limit` current entries in an interval for which `select` returns a value, as those values. */
export function firstIn<T>(
  space: Keyspace,
  interval: Interval,
  limit: number,
  select: (kv: KeyValue) => T | null,
): T[] {
  const found: T[] = [];
  for (const entry of within(space.keys, interval)) {
    if (found.length === limit) break;
    const selected = select(entry);
    if (selected !== null) found.push(selected);
  }
  return found;
}

/** Returns a key's current entry. Null if there is none. */
export const entryOf = (space: Keyspace, key: ByteText): KeyValue | null => lookUp(space.keys, key);

/** Puts a key. @param revision the change's revision; for a command's first change, one above the current revision */
export function putKey(space: Keyspace, revision: number, key: ByteText, value: ByteText, lease: LeaseId): KeyEvent {
  const kv = { key, create: revision, mod: revision, version: 1, value, lease };
  const prev = enter(space.keys, key, kv);
  if (prev !== null) {
    kv.create = prev.create;
    kv.version += prev.version;
  }
  space.bytes += entryBytes(kv);
  return noted(space, { type: "put", kv, prev });
}

/** Deletes a key. Returns null if the key does not exist. */
export function deleteKey(space: Keyspace, revision: number, key: ByteText): KeyEvent | null {
  const prev = strike(space.keys, key);
  if (prev === null) return null;
  const kv = { key, create: 0, mod: revision, version: 0, value: "", lease: NO_LEASE };
  return noted(space, { type: "delete", kv, prev });
}

function noted(space: Keyspace, event: KeyEvent): KeyEvent {
  const { kv, prev } = event;
  if (prev !== null) space.bytes -= entryBytes(prev);
  attach(space, kv.key, prev?.lease ?? NO_LEASE, kv.lease);
  space.history.push(event);
  space.historyBytes += changeBytes(event);
  return event;
}

function attach(space: Keyspace, key: ByteText, before: LeaseId, after: LeaseId): void {
  if (before === after) return;
  const left = lookUp(space.leases, before);
  if (left !== null) left.keys.splice(placeIn(left.keys, key), 1);
  const joined = lookUp(space.leases, after);
  if (joined !== null) joined.keys.splice(placeIn(joined.keys, key), 0, key);
}

/** Begins a lease. */
export function enterLease(space: Keyspace, lease: LeaseId, ttl: number, renewal: number): Lease {
  const entered = { ttl, renewal, keys: [] };
  enter(space.leases, lease, entered);
  space.bytes += LEASE_BYTES;
  return entered;
}

/** Deletes a lease and all its keys at one revision. Returns the changes to the keys. */
export function endLease(space: Keyspace, lease: LeaseId): KeyEvent[] {
  const { keys } = lookUp(space.leases, lease) as Lease;
  const revision = space.revision + 1;
  strike(space.leases, lease); // Before its keys, so that each need not be detached.
  space.bytes -= LEASE_BYTES;
  const events = keys.map((key) => deleteKey(space, revision, key)).filter((event) => event !== null);
  if (events.length > 0) space.revision = revision;
  return events;
}

/**
 * Returns the changes to an interval's keys from the given revision onward. Contains complete revisions, at least one,
 * until `maxBytes` is exceeded. `next` is the revision to continue from.
 */
export function eventsFrom(
  space: Keyspace,
  interval: Interval,
  from: number,
  maxBytes: number,
): { events: KeyEvent[]; next: number } {
  const { history } = space;
  const events: KeyEvent[] = [];
  let bytes = 0;
  for (const event of changesFrom(history, interval, firstOf(history, from))) {
    if (bytes > maxBytes && event.kv.mod !== events.at(-1)?.kv.mod) return { events, next: event.kv.mod };
    bytes += changeBytes(event);
    events.push(event);
  }
  return { events, next: space.revision + 1 };
}

/** Returns the index of the first change at or after the revision. */
function firstOf(history: readonly KeyEvent[], revision: number): number {
  let low = 0;
  let high = history.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((history[middle] as KeyEvent).kv.mod < revision) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns whether all changes in the interval since the given revision are still available. */
export const hasEvents = (space: Keyspace, interval: Interval, from: number): boolean =>
  from >= space.compacted && (from >= space.trimmed || isUnchanged(space, interval, from));

/** Returns whether the interval is known not to have changed from the given revision up to the trimmed one. */
export function isUnchanged(space: Keyspace, interval: Interval, from: number): boolean {
  const { trimmed, deletions } = space;
  const wasDeleted = (deletion: Deletion): boolean => deletion.revision >= from && overlaps(interval, deletion);
  return !deletions.some(wasDeleted) && entriesIn(space, interval, trimmed - 1).every(({ mod }) => mod < from);
}

const overlaps = ({ key, end }: Interval, { from, to }: Deletion): boolean =>
  to >= key && (end === "" ? from <= key : end === ALL_FROM || from < end);

/** Drops everything that is not needed for reads at the given revision or later. Runs at a client's request. */
export function compact(space: Keyspace, revision: number): void {
  drop(space, revision);
  const { history } = space;
  // Watches from this revision still receive its changes, but, as in etcd, without the values before them.
  for (let at = 0; history[at]?.kv.mod === revision; at++) {
    const event = history[at] as KeyEvent;
    history[at] = { ...event, prev: null };
    space.historyBytes += changeBytes(history[at] as KeyEvent) - changeBytes(event);
  }
  space.compacted = revision;
  space.deletions = space.deletions.filter((deletion) => deletion.revision >= revision);
  if (revision >= space.trimmed) space.trimmed = 0;
}

/** The share of the history by which it becomes smaller than its limit when it is trimmed. */
const TRIMMED_SHARE = 1 / 32;

/**
 * Drops the oldest changes if the history takes more than `maxBytes`. The last revision's changes are always kept. A
 * range that has not changed since an earlier revision can still be read and watched from that revision, because the
 * history's first values and the revisions of dropped deletions are retained.
 */
export function bound(space: Keyspace, maxBytes: number): void {
  const { history } = space;
  if (space.historyBytes <= maxBytes) return;
  let [excess, at] = [space.historyBytes - maxBytes * (1 - TRIMMED_SHARE), 0];
  for (; excess > 0 && at < history.length - 1; at++) excess -= changeBytes(history[at] as KeyEvent);
  trim(space, (history[at] as KeyEvent).kv.mod);
}

/** Drops the changes before the given revision. */
export function trim(space: Keyspace, revision: number): void {
  const last = new Map(drop(space, revision).map((event) => [event.kv.key, event]));
  if (last.size === 0) return;
  const deleted = [...last.values()].filter(({ type }) => type === "delete").map(deletionOf);
  space.deletions = coarsened([...space.deletions, ...deleted]);
  space.trimmed = revision;
}

/** Drops the changes before the given revision, and returns them. */
function drop(space: Keyspace, revision: number): KeyEvent[] {
  const dropped = dropFirst(space.history, firstOf(space.history, revision));
  for (const event of dropped) space.historyBytes -= changeBytes(event);
  return dropped;
}

/**
 * The maximum number of deletion intervals. If there are more, the nearest ones (those with the longest common
 * prefixes) are merged until half this number remains.
 */
const MAX_DELETIONS = 1_000;
/** The maximum length of the bounds of an interval. Those of longer keys are cut off. */
const MAX_BOUND = 256;
/** A character that comes after all bytes. */
const LAST = "\u0100";

function deletionOf({ kv: { key, mod } }: KeyEvent): Deletion {
  if (key.length <= MAX_BOUND) return { from: key, to: key, revision: mod };
  const from = key.slice(0, MAX_BOUND);
  return { from, to: from + LAST, revision: mod };
}

/**
 * Returns ascending, disjoint intervals that are limited in number. They cover all deleted keys, and may also cover
 * keys that were never deleted.
 */
function coarsened(deletions: Deletion[]): Deletion[] {
  const ascending = deletions.sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0));
  const apart = joined(ascending, (before, next) => next.from <= before.to);
  if (apart.length <= MAX_DELETIONS) return apart;
  const common = apart.map(({ from }, at) => commonLength(apart[at - 1]?.to ?? "", from));
  const nearest = apart.map((_deletion, at) => at).slice(1);
  nearest.sort((a, b) => (common[b] as number) - (common[a] as number) || a - b);
  const isJoined = new Set(nearest.slice(0, apart.length - MAX_DELETIONS / 2));
  return joined(apart, (_before, _next, at) => isJoined.has(at));
}

function joined(
  deletions: readonly Deletion[],
  areOne: (before: Deletion, next: Deletion, at: number) => boolean,
): Deletion[] {
  const result: Deletion[] = [];
  for (const [at, next] of deletions.entries()) {
    const before = result.at(-1);
    if (before === undefined || !areOne(before, next, at)) result.push({ ...next });
    else {
      if (next.to > before.to) before.to = next.to;
      before.revision = Math.max(before.revision, next.revision);
    }
  }
  return result;
}

function commonLength(a: ByteText, b: ByteText): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}
