/** Creates requests. Their optional fields have the defaults of etcd. */
import { NO_LEASE } from "./store.ts";
import type { Compare, DeleteRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from "./vocabulary.ts";

/** Reads the current entries of an interval. */
export const rangeOf = (key: string, end = "", more: Partial<RangeRequest> = {}): RangeRequest => ({
  type: "range",
  key,
  end,
  limit: 0,
  revision: 0,
  order: "none",
  target: "key",
  keysOnly: false,
  countOnly: false,
  minMod: 0,
  maxMod: 0,
  minCreate: 0,
  maxCreate: 0,
  ...more,
});

/** Writes a key. */
export const putOf = (key: string, value: string, more: Partial<PutRequest> = {}): PutRequest => ({
  type: "put",
  key,
  value,
  lease: NO_LEASE,
  prev: false,
  ignoreValue: false,
  ignoreLease: false,
  ...more,
});

/** Deletes an interval. */
export const deleteOf = (key: string, end = "", prev = false): DeleteRequest => ({ type: "delete", key, end, prev });

/** Runs one of two branches. */
export const txnOf = (compare: Compare[], success: RequestOp[], failure: RequestOp[]): TxnRequest => ({
  type: "txn",
  compare,
  success,
  failure,
});
