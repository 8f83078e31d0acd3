/**
 * A keyspace as etcd has it, as plain data: each key with its versions, up to which revision they are compacted, and leases. All
 * versions are kept until they are compacted, so reads of the past and watches from there are answered.
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

export interface Keyspace {
  /** Of the last change. An empty keyspace begins at 1, as etcd's does. */
  revision: number;
  /** A client has compacted it: reads of revisions before this one are refused; 0: of none. */
  compacted: number;
  /** Changes before this revision have been dropped because the history is bounded; absent: none since it was compacted. */
  trimmed?: number;
  /** Which keys have been deleted by dropped changes, ascending; absent: none. */
  deletions?: Deletion[];
  /** Each key's versions, oldest first. */
  keys: Table<Version[]>;
  /** Every change that is kept, in order. */
  history: Changed[];
  leases: Table<Lease>;
  /** How many grants and renewals of leases there have been. */
  renewals: number;
  /** What all of it takes as JSON, at most. */
  bytes: number;
}

/** The key has been deleted where `version` is 0. */
export interface Version {
  mod: number;
  create: number;
  version: number;
  value: ByteText;
  lease: LeaseId;
}

export interface Changed {
  revision: number;
  key: ByteText;
}

/** No key from `from` to `to` has a dropped deletion after this revision. */
export interface Deletion {
  from: ByteText;
  to: ByteText;
  revision: number;
}

export interface Lease {
  /** Seconds. */
  ttl: number;
  /** The number of its last renewal, or of its grant: who has it expire says which one it has counted from. */
  renewal: number;
  /** Ascending. */
  keys: ByteText[];
}

/** As the end of an interval: there is none. */
export const ALL_FROM: ByteText = "\0";
export const NO_LEASE: LeaseId = "0";

export const emptyKeyspace = (): Keyspace => ({
  revision: 1,
  compacted: 0,
  keys: emptyTable(),
  history: [],
  leases: emptyTable(),
  renewals: 0,
  bytes: 0,
});

/** Versions and changes are never changed in place. */
export function copyOfKeyspace(space: Keyspace): Keyspace {
  const { keys, history, leases } = space;
  return {
    ...space,
    keys: tableOf([...entriesOf(keys)].map(([key, versions]) => [key, [...versions]])),
    history: [...history],
    leases: tableOf([...entriesOf(leases)].map(([id, lease]) => [id, { ...lease, keys: [...lease.keys] }])),
  };
}

/** What a version takes beside its value and three times its key: names of fields and numbers. */
const VERSION_BYTES = 200;
const LEASE_BYTES = 100;

/** The key stands in the table of keys, in the history and at its lease. */
export const versionBytes = (key: ByteText, value: ByteText): number =>
  VERSION_BYTES + 3 * bytesOf(key) + bytesOf(value);

export const covers = ({ key: from, end }: Interval, key: ByteText): boolean =>
  end === "" ? key === from : key >= from && (end === ALL_FROM || key < end);

/** The keys of an interval with their versions, in order. */
function* within(space: Keyspace, { key, end }: Interval): Iterable<[ByteText, Version[]]> {
  if (end !== "") return yield* entriesOf(space.keys, key, end === ALL_FROM ? null : end);
  const versions = lookUp(space.keys, key);
  if (versions !== null) yield [key, versions];
}

/** What stood there as of a revision. */
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

/** In the order of their keys. */
export function entriesIn(space: Keyspace, interval: Interval, revision: number): KeyValue[] {
  const entries: KeyValue[] = [];
  for (const [key, versions] of within(space, interval)) {
    const version = versionAt(versions, revision);
    if (version !== null) entries.push(shown(key, version));
  }
  return entries;
}

export const entryOf = (space: Keyspace, key: ByteText): KeyValue | null =>
  entriesIn(space, { key, end: "" }, space.revision + 1)[0] ?? null;

/** @param revision of the change: the next one, where it is the first of its command. */
export function putKey(space: Keyspace, revision: number, key: ByteText, value: ByteText, lease: LeaseId): KeyEvent {
  const prev = entryOf(space, key);
  const version = { mod: revision, create: prev?.create ?? revision, version: (prev?.version ?? 0) + 1, value, lease };
  append(space, key, version);
  attach(space, key, prev?.lease ?? NO_LEASE, lease);
  return { type: "put", kv: shown(key, version), prev };
}

/** @returns null where nothing stands there. */
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

export function enterLease(space: Keyspace, lease: LeaseId, ttl: number): void {
  space.renewals += 1;
  enter(space.leases, lease, { ttl, renewal: space.renewals, keys: [] });
  space.bytes += LEASE_BYTES;
}

/** Its keys go with it, all at one revision. */
export function endLease(space: Keyspace, lease: LeaseId): KeyEvent[] {
  const { keys } = lookUp(space.leases, lease) as Lease;
  const revision = space.revision + 1;
  const events = [...keys].map((key) => deleteKey(space, revision, key)).filter((event) => event !== null);
  if (events.length > 0) space.revision = revision;
  strike(space.leases, lease);
  space.bytes -= LEASE_BYTES;
  return events;
}

/** The changes at and behind that revision, whole revisions until they take so many bytes, and at least one. */
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

/** Where changes of that revision begin. */
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

/** Forgets what reads as of that revision and later ones do not need, at a client's request. */
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
 * Drops changes before that revision to bound the history. A range that has not changed since an earlier revision can still be read and
 * watched from there: the last change of each key that exists is kept, and so is the revision of each dropped deletion.
 */
export function trim(space: Keyspace, revision: number): void {
  const dropped = drop(space, revision);
  space.trimmed = revision;
  replaceDeletions(space, coarsened([...(space.deletions ?? []), ...dropped]));
}

/** @returns the dropped deletions. */
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

/** @returns its last deletion, if that is dropped. */
function forget(space: Keyspace, key: ByteText, revision: number): Deletion | null {
  const versions = lookUp(space.keys, key) as Version[];
  const newest = versions.findLastIndex(({ mod }) => mod <= revision);
  const last = versions[newest];
  // A deletion at this very revision is told to who watches from there: the next compaction takes it.
  const first = last?.version === 0 && last.mod < revision ? newest + 1 : newest;
  for (const { value } of versions.slice(0, first)) space.bytes -= versionBytes(key, value);
  if (first === versions.length) strike(space.keys, key);
  else versions.splice(0, first);
  return last !== undefined && first > newest ? { from: key, to: key, revision: last.mod } : null;
}

/** If there are more intervals of deletions, the nearest ones (by their common prefix) are joined until half as many remain. */
const MAX_DELETIONS = 1_000;
/** In addition to its keys, as JSON. An interval takes less room than the dropped deletions in it. */
const DELETION_BYTES = 60;

const bytesOfDeletions = (deletions: readonly Deletion[]): number =>
  deletions.reduce((sum, { from, to }) => sum + DELETION_BYTES + bytesOf(from) + bytesOf(to), 0);

function replaceDeletions(space: Keyspace, deletions: Deletion[]): void {
  space.bytes += bytesOfDeletions(deletions) - bytesOfDeletions(space.deletions ?? []);
  if (deletions.length > 0) space.deletions = deletions;
  else delete space.deletions;
}

/** Ascending, disjoint and bounded in number. An interval may cover keys that were never deleted, but misses none that was. */
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

/** Whether nothing in the interval has changed from that revision up to the trimmed one, at most as far as is known. */
export function isUnchanged(space: Keyspace, interval: Interval, revision: number): boolean {
  const { trimmed = 0, deletions = [] } = space;
  const wasDeleted = (deletion: Deletion): boolean => deletion.revision >= revision && overlaps(interval, deletion);
  if (deletions.some(wasDeleted)) return false;
  // Of the changes up to where the history is trimmed, a key has at most the last one, as its first version.
  for (const [, [first]] of within(space, interval))
    if (first !== undefined && first.mod >= revision && first.mod <= trimmed) return false;
  return true;
}

const overlaps = ({ key, end }: Interval, { from, to }: Deletion): boolean =>
  to >= key && (end === "" ? from <= key : end === ALL_FROM || from < end);
