/**
 * A keyspace's commands, questions and answers, as in the etcd v3 API (versions 3.4 and 3.5):
 * https://etcd.io/docs/v3.5/learning/api/
 */

/**
 * Bytes, each represented by one character from U+0000 to U+00FF, so that strings sort in the same order as the bytes.
 */
export type ByteText = string;

/** A lease id, which is a signed 64-bit integer in decimal. "0" means no lease. */
export type LeaseId = string;

/** A key with its value, version and revisions. */
export interface KeyValue {
  key: ByteText;
  create: number;
  mod: number;
  /** The number of times that the key has been put, including its creation. */
  version: number;
  value: ByteText;
  lease: LeaseId;
}

/**
 * A set of keys. It contains only `key` if `end` is empty, all keys from `key` onward if `end` is a single zero byte,
 * and otherwise the keys from `key` up to but not including `end`.
 */
export interface Interval {
  key: ByteText;
  end: ByteText;
}

export type SortOrder = "none" | "ascend" | "descend";
export type SortTarget = "key" | "version" | "create" | "mod" | "value";

/** Reads a range of keys. */
export interface RangeRequest extends Interval {
  type: "range";
  /** The maximum number of entries. 0 means all. */
  limit: number;
  /** The revision to read. 0 means the current one. */
  revision: number;
  order: SortOrder;
  target: SortTarget;
  keysOnly: boolean;
  countOnly: boolean;
  /** Bounds on the modification and creation revisions. 0 means no bound. */
  minMod: number;
  maxMod: number;
  minCreate: number;
  maxCreate: number;
}

/** Writes a key. */
export interface PutRequest {
  type: "put";
  key: ByteText;
  value: ByteText;
  lease: LeaseId;
  prev: boolean;
  ignoreValue: boolean;
  ignoreLease: boolean;
}

/** Deletes a range of keys. */
export interface DeleteRequest extends Interval {
  type: "delete";
  prev: boolean;
}

/** Runs one of two branches, depending on the comparisons. */
export interface TxnRequest {
  type: "txn";
  compare: Compare[];
  success: RequestOp[];
  failure: RequestOp[];
}

/** An operation in a transaction. */
export type RequestOp = RangeRequest | PutRequest | DeleteRequest | TxnRequest;

/** The relation that a comparison requires. */
export type CompareResult = "equal" | "greater" | "less" | "notEqual";

interface Comparing extends Interval {
  result: CompareResult;
}

/** A comparison that applies to every key in the interval. */
export type Compare =
  | (Comparing & { type: "version"; number: number })
  | (Comparing & { type: "create"; number: number })
  | (Comparing & { type: "mod"; number: number })
  | (Comparing & { type: "value"; value: ByteText })
  | (Comparing & { type: "lease"; lease: LeaseId });

/** A command. Commands change a keyspace and go through the log. */
export type KeyspaceCommand =
  | PutRequest
  | DeleteRequest
  | TxnRequest
  | { type: "compact"; revision: number }
  /** `ttl` is in seconds. */
  | { type: "grant"; lease: LeaseId; ttl: number }
  | { type: "renew"; lease: LeaseId }
  | { type: "revoke"; lease: LeaseId }
  /** Revokes the lease if it has not been renewed since the given renewal. */
  | { type: "expire"; lease: LeaseId; renewal: number };

/** A question that does not change the keyspace. */
export type KeyspaceQuestion =
  | RangeRequest
  | { type: "lease"; lease: LeaseId; keys: boolean }
  | { type: "leases" }
  | { type: "size" }
  /**
   * Returns the changes to the interval's keys from a revision onward, in order. Contains only complete revisions, up
   * to about `maxBytes`. Refused unless all changes in the interval since that revision have been retained.
   */
  | ({ type: "events"; from: number; maxBytes: number } & Interval);

/** The entries of a range. */
export interface RangeResponse {
  type: "range";
  revision: number;
  kvs: KeyValue[];
  more: boolean;
  count: number;
}

/** The response to a put. */
export interface PutResponse {
  type: "put";
  revision: number;
  prev: KeyValue | null;
}

/** The response to a deletion. */
export interface DeleteResponse {
  type: "delete";
  revision: number;
  deleted: number;
  prev: KeyValue[];
}

/** The response to a transaction: the branch that was taken, and its responses. */
export interface TxnResponse {
  type: "txn";
  revision: number;
  succeeded: boolean;
  responses: ResponseOp[];
}

/** The response to an operation in a transaction. */
export type ResponseOp = RangeResponse | PutResponse | DeleteResponse | TxnResponse;

/** The response to a command or question. */
export type KeyspaceResponse =
  | ResponseOp
  | { type: "done"; revision: number }
  /** `ttl` is the time to live that was granted, in seconds. It may be longer than requested. */
  | { type: "lease"; revision: number; ttl: number; keys: ByteText[] }
  | { type: "leases"; revision: number; leases: GrantedLease[] }
  | { type: "size"; revision: number; bytes: number }
  /** `next` is the revision to continue from. */
  | { type: "events"; revision: number; events: KeyEvent[]; next: number }
  | Refused;

/** A lease without its keys. */
export interface GrantedLease {
  lease: LeaseId;
  ttl: number;
  /** The number of the last renewal, or of the grant if there was none. Unique across all leases. */
  renewal: number;
}

/** A request that had no effect. */
export interface Refused {
  type: "refused";
  code: KeyspaceErrorCode;
  revision: number;
  /** The compacted revision if the code is `compacted`. */
  compacted: number;
}

/** A change to a key. A deleted key has an empty value and version 0. */
export interface KeyEvent {
  type: "put" | "delete";
  kv: KeyValue;
  prev: KeyValue | null;
}

/** The changes that a command made, reported when it is applied. */
export interface KeyspaceChange {
  revision: number;
  events: KeyEvent[];
  /** The lease that was granted or renewed. */
  renewed: GrantedLease | null;
  ended: LeaseId | null;
}

/** All refusal codes. */
export const keyspaceErrorCodes = [
  "emptyKey",
  /** The key is reserved for the service itself. */
  "permissionDenied",
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
/** A refusal code. */
export type KeyspaceErrorCode = (typeof keyspaceErrorCodes)[number];
