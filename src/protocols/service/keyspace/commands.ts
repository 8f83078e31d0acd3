/** Commands and questions from clients of etcd. */
import { isOwn } from "./layout.ts";
import {
  flawOf,
  growthBy,
  LEASE,
  obstacleTo,
  pathOf,
  perform,
  range,
  responseBytes,
  revisionFault,
  simpleRequests,
  visitsBy,
} from "./requests.ts";
import {
  compact,
  endLease,
  enterLease,
  entryBytes,
  eventsFrom,
  hasEvents,
  type Keyspace,
  LEASE_BYTES,
  type Lease,
  NO_LEASE,
  sessionOfLease,
} from "./store.ts";
import { enter, entriesOf, lookUp } from "./table.ts";
import type {
  GrantedLease,
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
/**
 * The maximum size of the response to a transaction, in bytes. Every replica builds the response, and a transaction may
 * read all keys many times.
 */
export const MAX_RESPONSE_BYTES = 16 * 1_048_576;

/** The maximum number of entries and changes that a transaction may visit, in all its ranges together. */
const MAX_VISITS = 4_000_000;

/** The response to a command and the change that it made. */
export interface Applied {
  readonly response: KeyspaceResponse;
  /** The change. Null if nothing changed. */
  readonly change: KeyspaceChange | null;
}

/** Changes the keyspace in place. @param room by how many bytes the keyspace may grow */
export function applyCommand(space: Keyspace, command: KeyspaceCommand, room: number): Applied {
  switch (command.type) {
    case "put":
    case "delete":
    case "txn": {
      const code = ownFault(command);
      return code === null ? applyRequest(space, command, room) : refused(space, code);
    }
    case "compact":
      return compacted(space, command.revision);
    case "grant":
      return grant(space, command.lease, command.ttl, room);
    case "renew":
      return renew(space, command.lease);
    case "revoke":
      return end(space, command.lease);
    case "expire":
      return grantedIn(space, command.lease)?.renewal === command.renewal
        ? end(space, command.lease)
        : refused(space, "leaseNotFound");
  }
}

/** Answers a question. */
export function answerQuestion(space: Keyspace, question: KeyspaceQuestion): KeyspaceResponse {
  const { revision } = space;
  switch (question.type) {
    case "range": {
      const code = flawOf(question) ?? ownFault(question) ?? revisionFault(space, question);
      return code === null ? range({ space, events: [] }, question) : refused(space, code).response;
    }
    case "lease": {
      const lease = lookUp(space.leases, question.lease);
      if (lease === null || sessionOfLease(question.lease) !== null) return refused(space, "leaseNotFound").response;
      return { type: "lease", revision, ttl: lease.ttl, keys: question.keys ? lease.keys.filter(isOfClients) : [] };
    }
    case "leases":
      return { type: "leases", revision, leases: leasesIn(space) };
    case "size":
      return { type: "size", revision, bytes: space.bytes };
    case "events":
      if (isOwn(question.key)) return refused(space, "permissionDenied").response;
      if (!hasEvents(space, question, question.from)) return refused(space, "compacted").response;
      return { type: "events", revision, ...eventsFrom(space, question, question.from, question.maxBytes) };
  }
}

const isOfClients = (key: string): boolean => !isOwn(key);

/** Returns the error if the request concerns keys or leases of the service itself. Null if it does not. */
function ownFault(request: RequestOp): KeyspaceErrorCode | null {
  if (request.type !== "txn") {
    if (isOwn(request.key)) return "permissionDenied";
    return request.type === "put" && sessionOfLease(request.lease) !== null ? "leaseNotFound" : null;
  }
  if (request.compare.some(({ key }) => isOwn(key))) return "permissionDenied";
  for (const each of [...request.success, ...request.failure]) {
    const fault = ownFault(each);
    if (fault !== null) return fault;
  }
  return null;
}

/** Returns the leases that clients were granted. The leases of sessions are not among them. */
const leasesIn = ({ leases }: Keyspace): GrantedLease[] =>
  [...entriesOf(leases)].flatMap(([id, lease]) => (sessionOfLease(id) === null ? [shown(id, lease)] : []));

const shown = (lease: LeaseId, { ttl, renewal }: Lease): GrantedLease => ({ lease, ttl, renewal });

/** Applies a request of a client or of the service itself. */
export function applyRequest(space: Keyspace, operation: RequestOp, room: number): Applied {
  const flaw = flawOf(operation);
  if (flaw !== null) return refused(space, flaw);
  if (operation.type === "txn" && visitsBy(space, operation, MAX_VISITS) > MAX_VISITS)
    return refused(space, "answerTooLarge");
  const path = operation.type === "txn" ? pathOf(space, operation) : null;
  const obstacle = obstacleTo(space, operation, path);
  if (obstacle !== null) return refused(space, obstacle);
  const requests = simpleRequests(operation, path);
  if (!fits(space, requests, room)) return refused(space, "noSpace");
  if (path !== null && responseBytes(space, requests, MAX_RESPONSE_BYTES) > MAX_RESPONSE_BYTES)
    return refused(space, "answerTooLarge");
  const events: KeyEvent[] = [];
  const response = perform({ space, events }, operation, path);
  if (events.length > 0) space.revision += 1;
  return { response, change: changeOf(space, { events }) };
}

/** Returns whether the requests fit. For most puts, the previous value need not be looked up. */
function fits(space: Keyspace, requests: ReturnType<typeof simpleRequests>, room: number): boolean {
  const [first] = requests;
  if (requests.length === 1 && first?.type === "put" && !first.ignoreValue && entryBytes(first) <= room) return true;
  if (requests.every(({ type }) => type !== "put")) return true;
  return growthBy(space, requests) <= Math.max(0, room);
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
  if (lease === NO_LEASE || !LEASE.test(lease)) return refused(space, "leaseNotFound");
  if (given > MAX_TTL) return refused(space, "ttlTooLarge");
  if (sessionOfLease(lease) !== null || lookUp(space.leases, lease) !== null) return refused(space, "leaseExists");
  if (room < LEASE_BYTES) return refused(space, "noSpace");
  space.renewals += 1;
  return leased(space, shown(lease, enterLease(space, lease, Math.max(MIN_TTL, given), space.renewals)));
}

function leased(space: Keyspace, renewed: GrantedLease): Applied {
  const { revision } = space;
  return { response: { type: "lease", revision, ttl: renewed.ttl, keys: [] }, change: changeOf(space, { renewed }) };
}

/** Returns a lease that a client was granted. Null if there is none. */
const grantedIn = ({ leases }: Keyspace, id: LeaseId): Lease | null =>
  sessionOfLease(id) === null ? lookUp(leases, id) : null;

function renew(space: Keyspace, id: LeaseId): Applied {
  const lease = grantedIn(space, id);
  if (lease === null) return refused(space, "leaseNotFound");
  space.renewals += 1;
  const renewed = { ...lease, renewal: space.renewals };
  enter(space.leases, id, renewed);
  return leased(space, shown(id, renewed));
}

function end(space: Keyspace, lease: LeaseId): Applied {
  if (grantedIn(space, lease) === null) return refused(space, "leaseNotFound");
  const events = endLease(space, lease);
  const { revision } = space;
  return { response: { type: "done", revision }, change: changeOf(space, { events, ended: lease }) };
}

const refused = ({ revision, compacted, trimmed }: Keyspace, code: KeyspaceErrorCode): Applied => ({
  response: { type: "refused", code, revision, compacted: Math.max(compacted, trimmed) },
  change: null,
});
