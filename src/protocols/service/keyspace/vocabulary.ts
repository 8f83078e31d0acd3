/**
 * The commands, questions and answers of a keyspace, as etcd defines them. Facts of etcd's API v3, 3.4 and 3.5:
 * https://etcd.io/docs/v3.5/learning/api/
 */

/** Bytes, each as one character from U+0000 to U+00FF: so texts compare as the bytes do. */
export type ByteText = string;

/** A signed number of 64 bits, in decimal. "0": none. */
export type LeaseId = string;

export interface KeyValue {
  key: ByteText;
  create: number;
  mod: number;
  /** How often it was put since it was created. */
  version: number;
  value: ByteText;
  lease: LeaseId;
}

/** Which keys: one where `end` is empty, all from `key` on where it is one zero byte, otherwise those from `key` on and before `end`. */
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
  /** As of which it is read; 0: as of now. */
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

/** Of an interval, each key in it is compared. */
export type Compare =
  | (Comparing & { type: "version"; number: number })
  | (Comparing & { type: "create"; number: number })
  | (Comparing & { type: "mod"; number: number })
  | (Comparing & { type: "value"; value: ByteText })
  | (Comparing & { type: "lease"; lease: LeaseId });

/** What changes a keyspace, and goes through the log. */
export type KeyspaceCommand =
  | PutRequest
  | DeleteRequest
  | TxnRequest
  | { type: "compact"; revision: number }
  /** Seconds. */
  | { type: "grant"; lease: LeaseId; ttl: number }
  | { type: "renew"; lease: LeaseId }
  | { type: "revoke"; lease: LeaseId }
  /** It is revoked if that was its last renewal. */
  | { type: "expire"; lease: LeaseId; renewal: number };

export type KeyspaceQuestion =
  | RangeRequest
  | { type: "lease"; lease: LeaseId; keys: boolean }
  | { type: "leases" }
  | { type: "size" }
  /** What changed from that revision on, in order, of all keys: so many bytes of it and whole revisions. Refused unless that is all that changed in the interval. */
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
  /** `ttl`: what it was granted, in seconds, which may be more than was asked for. */
  | { type: "lease"; revision: number; ttl: number; keys: ByteText[] }
  | { type: "leases"; revision: number; leases: GrantedLease[] }
  | { type: "size"; revision: number; bytes: number }
  /** `next`: the revision from which on there is more, or will be. */
  | { type: "events"; revision: number; events: KeyEvent[]; next: number }
  | Refused;

export interface GrantedLease {
  lease: LeaseId;
  ttl: number;
  /** The number of its last renewal, or of its grant: none has it again, of whatever lease. */
  renewal: number;
}

export interface Refused {
  type: "refused";
  code: KeyspaceErrorCode;
  revision: number;
  /** Of `compacted`: up to where. */
  compacted: number;
}

/** A change of a key: a deleted one has an empty value, and version 0. */
export interface KeyEvent {
  type: "put" | "delete";
  kv: KeyValue;
  prev: KeyValue | null;
}

/** What a command has changed, told where it is applied. */
export interface KeyspaceChange {
  revision: number;
  events: KeyEvent[];
  /** Granted or renewed. */
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
