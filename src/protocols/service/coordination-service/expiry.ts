/**
 * Session expiry. The leader expires a session that has been silent for longer than its member can rely on the lease.
 * Every node counts its own sweeps since each session's latest sign of life in the log, so a new leader does not start
 * counting from zero. A member that could not reach a leader for that long has, by its own clock, already lost its
 * session. A wrong count can end a session too early, but never gives a lock two holders, because the proposal names
 * the keep-alive that started the count.
 */
import type { Proposal } from "./operations.ts";
import type { Seen } from "./replica.ts";
import { type SessionOptions, sweepsOf } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];

/**
 * Counts one more sweep for each session, and expires sessions that have been silent for too long. @param propose puts
 * a proposal in the log; the next sweep repeats proposals that were not applied. Null if this node is not the leader
 */
export function sweep(
  state: State,
  sessions: readonly Seen[],
  options: SessionOptions,
  propose: ((proposal: Proposal) => void) | null,
): void {
  const { watched } = state;
  state.watched = sessions.map(({ session, seen, ttlMs }) => {
    const before = watched.find((each) => each.session === session);
    const sweeps = before?.seen === seen ? before.sweeps + 1 : 0;
    if (sweeps >= sweepsOf(ttlMs, options)) propose?.({ type: "expire", session, seen });
    return { session, seen, sweeps };
  });
}
