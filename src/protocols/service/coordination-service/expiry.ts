/**
 * Expiry: the leader expires a session that has been silent for longer than its member can rely on its lease. Every
 * node counts its own sweeps since a session's latest sign of life in the log, so a new leader need not start counting.
 * A member that could not reach a leader for that long has lost its session by its own clock. A wrong count costs a
 * session, but never gives a lock two holders: the proposal names the keep-alive that the count started from.
 */
import type { Proposal } from "./operations.ts";
import type { Seen } from "./replica.ts";
import { type SessionOptions, sweepsOf } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];

/**
 * @param propose puts a proposal in the log. The next sweep repeats one that was not applied. Null if this node does
 * not lead.
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
