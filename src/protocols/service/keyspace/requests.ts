/**
 * Reads from a keyspace, and the requests in a transaction. Each request is checked as a whole before any part of it is
 * performed.
 */
import { MAX_TXN_OPERATIONS } from "./shapes.ts";
import {
  covers,
  deleteKey,
  entriesIn,
  entryBytes,
  entryOf,
  isUnchanged,
  type Keyspace,
  NO_LEASE,
  putKey,
} from "./store.ts";
import { lookUp } from "./table.ts";
import type {
  Compare,
  DeleteRequest,
  DeleteResponse,
  Interval,
  KeyEvent,
  KeyspaceErrorCode,
  KeyValue,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  RequestOp,
  ResponseOp,
  TxnRequest,
  TxnResponse,
} from "./vocabulary.ts";

/** A command in progress, with its changes so far, which all have the same revision. */
export interface Changing {
  readonly space: Keyspace;
  readonly events: KeyEvent[];
}

/** Returns the revision that the command reads at and returns. It includes the command's own changes. */
const revisionOf = ({ space, events }: Changing): number => space.revision + (events.length > 0 ? 1 : 0);

/** Returns the request's error if it has one that does not depend on the keyspace's content. Null if it has none. */
export function flawOf(request: RequestOp, room = MAX_TXN_OPERATIONS): KeyspaceErrorCode | null {
  if (request.type === "txn") return transactionFlaw(request, room);
  if (request.key === "") return "emptyKey";
  if (request.type !== "put") return null;
  if (request.ignoreValue && request.value !== "") return "valueProvided";
  return request.ignoreLease && request.lease !== NO_LEASE ? "leaseProvided" : null;
}

function transactionFlaw({ compare, success, failure }: TxnRequest, room: number): KeyspaceErrorCode | null {
  const size = Math.max(compare.length, success.length, failure.length);
  if (size > room) return "tooManyOperations";
  if (compare.some(({ key }) => key === "")) return "emptyKey";
  if (compare.some((each) => each.type === "lease" && !LEASE.test(each.lease))) return "leaseNotFound";
  for (const branch of [success, failure]) {
    for (const request of branch) {
      const flaw = flawOf(request, room - size);
      if (flaw !== null) return flaw;
    }
    if (writesOf(branch) === null) return "duplicateKey";
  }
  return null;
}

/** A lease id. */
export const LEASE = /^-?\d{1,19}$/;

interface Writes {
  readonly puts: ReadonlySet<string>;
  readonly deletes: readonly Interval[];
}

/**
 * Returns the writes in a branch. Null if a key might be put twice, or both put and deleted, which would mean two
 * changes to the key at one revision.
 */
function writesOf(branch: readonly RequestOp[]): Writes | null {
  let all: Writes = { puts: new Set(), deletes: branch.filter((request) => request.type === "delete") };
  for (const request of branch) {
    if (request.type === "range" || request.type === "delete") continue;
    const writes = request.type === "put" ? { puts: new Set([request.key]), deletes: [] } : writesOfEither(request);
    if (writes === null || clash(all, writes)) return null;
    all = together(all, writes);
  }
  return all;
}

/** Returns the writes in both branches. Since only one branch runs, both may put or delete the same key. */
function writesOfEither({ success, failure }: TxnRequest): Writes | null {
  const [one, other] = [writesOf(success), writesOf(failure)];
  return one === null || other === null ? null : together(one, other);
}

const together = (a: Writes, b: Writes): Writes => ({
  puts: new Set([...a.puts, ...b.puts]),
  deletes: [...a.deletes, ...b.deletes],
});

function clash(a: Writes, b: Writes): boolean {
  const isDeleted = (key: string, { deletes }: Writes): boolean => deletes.some((interval) => covers(interval, key));
  return (
    [...b.puts].some((key) => a.puts.has(key) || isDeleted(key, a)) || [...a.puts].some((key) => isDeleted(key, b))
  );
}

/** The branches taken by a transaction and its nested transactions. They are all decided before any of them runs. */
export interface Path {
  readonly succeeded: boolean;
  readonly branch: readonly RequestOp[];
  readonly inner: readonly (Path | null)[];
}

/** Decides which of a transaction's branches are taken. */
export function pathOf(space: Keyspace, { compare, success, failure }: TxnRequest): Path {
  const succeeded = compare.every((each) => holds(space, each));
  const branch = succeeded ? success : failure;
  return { succeeded, branch, inner: branch.map((each) => (each.type === "txn" ? pathOf(space, each) : null)) };
}

const ABSENT: KeyValue = { key: "", create: 0, mod: 0, version: 0, value: "", lease: NO_LEASE };

function holds(space: Keyspace, compare: Compare): boolean {
  const found = entriesIn(space, compare, space.revision);
  if (found.length === 0) return compare.type !== "value" && isSo(compare, ABSENT);
  return found.every((entry) => isSo(compare, entry));
}

function isSo(compare: Compare, entry: KeyValue): boolean {
  const order = orderOf(compare, entry);
  if (compare.result === "equal") return order === 0;
  if (compare.result === "notEqual") return order !== 0;
  return compare.result === "greater" ? order > 0 : order < 0;
}

function orderOf(compare: Compare, entry: KeyValue): number {
  if (compare.type === "value") return inOrder(entry.value, compare.value);
  if (compare.type === "lease") return inOrder(BigInt(entry.lease), BigInt(compare.lease));
  return entry[compare.type] - compare.number;
}

const inOrder = <T extends string | bigint | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** Returns the error that the request causes in the current state. Null if there is none. */
export function obstacleTo(space: Keyspace, request: RequestOp, path: Path | null): KeyspaceErrorCode | null {
  if (path !== null) {
    for (const [at, each] of path.branch.entries()) {
      const obstacle = obstacleTo(space, each, path.inner[at] ?? null);
      if (obstacle !== null) return obstacle;
    }
    return null;
  }
  if (request.type === "range") return revisionFault(space, request);
  return request.type === "put" ? putObstacle(space, request) : null;
}

/** Returns the error if the requested revision cannot be read. Null if it can. */
export function revisionFault(space: Keyspace, request: RangeRequest): KeyspaceErrorCode | null {
  const { revision } = request;
  if (revision === 0) return null;
  if (revision > space.revision) return "futureRevision";
  const { compacted, trimmed } = space;
  const isKept = revision >= trimmed || isUnchanged(space, request, revision + 1);
  return revision >= compacted && isKept ? null : "compacted";
}

function putObstacle(space: Keyspace, { key, lease, ignoreValue, ignoreLease }: PutRequest): KeyspaceErrorCode | null {
  if ((ignoreValue || ignoreLease) && entryOf(space, key) === null) return "keyNotFound";
  return lease === NO_LEASE || lookUp(space.leases, lease) !== null ? null : "leaseNotFound";
}

/** Returns by how many bytes a request increases the size of the keyspace. */
export function growthBy(space: Keyspace, request: RequestOp, path: Path | null): number {
  if (path !== null)
    return path.branch.reduce((sum, each, at) => sum + growthBy(space, each, path.inner[at] ?? null), 0);
  if (request.type === "put") {
    const before = entryOf(space, request.key);
    const value = request.ignoreValue ? (before?.value ?? "") : request.value;
    return entryBytes({ key: request.key, value }) - (before === null ? 0 : entryBytes(before));
  }
  return request.type === "delete" ? -bytesOf(entriesIn(space, request, space.revision)) : 0;
}

const bytesOf = (entries: readonly KeyValue[]): number => entries.reduce((sum, entry) => sum + entryBytes(entry), 0);

/** Returns an upper bound on the size of a request's response, in bytes. Counting stops above `most`. */
export function responseBytes(space: Keyspace, request: RequestOp, path: Path | null, most: number): number {
  const put = putBytes(request, path);
  const count = (each: RequestOp, at: Path | null, rest: number): number => {
    if (at !== null) {
      let sum = 0;
      for (let index = 0; index < at.branch.length && sum <= rest; index++)
        sum += count(at.branch[index] as RequestOp, at.inner[index] ?? null, rest - sum);
      return sum;
    }
    if (each.type === "range") {
      const revision = each.revision === 0 ? space.revision : each.revision;
      return put + bytesOf(entriesIn(space, each, revision)); // The range may contain everything that was put.
    }
    if (each.type === "txn" || !each.prev) return 0;
    return bytesOf(entriesIn(space, { end: "", ...each }, space.revision));
  };
  return count(request, path, most);
}

/** Returns the total size of the entries that a request puts. */
function putBytes(request: RequestOp, path: Path | null): number {
  if (path !== null) return path.branch.reduce((sum, each, at) => sum + putBytes(each, path.inner[at] ?? null), 0);
  return request.type === "put" ? entryBytes(request) : 0;
}

/** Performs a request that has already been checked. */
export function perform(on: Changing, request: RequestOp, path: Path | null): ResponseOp {
  if (request.type === "range") return range(on, request);
  if (request.type === "put") return put(on, request);
  if (request.type === "delete") return remove(on, request);
  return transact(on, path as Path);
}

function transact(on: Changing, path: Path): TxnResponse {
  const responses = path.branch.map((each, at) => perform(on, each, path.inner[at] ?? null));
  return { type: "txn", revision: revisionOf(on), succeeded: path.succeeded, responses };
}

function put(on: Changing, { key, value, lease, prev, ignoreValue, ignoreLease }: PutRequest): PutResponse {
  const { space, events } = on;
  const before = ignoreValue || ignoreLease ? entryOf(space, key) : null;
  const kept = { value: ignoreValue ? before?.value : value, lease: ignoreLease ? before?.lease : lease };
  const event = putKey(space, space.revision + 1, key, kept.value ?? "", kept.lease ?? NO_LEASE);
  events.push(event);
  return { type: "put", revision: revisionOf(on), prev: prev ? event.prev : null };
}

function remove(on: Changing, { key, end, prev }: DeleteRequest): DeleteResponse {
  const { space, events } = on;
  const deleted = entriesIn(space, { key, end }, space.revision + 1);
  for (const each of deleted) events.push(deleteKey(space, space.revision + 1, each.key) as KeyEvent);
  return { type: "delete", revision: revisionOf(on), deleted: deleted.length, prev: prev ? deleted : [] };
}

/** Reads a range. */
export function range(on: Changing, request: RangeRequest): RangeResponse {
  const revision = revisionOf(on);
  const found = entriesIn(on.space, request, request.revision === 0 ? revision : request.revision);
  if (request.countOnly) return { type: "range", revision, kvs: [], more: false, count: found.length };
  const sorted = inOrderOf(
    found.filter((entry) => isWithin(entry, request)),
    request,
  );
  const more = request.limit > 0 && sorted.length > request.limit;
  const limited = more ? sorted.slice(0, request.limit) : sorted;
  const kvs = request.keysOnly ? limited.map((entry) => ({ ...entry, value: "" })) : limited;
  return { type: "range", revision, kvs, more, count: found.length };
}

const isWithin = ({ mod, create }: KeyValue, { minMod, maxMod, minCreate, maxCreate }: RangeRequest): boolean =>
  mod >= minMod && create >= minCreate && (maxMod === 0 || mod <= maxMod) && (maxCreate === 0 || create <= maxCreate);

function inOrderOf(entries: KeyValue[], { order, target }: RangeRequest): KeyValue[] {
  if (target === "key" && order !== "descend") return entries;
  const sign = order === "descend" ? -1 : 1;
  return entries.sort((a, b) => sign * inOrder(a[target], b[target]));
}
