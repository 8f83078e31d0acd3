/**
 * Expiry: the node that leads has a session expire when it has not heard of it for longer than its member can be certain of it. Every
 * node counts its own sweeps since it saw where in the log the session was last heard of, so a new leader need not begin to count:
 * a member that could reach no leader for so long has lost its session by its own clock. A count that is wrong costs a session, never
 * a lock that is held twice: what is proposed names the keep-alive that was counted from.
 */
import type { Proposal } from "./operations.ts";
import type { Seen } from "./replica.ts";
import { type SessionOptions, sweepsOf } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];

/** @param propose puts it to the log; what is not applied is found again by the next sweep. Null where this node does not lead. */
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
