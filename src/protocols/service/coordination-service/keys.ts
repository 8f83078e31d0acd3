/**
 * Operations on keys. Maps and counters are keys of the keyspace, so an operation on them becomes the same kind
 * of request as an etcd client sends.
 */
import { bytesOfText, textOfBytes } from "../keyspace/byte-text.ts";
import { type Applied, answerQuestion, applyCommand, applyRequest, MAX_RESPONSE_BYTES } from "../keyspace/commands.ts";
import { counterKey, mapInterval, mapKey, placeOf } from "../keyspace/layout.ts";
import { deleteOf, putOf, rangeOf, txnOf } from "../keyspace/new-requests.ts";
import {
  bound,
  deleteKey,
  entriesIn,
  entryOf,
  eventsFrom,
  firstIn,
  hasEvents,
  leaseOf,
  NO_LEASE,
  sessionOfLease,
} from "../keyspace/store.ts";
import { fitsBytes } from "../keyspace/text-size.ts";
import type {
  Compare,
  KeyEvent,
  KeyspaceChange,
  KeyspaceErrorCode,
  KeyspaceQuestion,
  KeyspaceResponse,
  KeyValue,
  RequestOp,
  ResponseOp,
} from "../keyspace/vocabulary.ts";
import {
  type Answer,
  type Change,
  type Comparison,
  type CounterOperation,
  type KeyEntry,
  type KeyOperation,
  type KeyspaceOperation,
  MAX_CHANGES_BYTES,
  MAX_OPERATION_BYTES,
  type Refusal,
  type Result,
  type Revision,
  refuse,
  type SessionId,
  type Step,
  type StepResult,
  type Stored,
} from "./operations.ts";
import { type Applying, type Data, refuseFull, sizeOf } from "./state.ts";

const roomIn = ({ data, limits }: Applying): number => limits.maxBytes - sizeOf(data);

/** Emits a change, and bounds the history. */
export function note({ data, limits, tell }: Applying, change: KeyspaceChange): void {
  bound(data.keyspace, limits.maxHistoryBytes);
  tell({ type: "keysChanged", ...change });
}

function noted(on: Applying, { response, change }: Applied): KeyspaceResponse {
  if (change !== null) note(on, change);
  return response;
}

/** Applies a command from a client of etcd. */
export function applyToKeyspace(on: Applying, { caller, command }: KeyspaceOperation): Result {
  const response = noted(on, applyCommand(on.data.keyspace, command, roomIn(on)));
  if (fitsBytes(JSON.stringify(response), MAX_OPERATION_BYTES)) return { type: "keys", response };
  on.tell({ type: "keysAnswered", caller, response });
  return { type: "keys", response: null };
}

/** Answers a question from a client of etcd. */
export const readKeys = ({ keyspace }: Data, question: KeyspaceQuestion): Answer => ({
  type: "keys",
  response: answerQuestion(keyspace, question),
});

/** Applies an operation on maps. */
export function applyToMaps(on: Applying, session: SessionId, operation: KeyOperation): Result {
  const response = noted(on, applyRequest(on.data.keyspace, requestOf(operation, session), roomIn(on)));
  if (response.type === "refused") return refusalOf(on, response.code);
  if (response.type !== "txn") return resultOf(response as ResponseOp) as Result;
  return { type: "transaction", succeeded: response.succeeded, results: response.responses.map(resultOf) };
}

function refusalOf(on: Applying, code: KeyspaceErrorCode): Refusal {
  if (code === "noSpace") return refuseFull(on);
  if (code === "answerTooLarge")
    return refuse("too-large", `the values that a transaction reads have at most ${MAX_RESPONSE_BYTES} bytes`);
  return refuse("bad-operation", "expected a transaction to change each key at most once");
}

function requestOf(operation: KeyOperation | Step, session: SessionId): RequestOp {
  if (operation.type === "transaction") {
    const { compare, success, failure } = operation;
    const request = (step: Step): RequestOp => requestOf(step, session);
    return txnOf(compare.map(compareOf), success.map(request), failure.map(request));
  }
  const key = mapKey(operation.map, operation.key);
  if (operation.type === "get") return rangeOf(key);
  if (operation.type === "delete") return deleteOf(key, "", true);
  const lease = operation.isLeased ? leaseOf(session) : NO_LEASE;
  return putOf(key, bytesOfText(operation.value), { lease, prev: true });
}

function compareOf(comparison: Comparison): Compare {
  const of = { key: mapKey(comparison.map, comparison.key), end: "", result: "equal" } as const;
  return comparison.type === "revision"
    ? { ...of, type: "mod", number: comparison.revision }
    : { ...of, type: "value", value: bytesOfText(comparison.value) };
}

function resultOf(response: ResponseOp): StepResult {
  if (response.type === "range") return { type: "found", entry: storedIn(response.kvs[0]) };
  const previous = response.type === "put" ? response.prev : response.type === "delete" ? response.prev[0] : null;
  return { type: "stored", previous: storedIn(previous) };
}

const storedIn = (entry: KeyValue | null | undefined): Stored | null =>
  entry ? { value: valueIn(entry), revision: entry.mod, session: sessionOfLease(entry.lease) } : null;

/** Returns a value as text. Bytes that are not valid UTF-8, written by a client of etcd, count as Latin-1. */
const valueIn = ({ value }: KeyValue): string => textOfBytes(value) ?? value;

/** Returns a key's value. Null if the key does not exist. */
export const stored = ({ keyspace }: Data, map: string, key: string): Stored | null =>
  storedIn(entryOf(keyspace, mapKey(map, key)));

/** Returns the entries in a range of a map. */
export function range({ keyspace }: Data, map: string, from: string, to: string | null, limit: number): Answer {
  const entries = firstIn(keyspace, mapInterval(map, from, to), limit + 1, (entry): KeyEntry | null => {
    const place = placeOf(entry.key);
    return place && { key: place.key, ...(storedIn(entry) as Stored) };
  });
  return { type: "entries", entries: entries.slice(0, limit), isMore: entries.length > limit };
}

/** Returns the changes to a map after a revision, in order. Contains complete revisions, up to a limited size. */
export function changesAfter({ keyspace }: Data, map: string, after: Revision): Answer {
  const interval = mapInterval(map);
  if (!hasEvents(keyspace, interval, after + 1)) {
    const forgotten = Math.max(keyspace.compacted, keyspace.trimmed) - 1;
    return refuse(
      "compacted",
      `changes up to revision ${forgotten} are compacted, but revision ${after} was requested`,
    );
  }
  let [next, changes] = [after + 1, [] as Change[]];
  do {
    const found = eventsFrom(keyspace, interval, next, MAX_CHANGES_BYTES);
    next = found.next;
    changes = found.events.flatMap((event) => changeIn(event) ?? []);
  } while (changes.length === 0 && next <= keyspace.revision);
  return { type: "changes", changes, isMore: next <= keyspace.revision };
}

/** Returns the change to a map's key. Null if the key belongs to no map. */
export function changeIn({ type, kv }: KeyEvent): Change | null {
  const place = placeOf(kv.key);
  return place && { revision: kv.mod, ...place, value: type === "put" ? valueIn(kv) : null };
}

/** Deletes a map without emitting events. */
export function forgetMap({ keyspace }: Data, map: string): void {
  for (const { key } of entriesIn(keyspace, mapInterval(map), keyspace.revision))
    deleteKey(keyspace, keyspace.revision, key);
}

/** Adds to a counter, or sets it. Counters are safe integers, so sums are the same on every computer. */
export function applyToCounter(on: Applying, operation: CounterOperation): Result {
  const key = counterKey(operation.name);
  const before = operation.type === "add" ? counterIn(on.data, operation.name) : 0;
  if (typeof before !== "number") return before;
  const given = operation.type === "add" ? operation.by : operation.to;
  if (!Number.isSafeInteger(given)) return refuse("bad-operation", `expected a whole number, got ${given}`);
  const value = before + given;
  if (!Number.isSafeInteger(value))
    return refuse("overflow", `the sum of ${before} and ${given} exceeds the range of a counter`);
  const response = noted(on, applyRequest(on.data.keyspace, putOf(key, String(value)), roomIn(on)));
  return response.type === "refused" ? refusalOf(on, response.code) : { type: "counted", value };
}

/** Returns a counter's value. */
export function count(data: Data, name: string): Answer {
  const value = counterIn(data, name);
  return typeof value === "number" ? { type: "counted", value } : value;
}

/** Returns a counter's value, or a refusal if a client of etcd has written something that is not a number. */
function counterIn({ keyspace }: Data, name: string): number | Refusal {
  const text = entryOf(keyspace, counterKey(name))?.value ?? "0";
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  const got = `expected the counter ${name} to be a whole number, got ${text.slice(0, 40)}`;
  return refuse("bad-operation", `${got}: another program wrote it; set the counter to repair it`);
}
