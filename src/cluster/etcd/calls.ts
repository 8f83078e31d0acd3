/** Converts calls to etcd's KV service between the wire format and the keyspace. */
import type {
  Compare,
  CompareResult,
  DeleteRequest,
  KeyValue,
  PutRequest,
  RangeRequest,
  RequestOp,
  ResponseOp,
  SortOrder,
  SortTarget,
  TxnRequest,
} from "../../protocols/service/keyspace/vocabulary.ts";
import { EtcdError } from "./errors.ts";
import type {
  compare as compareMessage,
  deleteRangeRequest,
  deleteRangeResponse,
  keyValue,
  putRequest,
  putResponse,
  rangeRequest,
  rangeResponse,
  responseHeader,
  ValueOf,
  WireOp,
  WireResponseOp,
  WireTxn,
  WireTxnResponse,
} from "./messages.ts";

const orders: readonly SortOrder[] = ["none", "ascend", "descend"];
const targets: readonly SortTarget[] = ["key", "version", "create", "mod", "value"];
const results: readonly CompareResult[] = ["equal", "greater", "less", "notEqual"];
const compared = ["version", "create", "mod", "value", "lease"] as const;

export type Header = ValueOf<typeof responseHeader>;

/** @throws EtcdError if the requested sort order is unknown */
export function rangeOf(request: ValueOf<typeof rangeRequest>): RangeRequest {
  const order = orders[request.sort_order];
  const target = targets[request.sort_target];
  if (order === undefined || target === undefined) throw new EtcdError("invalidSort");
  return {
    type: "range",
    key: request.key,
    end: request.range_end,
    limit: atLeastZero(request.limit),
    revision: atLeastZero(request.revision),
    order,
    target,
    keysOnly: request.keys_only,
    countOnly: request.count_only,
    minMod: atLeastZero(request.min_mod_revision),
    maxMod: atLeastZero(request.max_mod_revision),
    minCreate: atLeastZero(request.min_create_revision),
    maxCreate: atLeastZero(request.max_create_revision),
  };
}

/**
 * Clamps a number. etcd treats negative numbers as 0. Numbers too large to be exact become a value higher than any
 * revision.
 */
export const atLeastZero = (value: number): number => Math.min(Math.max(0, value), Number.MAX_SAFE_INTEGER);

/** Converts a put request to a keyspace command. */
export const putOf = (request: ValueOf<typeof putRequest>): PutRequest => ({
  type: "put",
  key: request.key,
  value: request.value,
  lease: request.lease,
  prev: request.prev_kv,
  ignoreValue: request.ignore_value,
  ignoreLease: request.ignore_lease,
});

/** Converts a delete request to a keyspace command. */
export const deleteOf = (request: ValueOf<typeof deleteRangeRequest>): DeleteRequest => ({
  type: "delete",
  key: request.key,
  end: request.range_end,
  prev: request.prev_kv,
});

/** Converts a transaction to a keyspace command. */
export const txnOf = ({ compare, success, failure }: WireTxn): TxnRequest => ({
  type: "txn",
  compare: compare.map(compareOf),
  success: success.map(operationOf),
  failure: failure.map(operationOf),
});

function operationOf(operation: WireOp): RequestOp {
  const { request_range: range, request_put: put, request_delete_range: remove, request_txn: txn } = operation;
  if (range !== null) return rangeOf(range);
  if (put !== null) return putOf(put);
  if (remove !== null) return deleteOf(remove);
  if (txn !== null) return txnOf(txn);
  throw new EtcdError("keyNotFound");
}

function compareOf(wire: ValueOf<typeof compareMessage>): Compare {
  const type = compared[wire.target];
  const result = results[wire.result];
  if (type === undefined || result === undefined) throw new EtcdError("invalidCompare");
  const of = { key: wire.key, end: wire.range_end, result };
  if (type === "value") return { ...of, type, value: wire.value };
  if (type === "lease") return { ...of, type, lease: wire.lease };
  const numbers = { version: wire.version, create: wire.create_revision, mod: wire.mod_revision };
  return { ...of, type, number: atLeastZero(numbers[type]) };
}

/** Converts a key and its value to the wire format. */
export const wireKeyValue = (entry: KeyValue): ValueOf<typeof keyValue> => ({
  key: entry.key,
  create_revision: entry.create,
  mod_revision: entry.mod,
  version: entry.version,
  value: entry.value,
  lease: entry.lease,
});

type Wire<M> = Partial<ValueOf<M>>;

/**
 * Converts a response to the wire format.
 * @param header complete only in the outermost response
 */
export function wireResponse(
  response: ResponseOp,
  header: Partial<Header>,
): Wire<typeof rangeResponse> | Wire<typeof putResponse> | Wire<typeof deleteRangeResponse> | WireTxnResponse {
  switch (response.type) {
    case "range":
      return { header, kvs: response.kvs.map(wireKeyValue), more: response.more, count: response.count };
    case "put":
      return { header, prev_kv: response.prev && wireKeyValue(response.prev) };
    case "delete":
      return { header, deleted: response.deleted, prev_kvs: response.prev.map(wireKeyValue) };
    case "txn":
      return { header, succeeded: response.succeeded, responses: response.responses.map(wireOperation) };
  }
}

const parts = { range: "response_range", put: "response_put", delete: "response_delete_range", txn: "response_txn" };

const wireOperation = (response: ResponseOp): WireResponseOp => ({
  [parts[response.type]]: wireResponse(response, response.type === "txn" ? {} : { revision: response.revision }),
});
