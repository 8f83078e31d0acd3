/**
 * A keyspace with etcd's data model, as plain data: keys with their versions, the compacted revision, and leases. All
 * versions are retained until they are compacted, so that clients can read at past revisions and watch from them.
 * https://etcd.io/docs/v3.5/learning/data_model/
 */
import { bytesOf } from "../coordination-service/state.ts";
import {
  emptyTable,
  enter,
  entriesOf,
  lookUp,
  placeIn,
  strike,
  type Table,
  tableOf,
} from "../coordination-service/table.ts";
import type { ByteText, Interval, KeyEvent, KeyValue, LeaseId } from "./vocabulary.ts";

/** All versions of all keys, and the leases. */
export interface Keyspace {
  /** The revision of the last change. An empty keyspace starts at 1, as in etcd. */
  revision: number;
  /**
   * The revision of the last compaction by a client, or 0 if there was none. Reads at earlier revisions are refused.
   */
  compacted: number;
  /**
   * Changes before this revision have been dropped to bound the history. Absent if none have been dropped since the
   * last compaction.
   */
  trimmed?: number;
  /** The keys deleted by changes that have been dropped, in ascending order. Absent if there are none. */
  deletions?: Deletion[];
  /** Each key's versions, oldest first. */
  keys: Table<Version[]>;
  /** All changes that have been retained, in order. */
  history: Changed[];
  leases: Table<Lease>;
  /** The total number of lease grants and renewals. */
  renewals: number;
  /** An upper bound on the size of the keyspace as JSON. */
  bytes: number;
}

/** One version of a key. If `version` is 0, the key was deleted. */
export interface Version {
  mod: number;
  create: number;
  version: number;
  value: ByteText;
  lease: LeaseId;
}

/** A change to a key. */
export interface Changed {
  revision: number;
  key: ByteText;
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
   * from.
   */
  renewal: number;
  /** The keys attached to the lease, in ascending order. */
  keys: ByteText[];
}

/** The `end` of an interval without an upper bound. */
export const ALL_FROM: ByteText = "\0";
/** The lease id of a key without a lease. */
export const NO_LEASE: LeaseId = "0";

/** Returns an empty keyspace. */
export const emptyKeyspace = (): Keyspace => ({
  revision: 1,
  compacted: 0,
  keys: emptyTable(),
  history: [],
  leases: emptyTable(),
  renewals: 0,
  bytes: 0,
});

/**
 * Returns a copy that later commands do not change. Versions and changes are shared, because they are never modified in
 * place.
 */
export function copyOfKeyspace(space: Keyspace): Keyspace {
  const { keys, history, leases } = space;
  return {
    ...space,
    keys: tableOf([...entriesOf(keys)].map(([key, versions]) => [key, [...versions]])),
    history: [...history],
    leases: tableOf([...entriesOf(leases)].map(([id, lease]) => [id, { ...lease, keys: [...lease.keys] }])),
  };
}

/** The size of a version's field names and numbers, excluding its key and value. */
const VERSION_BYTES = 200;
const LEASE_BYTES = 100;

/** Returns a version's size. The key counts three times: in the table of keys, in the history and with its lease. */
export const versionBytes = (key: ByteText, value: ByteText): number =>
  VERSION_BYTES + 3 * bytesOf(key) + bytesOf(value);

/** Returns whether an interval contains the key. */
export const covers = ({ key: from, end }: Interval, key: ByteText): boolean =>
  end === "" ? key === from : key >= from && (end === ALL_FROM || key < end);

/** Yields the keys in an interval with their versions, in order. */
function* within(space: Keyspace, { key, end }: Interval): Iterable<[ByteText, Version[]]> {
  if (end !== "") return yield* entriesOf(space.keys, key, end === ALL_FROM ? null : end);
  const versions = lookUp(space.keys, key);
  if (versions !== null) yield [key, versions];
}

/** Returns the version at the given revision. Null if there was none. */
function versionAt(versions: readonly Version[], revision: number): Version | null {
  for (let at = versions.length - 1; at >= 0; at--) {
    const version = versions[at] as Version;
    if (version.mod <= revision) return version.version === 0 ? null : version;
  }
  return null;
}

const shown = (key: ByteText, { mod, create, version, value, lease }: Version): KeyValue => ({
  key,
  create,
  mod,
  version,
  value,
  lease,
});

/** Returns the entries at the given revision, in key order. */
export function entriesIn(space: Keyspace, interval: Interval, revision: number): KeyValue[] {
  const entries: KeyValue[] = [];
  for (const [key, versions] of within(space, interval)) {
    const version = versionAt(versions, revision);
    if (version !== null) entries.push(shown(key, version));
  }
  return entries;
}

/** Returns a key's current entry. Null if there is none. */
export const entryOf = (space: Keyspace, key: ByteText): KeyValue | null =>
  entriesIn(space, { key, end: "" }, space.revision + 1)[0] ?? null;

/** Puts a key. @param revision the change's revision; for a command's first change, one above the current revision */
export function putKey(space: Keyspace, revision: number, key: ByteText, value: ByteText, lease: LeaseId): KeyEvent {
  const prev = entryOf(space, key);
  const version = { mod: revision, create: prev?.create ?? revision, version: (prev?.version ?? 0) + 1, value, lease };
  append(space, key, version);
  attach(space, key, prev?.lease ?? NO_LEASE, lease);
  return { type: "put", kv: shown(key, version), prev };
}

/** Deletes a key. Returns null if the key does not exist. */
export function deleteKey(space: Keyspace, revision: number, key: ByteText): KeyEvent | null {
  const prev = entryOf(space, key);
  if (prev === null) return null;
  const version = { mod: revision, create: 0, version: 0, value: "", lease: NO_LEASE };
  append(space, key, version);
  attach(space, key, prev.lease, NO_LEASE);
  return { type: "delete", kv: shown(key, version), prev };
}

function append(space: Keyspace, key: ByteText, version: Version): void {
  const versions = lookUp(space.keys, key);
  if (versions === null) enter(space.keys, key, [version]);
  else versions.push(version);
  space.history.push({ revision: version.mod, key });
  space.bytes += versionBytes(key, version.value);
}

function attach(space: Keyspace, key: ByteText, before: LeaseId, after: LeaseId): void {
  if (before === after) return;
  const left = lookUp(space.leases, before);
  if (left !== null) left.keys.splice(placeIn(left.keys, key), 1);
  const joined = lookUp(space.leases, after);
  if (joined !== null) joined.keys.splice(placeIn(joined.keys, key), 0, key);
}

/** Grants a lease. */
export function enterLease(space: Keyspace, lease: LeaseId, ttl: number): void {
  space.renewals += 1;
  enter(space.leases, lease, { ttl, renewal: space.renewals, keys: [] });
  space.bytes += LEASE_BYTES;
}

/** Deletes a lease and all its keys at one revision. Returns the changes to the keys. */
export function endLease(space: Keyspace, lease: LeaseId): KeyEvent[] {
  const { keys } = lookUp(space.leases, lease) as Lease;
  const revision = space.revision + 1;
  const events = [...keys].map((key) => deleteKey(space, revision, key)).filter((event) => event !== null);
  if (events.length > 0) space.revision = revision;
  strike(space.leases, lease);
  space.bytes -= LEASE_BYTES;
  return events;
}

/**
 * Returns the changes from the given revision onward. Contains complete revisions, at least one, until `maxBytes` is
 * exceeded.
 */
export function eventsFrom(space: Keyspace, from: number, maxBytes: number): { events: KeyEvent[]; next: number } {
  const { history } = space;
  const events: KeyEvent[] = [];
  let bytes = 0;
  for (let at = firstOf(history, from); at < history.length; at++) {
    const { revision, key } = history[at] as Changed;
    if (bytes > maxBytes && revision !== events.at(-1)?.kv.mod) return { events, next: revision };
    const event = eventAt(key, lookUp(space.keys, key) ?? [], revision);
    bytes += versionBytes(key, event.kv.value) + (event.prev?.value.length ?? 0);
    events.push(event);
  }
  return { events, next: space.revision + 1 };
}

function eventAt(key: ByteText, versions: readonly Version[], revision: number): KeyEvent {
  const at = versions.findLastIndex(({ mod }) => mod === revision);
  const version = versions[at] as Version;
  const before = versions[at - 1];
  const prev = before === undefined || before.version === 0 ? null : shown(key, before);
  return { type: version.version === 0 ? "delete" : "put", kv: shown(key, version), prev };
}

/** Returns the index of the first change at or after the revision. */
function firstOf(history: readonly Changed[], revision: number): number {
  let low = 0;
  let high = history.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((history[middle] as Changed).revision < revision) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Drops everything that is not needed for reads at the given revision or later. Runs at a client's request. */
export function compact(space: Keyspace, revision: number): void {
  drop(space, revision);
  space.compacted = revision;
  replaceDeletions(
    space,
    (space.deletions ?? []).filter((deletion) => deletion.revision >= revision),
  );
  if (revision >= (space.trimmed ?? 0)) delete space.trimmed;
}

/**
 * Drops changes before the given revision to bound the history. A range that has not changed since an earlier revision
 * can still be read and watched from that revision, because the last change to each existing key and the revisions of
 * dropped deletions are retained.
 */
export function trim(space: Keyspace, revision: number): void {
  const dropped = drop(space, revision);
  space.trimmed = revision;
  replaceDeletions(space, coarsened([...(space.deletions ?? []), ...dropped]));
}

/** Drops the changes that are not needed for reads at the given revision or later. Returns the dropped deletions. */
function drop(space: Keyspace, revision: number): Deletion[] {
  const { history } = space;
  const end = firstOf(history, revision + 1);
  const forgotten = new Set(history.slice(0, end).map(({ key }) => key));
  const deletions = [...forgotten].flatMap((key) => forget(space, key, revision) ?? []);
  const isKept = ({ revision: of, key }: Changed): boolean =>
    of === revision && (lookUp(space.keys, key)?.some(({ mod }) => mod === revision) ?? false);
  space.history = [...history.slice(firstOf(history, revision), end).filter(isKept), ...history.slice(end)];
  return deletions;
}

/**
 * Drops the key's versions that are not needed for reads at the given revision or later. Returns the key's last
 * deletion if it was dropped.
 */
function forget(space: Keyspace, key: ByteText, revision: number): Deletion | null {
  const versions = lookUp(space.keys, key) as Version[];
  const newest = versions.findLastIndex(({ mod }) => mod <= revision);
  const last = versions[newest];
  // Watches that start at this revision must receive a deletion made at it, so only the next compaction drops that
  // deletion.
  const first = last?.version === 0 && last.mod < revision ? newest + 1 : newest;
  for (const { value } of versions.slice(0, first)) space.bytes -= versionBytes(key, value);
  if (first === versions.length) strike(space.keys, key);
  else versions.splice(0, first);
  return last !== undefined && first > newest ? { from: key, to: key, revision: last.mod } : null;
}

/**
 * The maximum number of deletion intervals. If there are more, the nearest ones (those with the longest common
 * prefixes) are merged until half this number remains.
 */
const MAX_DELETIONS = 1_000;
/**
 * The size of an interval as JSON, excluding its keys. An interval is smaller than the dropped deletions that it
 * covers.
 */
const DELETION_BYTES = 60;

const bytesOfDeletions = (deletions: readonly Deletion[]): number =>
  deletions.reduce((sum, { from, to }) => sum + DELETION_BYTES + bytesOf(from) + bytesOf(to), 0);

function replaceDeletions(space: Keyspace, deletions: Deletion[]): void {
  space.bytes += bytesOfDeletions(deletions) - bytesOfDeletions(space.deletions ?? []);
  if (deletions.length > 0) space.deletions = deletions;
  else delete space.deletions;
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

/** Returns whether the interval is known not to have changed from the given revision up to the trimmed one. */
export function isUnchanged(space: Keyspace, interval: Interval, revision: number): boolean {
  const { trimmed = 0, deletions = [] } = space;
  const wasDeleted = (deletion: Deletion): boolean => deletion.revision >= revision && overlaps(interval, deletion);
  if (deletions.some(wasDeleted)) return false;
  // Up to the trimmed revision, only a key's last change is retained, as its first version.
  for (const [, [first]] of within(space, interval))
    if (first !== undefined && first.mod >= revision && first.mod <= trimmed) return false;
  return true;
}

const overlaps = ({ key, end }: Interval, { from, to }: Deletion): boolean =>
  to >= key && (end === "" ? from <= key : end === ALL_FROM || from < end);
