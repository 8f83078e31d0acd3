/** The keyspace as a state machine, which applies commands and answers questions. */
import { problem } from "../../../core/shape.ts";
import { enter, entriesOf, lookUp } from "../coordination-service/table.ts";
import { bytesOfPuts, bytesOfRanges, flawOf, obstacleTo, pathOf, perform, range, revisionFault } from "./requests.ts";
import { keyspaceCommandShape, keyspaceQuestionShape } from "./shapes.ts";
import {
  type Changed,
  compact,
  emptyKeyspace,
  endLease,
  enterLease,
  eventsFrom,
  isUnchanged,
  type Keyspace,
  type Lease,
  NO_LEASE,
  trim,
} from "./versions.ts";
import type {
  GrantedLease,
  Interval,
  KeyEvent,
  KeyspaceChange,
  KeyspaceCommand,
  KeyspaceErrorCode,
  KeyspaceQuestion,
  KeyspaceResponse,
  LeaseId,
  RequestOp,
} from "./vocabulary.ts";

/** Limits on a lease's time to live, in seconds. */
const MIN_TTL = 2;
const MAX_TTL = 9_000_000_000;
const MAX_LEASES = 10_000;
/**
 * The maximum number of changes to retain. If there are more, the older half is dropped. etcd would fill its disk
 * instead, and has options for compaction.
 */
const MAX_HISTORY = 10_000;
/**
 * The maximum size of the answer to a transaction, in bytes. Every replica builds the answer, and a transaction may
 * read all keys many times.
 */
const MAX_ANSWER_BYTES = 16 * 1_048_576;

/** The response to a command and the change that it made. */
export interface Applied {
  readonly response: KeyspaceResponse;
  /** The change. Null if nothing changed. */
  readonly change: KeyspaceChange | null;
}

export { emptyKeyspace, type Keyspace };

/**
 * Changes the keyspace in place.
 * @param room for puts, in bytes
 * @throws Error if the command is not valid; the keyspace is then unchanged
 */
export function applyCommand(space: Keyspace, command: KeyspaceCommand, room: number): Applied {
  const fault = problem(keyspaceCommandShape, command, "command");
  if (fault !== null) throw new Error(fault);
  const applied = apply(space, command, room);
  if (space.history.length > MAX_HISTORY) trim(space, (space.history[MAX_HISTORY / 2] as Changed).revision);
  return applied;
}

function apply(space: Keyspace, command: KeyspaceCommand, room: number): Applied {
  switch (command.type) {
    case "put":
    case "delete":
    case "txn":
      return request(space, command, room);
    case "compact":
      return compacted(space, command.revision);
    case "grant":
      return grant(space, command.lease, command.ttl, room);
    case "renew":
      return renew(space, command.lease);
    case "revoke":
      return end(space, command.lease);
    case "expire": {
      const lease = lookUp(space.leases, command.lease);
      return lease?.renewal === command.renewal ? end(space, command.lease) : refused(space, "leaseNotFound");
    }
  }
}

/** Answers a question. @throws Error if the question is not valid */
export function answerQuestion(space: Keyspace, question: KeyspaceQuestion): KeyspaceResponse {
  const fault = problem(keyspaceQuestionShape, question, "question");
  if (fault !== null) throw new Error(fault);
  const { revision } = space;
  switch (question.type) {
    case "range": {
      const code = flawOf(question) ?? revisionFault(space, question);
      return code === null ? range({ space, events: [] }, question) : refused(space, code).response;
    }
    case "lease": {
      const lease = lookUp(space.leases, question.lease);
      if (lease === null) return refused(space, "leaseNotFound").response;
      return { type: "lease", revision, ttl: lease.ttl, keys: question.keys ? [...lease.keys] : [] };
    }
    case "leases":
      return { type: "leases", revision, leases: leasesIn(space) };
    case "size":
      return { type: "size", revision, bytes: space.bytes };
    case "events":
      if (!hasEvents(space, question)) return refused(space, "compacted").response;
      return { type: "events", revision, ...eventsFrom(space, question.from, question.maxBytes) };
  }
}

/** Returns whether all changes in the interval since the given revision are still available. */
const hasEvents = (space: Keyspace, { from, ...interval }: Interval & { from: number }): boolean =>
  from >= space.compacted && (from >= (space.trimmed ?? 0) || isUnchanged(space, interval, from));

const leasesIn = ({ leases }: Keyspace): GrantedLease[] =>
  [...entriesOf(leases)].map(([id, lease]) => shown(id, lease));

const shown = (lease: LeaseId, { ttl, renewal }: Lease): GrantedLease => ({ lease, ttl, renewal });

function request(space: Keyspace, operation: RequestOp, room: number): Applied {
  const flaw = flawOf(operation);
  if (flaw !== null) return refused(space, flaw);
  const path = operation.type === "txn" ? pathOf(space, operation) : null;
  const obstacle = obstacleTo(space, operation, path);
  if (obstacle !== null) return refused(space, obstacle);
  const bytes = bytesOfPuts(space, operation, path);
  if (bytes > 0 && bytes > room) return refused(space, "noSpace");
  if (path !== null && bytesOfRanges(space, operation, path, bytes, MAX_ANSWER_BYTES) > MAX_ANSWER_BYTES)
    return refused(space, "answerTooLarge");
  const events: KeyEvent[] = [];
  const response = perform({ space, events }, operation, path);
  if (events.length > 0) space.revision += 1;
  return { response, change: changeOf(space, { events }) };
}

const changeOf = (space: Keyspace, what: Partial<KeyspaceChange>): KeyspaceChange | null => {
  const change = { revision: space.revision, events: [], renewed: null, ended: null, ...what };
  return change.events.length > 0 || change.renewed !== null || change.ended !== null ? change : null;
};

function compacted(space: Keyspace, revision: number): Applied {
  if (revision <= space.compacted) return refused(space, "compacted");
  if (revision > space.revision) return refused(space, "futureRevision");
  compact(space, revision);
  return { response: { type: "done", revision: space.revision }, change: null };
}

function grant(space: Keyspace, lease: LeaseId, given: number, room: number): Applied {
  if (lease === NO_LEASE) return refused(space, "leaseNotFound");
  if (given > MAX_TTL) return refused(space, "ttlTooLarge");
  if (lookUp(space.leases, lease) !== null) return refused(space, "leaseExists");
  if (space.leases.size >= MAX_LEASES || room <= 0) return refused(space, "noSpace");
  const ttl = Math.max(MIN_TTL, given);
  enterLease(space, lease, ttl);
  return leased(space, shown(lease, lookUp(space.leases, lease) as Lease));
}

function leased(space: Keyspace, renewed: GrantedLease): Applied {
  const { revision } = space;
  return { response: { type: "lease", revision, ttl: renewed.ttl, keys: [] }, change: changeOf(space, { renewed }) };
}

function renew(space: Keyspace, id: LeaseId): Applied {
  const lease = lookUp(space.leases, id);
  if (lease === null) return refused(space, "leaseNotFound");
  space.renewals += 1;
  const renewed = { ...lease, renewal: space.renewals };
  enter(space.leases, id, renewed);
  return leased(space, shown(id, renewed));
}

function end(space: Keyspace, lease: LeaseId): Applied {
  if (lookUp(space.leases, lease) === null) return refused(space, "leaseNotFound");
  const events = endLease(space, lease);
  const { revision } = space;
  return { response: { type: "done", revision }, change: changeOf(space, { events, ended: lease }) };
}

const refused = ({ revision, compacted, trimmed = 0 }: Keyspace, code: KeyspaceErrorCode): Applied => ({
  response: { type: "refused", code, revision, compacted: Math.max(compacted, trimmed) },
  change: null,
});
