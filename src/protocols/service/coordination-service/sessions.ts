/**
 * Sessions. A member has one session at a time, and each of its operations is applied only once. As in Ongaro &
 * Ousterhout 2014, §8, except that many operations can be in progress: they are applied in the order of their numbers,
 * and replies are retained until the member acknowledges them.
 *
 * Only a log entry ends a session: the member closes the session or opens its next one, or a leader expires it. The
 * same entry releases everything that the session held or waited for.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { endLease, enterLease, leaseOf } from "../keyspace/store.ts";
import { lookUp } from "../keyspace/table.ts";
import { leaveBarriers, waitsAtBarrier } from "./barriers.ts";
import { holdsGrants, releaseGrants } from "./grants.ts";
import { isInGroup, leaveGroups } from "./groups.ts";
import { note } from "./keys.ts";
import { dropParts } from "./large-operations.ts";
import { type EndReason, isClient, type SessionId } from "./operations.ts";
import { holdsItems, releaseItems } from "./queues.ts";
import { type Applying, type Data, type Session, sessionNamed } from "./state.ts";

/** The number of clients whose lives are remembered, unless more clients have a session. */
const MAX_CLIENTS = 1_000;

/** Returns a member's session. Null if it has none. */
export const sessionOf = ({ sessions }: Data, member: NodeId): Session | null =>
  sessions.find((session) => session.member === member) ?? null;

/** Opens a session, which is also a lease, and ends the member's previous one. */
export function openSession(on: Applying, member: NodeId, life: number, ttlMs: number, seen: number): Session {
  const { data, tell } = on;
  const before = sessionOf(data, member);
  if (before !== null) endSession(on, before, "replaced");
  data.lives[member] = life;
  forgetClients(data);
  data.begun += 1;
  const session: Session = { id: data.begun, member, life, ttlMs, seen, applied: 0, replies: [], staged: null };
  data.sessions.push(session);
  enterLease(data.keyspace, leaseOf(session.id), Math.ceil(ttlMs / 1_000), 0);
  tell({ type: "opened", session: session.id, member, life });
  return session;
}

/** Ends a session and releases everything that it holds. */
export function endSession(on: Applying, session: Session, reason: EndReason): void {
  const { data, tell } = on;
  const { id, member, life } = session;
  data.sessions = data.sessions.filter((other) => other !== session);
  dropParts(data, session);
  tell({ type: "ended", session: id, member, life, reason });
  const events = endLease(data.keyspace, leaseOf(id));
  if (events.length > 0) note(on, { revision: data.keyspace.revision, events, renewed: null, ended: null });
  releaseGrants(on, id);
  releaseItems(on, id);
  leaveBarriers(on, id);
  leaveGroups(on, id);
}

/** Deletes the lives of the oldest clients without a session if there are too many. */
function forgetClients(data: Data): void {
  const clients = Object.keys(data.lives).map(Number).filter(isClient);
  let tooMany = clients.length - MAX_CLIENTS;
  if (tooMany <= 0) return;
  const busy = new Set(data.sessions.map(({ member }) => member));
  for (const client of clients.sort((a, b) => a - b)) {
    if (tooMany <= 0) return;
    if (busy.has(client)) continue;
    delete data.lives[client];
    data.forgottenClients = Math.max(data.forgottenClients, client);
    tooMany -= 1;
  }
}

/**
 * Returns whether the client's life has been deleted. If so, its operations are not applied, because they may already
 * have been applied before, and the client must take a new id.
 */
export const isForgotten = ({ lives, forgottenClients }: Data, member: NodeId): boolean =>
  isClient(member) && member <= forgottenClients && lives[member] === undefined;

/**
 * Expires a session, unless the log contains a later keep-alive than the one that the leader saw. @returns the session
 * if it has ended
 */
export function expireSession(on: Applying, id: SessionId, seen: number): Session | null {
  const session = sessionNamed(on.data, id);
  if (session?.seen !== seen) return null;
  endSession(on, session, "expired");
  return session;
}

/** Returns whether the session holds or is waiting for something. */
export const isBusy = (data: Data, id: SessionId): boolean =>
  holdsGrants(data, id) ||
  holdsItems(data, id) ||
  lookUp(data.keyspace.leases, leaseOf(id))?.keys.length !== 0 ||
  waitsAtBarrier(data, id) ||
  isInGroup(data, id);

/** Drops the replies that the member has received. */
export function dropAcknowledged(session: Session, acknowledged: number): void {
  const first = session.applied - session.replies.length + 1;
  if (acknowledged >= first) session.replies.splice(0, acknowledged - first + 1);
}
