/**
 * Sessions: a member has one at a time, and each of its operations is applied once. Ongaro & Ousterhout 2014, §8, with many operations
 * under way: they are applied in the order of their numbers, and replies are kept until the member says that it has them.
 *
 * A session ends by an entry of the log and never by a guess: the member closes it, opens its next one, or a leader has it expire.
 * What it held and waited for is released in the same entry.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { leaveBarriers, waitsAtBarrier } from "./barriers.ts";
import { holdsGrants, releaseGrants } from "./grants.ts";
import { holdsKeys, releaseKeys } from "./keys.ts";
import type { EndReason, SessionId } from "./operations.ts";
import { holdsItems, releaseItems } from "./queues.ts";
import { type Applying, type Data, nextRevision, type Session, sessionNamed } from "./state.ts";

export const sessionOf = ({ sessions }: Data, member: NodeId): Session | null =>
  sessions.find((session) => session.member === member) ?? null;

/** Ends the session that the member had before, as that life is over. */
export function openSession(on: Applying, member: NodeId, life: number, ttlMs: number, seen: number): Session {
  const { data, tell } = on;
  const before = sessionOf(data, member);
  if (before !== null) endSession(on, before, "replaced");
  data.lives[member] = life;
  const session: Session = { id: nextRevision(data), member, life, ttlMs, seen, applied: 0, replies: [] };
  data.sessions.push(session);
  tell({ type: "opened", session: session.id, member, life });
  return session;
}

export function endSession(on: Applying, session: Session, reason: EndReason): void {
  const { data, tell } = on;
  const { id, member, life } = session;
  data.sessions = data.sessions.filter((other) => other !== session);
  nextRevision(data);
  tell({ type: "ended", session: id, member, life, reason });
  releaseKeys(on, id);
  releaseGrants(on, id);
  releaseItems(on, id);
  leaveBarriers(on, id);
}

/** A keep-alive that stands in the log after the place that the leader had seen wins. @returns the session, if it has ended. */
export function expireSession(on: Applying, id: SessionId, seen: number): Session | null {
  const session = sessionNamed(on.data, id);
  if (session?.seen !== seen) return null;
  endSession(on, session, "expired");
  return session;
}

/** Whether others may be waiting for it. */
export const isBusy = (data: Data, id: SessionId): boolean =>
  holdsGrants(data, id) || holdsItems(data, id) || holdsKeys(data, id) || waitsAtBarrier(data, id);

/** Replies that the member has are dropped. */
export function dropAcknowledged(session: Session, acknowledged: number): void {
  const first = session.applied - session.replies.length + 1;
  if (acknowledged >= first) session.replies.splice(0, acknowledged - first + 1);
}
