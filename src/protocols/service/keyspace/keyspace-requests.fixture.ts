/** Functions that build keyspace requests with default fields. */
import { NO_LEASE } from "./store.ts";
import type {
  Compare,
  DeleteRequest,
  KeyspaceQuestion,
  PutRequest,
  RangeRequest,
  RequestOp,
  TxnRequest,
} from "./vocabulary.ts";

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

export const deleteOf = (key: string, end = "", prev = false): DeleteRequest => ({ type: "delete", key, end, prev });

export const txnOf = (compare: Compare[], success: RequestOp[], failure: RequestOp[]): TxnRequest => ({
  type: "txn",
  compare,
  success,
  failure,
});

/** Returns a question for events, which covers all keys unless an interval is given. */
export const eventsOf = (from: number, maxBytes = 1_000, key = "\0", end = "\0"): KeyspaceQuestion => ({
  type: "events",
  from,
  maxBytes,
  key,
  end,
});
