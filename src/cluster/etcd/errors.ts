/** etcd's errors, with gRPC codes and the texts that its clients match, from rpctypes/error.go in etcd 3.4 and 3.5. */
import type { KeyspaceErrorCode } from "../../protocols/service/keyspace/vocabulary.ts";

/** gRPC codes. Errors with the code UNKNOWN come from etcd's libraries, and their texts have no prefix. */
const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const OUT_OF_RANGE = 11;
const UNAVAILABLE = 14;

const known = {
  emptyKey: [INVALID_ARGUMENT, "key is not provided"],
  permissionDenied: [PERMISSION_DENIED, "permission denied"],
  keyNotFound: [INVALID_ARGUMENT, "key not found"],
  valueProvided: [INVALID_ARGUMENT, "value is provided"],
  leaseProvided: [INVALID_ARGUMENT, "lease is provided"],
  tooManyOperations: [INVALID_ARGUMENT, "too many operations in txn request"],
  answerTooLarge: [RESOURCE_EXHAUSTED, "answer is too large"],
  duplicateKey: [INVALID_ARGUMENT, "duplicate key given in txn request"],
  invalidSort: [INVALID_ARGUMENT, "invalid sort option"],
  invalidCompare: [INVALID_ARGUMENT, "invalid comparison"],
  requestTooLarge: [INVALID_ARGUMENT, "request is too large"],
  compacted: [OUT_OF_RANGE, "mvcc: required revision has been compacted"],
  futureRevision: [OUT_OF_RANGE, "mvcc: required revision is a future revision"],
  noSpace: [RESOURCE_EXHAUSTED, "mvcc: database space exceeded"],
  tooManyRequests: [RESOURCE_EXHAUSTED, "too many requests"],
  leaseNotFound: [NOT_FOUND, "requested lease not found"],
  leaseExists: [FAILED_PRECONDITION, "lease already exists"],
  ttlTooLarge: [OUT_OF_RANGE, "too large lease TTL"],
  noLeader: [UNAVAILABLE, "no leader"],
  notLeader: [FAILED_PRECONDITION, "not leader"],
  badTransferee: [FAILED_PRECONDITION, "bad leader transferee"],
  memberNotFound: [NOT_FOUND, "member not found"],
  memberExists: [FAILED_PRECONDITION, "Peer URLs already exists"],
  badMemberUrls: [INVALID_ARGUMENT, "given member URLs are invalid"],
  notLearner: [FAILED_PRECONDITION, "can only promote a learner member"],
  learnerNotReady: [FAILED_PRECONDITION, "can only promote a learner member which is in sync with leader"],
  lastVoter: [FAILED_PRECONDITION, "re-configuration failed due to not enough started members"],
  unhealthy: [UNAVAILABLE, "unhealthy cluster"],
  sessionExpired: [UNKNOWN, "mutex: session is expired"],
  electionNotLeader: [UNKNOWN, "election: not leader"],
  electionNoLeader: [UNKNOWN, "election: no leader"],
  noLeaderKey: [UNKNOWN, '"leader" field must be provided'],
  authNotEnabled: [FAILED_PRECONDITION, "authentication is not enabled"],
  stopped: [UNAVAILABLE, "server stopped"],
  timedOut: [UNAVAILABLE, "request timed out"],
} as const satisfies Record<KeyspaceErrorCode, readonly [number, string]> & Record<string, readonly [number, string]>;

/** The name of an etcd error. */
export type EtcdErrorName = keyof typeof known;
export const errorNames = Object.keys(known) as EtcdErrorName[];

/** An error that etcd clients recognize by its code and text. */
export class EtcdError extends Error {
  readonly #reason: EtcdErrorName;
  /** The gRPC code. */
  readonly code: number;
  readonly details: string;

  /** The keyspace revision, if the keyspace refused the call. */
  readonly revision: number;
  /** The compaction revision, if the error is caused by a compaction. */
  readonly compacted: number;

  constructor(
    reason: EtcdErrorName,
    { revision = 0, compacted = 0, ...options }: ErrorOptions & { revision?: number; compacted?: number } = {},
  ) {
    const [code, text] = known[reason];
    super(code === UNKNOWN ? text : `etcdserver: ${text}`, options);
    this.#reason = reason;
    this.revision = revision;
    this.compacted = compacted;
    this.code = code;
    this.details = this.message;
  }

  /** The error's label in metrics. */
  get label(): string {
    return this.#reason.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  }

  is(name: EtcdErrorName): boolean {
    return this.#reason === name;
  }
}
