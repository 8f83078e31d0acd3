/**
 * Commands, questions and answers of a keyspace, as in etcd's API v3 (versions 3.4 and 3.5):
 * https://etcd.io/docs/v3.5/learning/api/
 */

/** Bytes, each as one character from U+0000 to U+00FF, so that texts sort as the bytes do. */
export type ByteText = string;

/** A signed 64-bit integer in decimal. "0": none. */
export type LeaseId = string;

export interface KeyValue {
  key: ByteText;
  create: number;
  mod: number;
  /** How often the key was put since it was created. */
  version: number;
  value: ByteText;
  lease: LeaseId;
}

/**
 * A set of keys: only `key` if `end` is empty, all keys from `key` on if `end` is one zero byte, otherwise those from
 * `key` up to but excluding `end`.
 */
export interface Interval {
  key: ByteText;
  end: ByteText;
}

export type SortOrder = "none" | "ascend" | "descend";
export type SortTarget = "key" | "version" | "create" | "mod" | "value";

export interface RangeRequest extends Interval {
  type: "range";
  /** 0: all. */
  limit: number;
  /** The revision to read at; 0: the current one. */
  revision: number;
  order: SortOrder;
  target: SortTarget;
  keysOnly: boolean;
  countOnly: boolean;
  /** 0: no bound. */
  minMod: number;
  maxMod: number;
  minCreate: number;
  maxCreate: number;
}

export interface PutRequest {
  type: "put";
  key: ByteText;
  value: ByteText;
  lease: LeaseId;
  prev: boolean;
  ignoreValue: boolean;
  ignoreLease: boolean;
}

export interface DeleteRequest extends Interval {
  type: "delete";
  prev: boolean;
}

export interface TxnRequest {
  type: "txn";
  compare: Compare[];
  success: RequestOp[];
  failure: RequestOp[];
}

export type RequestOp = RangeRequest | PutRequest | DeleteRequest | TxnRequest;

export type CompareResult = "equal" | "greater" | "less" | "notEqual";

interface Comparing extends Interval {
  result: CompareResult;
}

/** Compares every key in the interval. */
export type Compare =
  | (Comparing & { type: "version"; number: number })
  | (Comparing & { type: "create"; number: number })
  | (Comparing & { type: "mod"; number: number })
  | (Comparing & { type: "value"; value: ByteText })
  | (Comparing & { type: "lease"; lease: LeaseId });

/** Commands change a keyspace and go through the log. */
export type KeyspaceCommand =
  | PutRequest
  | DeleteRequest
  | TxnRequest
  | { type: "compact"; revision: number }
  /** `ttl` is in seconds. */
  | { type: "grant"; lease: LeaseId; ttl: number }
  | { type: "renew"; lease: LeaseId }
  | { type: "revoke"; lease: LeaseId }
  /** Revokes the lease if this was its last renewal. */
  | { type: "expire"; lease: LeaseId; renewal: number };

export type KeyspaceQuestion =
  | RangeRequest
  | { type: "lease"; lease: LeaseId; keys: boolean }
  | { type: "leases" }
  | { type: "size" }
  /**
   * The changes of all keys from a revision on, in order: whole revisions, up to about `maxBytes`. Refused unless all
   * changes in the interval since then are kept.
   */
  | ({ type: "events"; from: number; maxBytes: number } & Interval);

export interface RangeResponse {
  type: "range";
  revision: number;
  kvs: KeyValue[];
  more: boolean;
  count: number;
}

export interface PutResponse {
  type: "put";
  revision: number;
  prev: KeyValue | null;
}

export interface DeleteResponse {
  type: "delete";
  revision: number;
  deleted: number;
  prev: KeyValue[];
}

export interface TxnResponse {
  type: "txn";
  revision: number;
  succeeded: boolean;
  responses: ResponseOp[];
}

export type ResponseOp = RangeResponse | PutResponse | DeleteResponse | TxnResponse;

export type KeyspaceResponse =
  | ResponseOp
  | { type: "done"; revision: number }
  /** `ttl` is the granted time in seconds, which may exceed the requested one. */
  | { type: "lease"; revision: number; ttl: number; keys: ByteText[] }
  | { type: "leases"; revision: number; leases: GrantedLease[] }
  | { type: "size"; revision: number; bytes: number }
  /** `next`: the revision to continue from. */
  | { type: "events"; revision: number; events: KeyEvent[]; next: number }
  | Refused;

export interface GrantedLease {
  lease: LeaseId;
  ttl: number;
  /** The number of its last renewal, or of its grant. It is unique over all leases. */
  renewal: number;
}

export interface Refused {
  type: "refused";
  code: KeyspaceErrorCode;
  revision: number;
  /** With `compacted`: the compacted revision. */
  compacted: number;
}

/** A change of a key. A deleted key has an empty value and version 0. */
export interface KeyEvent {
  type: "put" | "delete";
  kv: KeyValue;
  prev: KeyValue | null;
}

/** The changes made by a command, reported when it is applied. */
export interface KeyspaceChange {
  revision: number;
  events: KeyEvent[];
  /** The lease that was granted or renewed. */
  renewed: GrantedLease | null;
  ended: LeaseId | null;
}

export const keyspaceErrorCodes = [
  "emptyKey",
  "keyNotFound",
  "valueProvided",
  "leaseProvided",
  "tooManyOperations",
  "answerTooLarge",
  "duplicateKey",
  "compacted",
  "futureRevision",
  "noSpace",
  "leaseNotFound",
  "leaseExists",
  "ttlTooLarge",
] as const;
export type KeyspaceErrorCode = (typeof keyspaceErrorCodes)[number];
