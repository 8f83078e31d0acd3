/**
 * Reads from a keyspace, and the requests in a transaction. Each request is checked as a whole before any part of it is
 * performed.
 */
import { MAX_TXN_OPERATIONS } from "./shapes.ts";
import {
  bytesWithin,
  covers,
  deleteKey,
  entriesIn,
  entryBytes,
  entryOf,
  isUnchanged,
  type Keyspace,
  NO_LEASE,
  putKey,
  visitsOf,
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

type SimpleRequest = Exclude<RequestOp, TxnRequest>;

/** Returns the requests on the path, in the order in which they run. */
export const simpleRequests = (request: RequestOp, path: Path | null): SimpleRequest[] =>
  path === null
    ? [request as SimpleRequest]
    : path.branch.flatMap((each, at) => simpleRequests(each, path.inner[at] ?? null));

/** Returns by how many bytes requests increase the size of the keyspace. Each deleted key counts once. */
export function growthBy(space: Keyspace, requests: readonly SimpleRequest[]): number {
  let growth = -bytesWithin(
    space,
    requests.filter(({ type }) => type === "delete").map(({ key, ...request }) => ({ key, end: "", ...request })),
  );
  for (const request of requests) {
    if (request.type !== "put") continue;
    const before = entryOf(space, request.key);
    const value = request.ignoreValue ? (before?.value ?? "") : request.value;
    growth += entryBytes({ key: request.key, value }) - (before === null ? 0 : entryBytes(before));
  }
  return growth;
}

/** Returns an upper bound on the size of the requests' responses, in bytes. Counting stops above `most`. */
export function responseBytes(space: Keyspace, requests: readonly SimpleRequest[], most: number): number {
  const puts: PutRequest[] = [];
  let bytes = 0;
  for (const request of requests) {
    if (bytes > most) break;
    if (request.type === "put") puts.push(request);
    if (request.type === "range") bytes += rangeBytes(space, request, puts);
    else if (request.prev) bytes += sumOf(entriesIn(space, { end: "", ...request }, space.revision).map(entryBytes));
  }
  return bytes;
}

/** Returns an upper bound on the size of a range. @param puts the earlier puts in the transaction */
function rangeBytes(space: Keyspace, request: RangeRequest, puts: readonly PutRequest[]): number {
  if (request.countOnly) return 0;
  const { revision, limit, keysOnly } = request;
  const found = entriesIn(space, request, revision === 0 ? space.revision : revision);
  const added = revision === 0 ? puts.filter(({ key }) => covers(request, key)) : [];
  const sizes = [...found, ...added].map(({ key, value }) => entryBytes({ key, value: keysOnly ? "" : value }));
  if (limit === 0 || limit >= sizes.length) return sumOf(sizes);
  return sumOf(sizes.sort((a, b) => b - a).slice(0, limit)); // Earlier requests may have deleted the first entries.
}

const sumOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0);

/**
 * Returns about how many entries and changes a transaction visits, in both of its branches. Counting stops above
 * `most`.
 */
export function visitsBy(space: Keyspace, { compare, success, failure }: TxnRequest, most: number): number {
  let visits = 0;
  for (const each of [...compare, ...success, ...failure]) {
    if (visits > most) break;
    if (each.type === "txn") visits += visitsBy(space, each, most - visits);
    else if (each.type !== "put")
      visits += visitsOf(space, each, "revision" in each && each.revision > 0 ? each.revision : space.revision);
  }
  return visits;
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
