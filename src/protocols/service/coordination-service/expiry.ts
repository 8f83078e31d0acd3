/**
 * Expiry: the node that leads has a session expire when it has not heard of it for longer than its member can be certain of it. It
 * counts its own sweeps since it saw where in the log the session was last heard of, beginning anew whenever it comes to lead. So
 * members have a whole lease to reach a new leader; a count that is wrong costs a session, never a lock that is held twice.
 */
import type { Context } from "../../../core/protocol.ts";
import type { Proposal } from "./operations.ts";
import type { Seen } from "./replica.ts";
import { type SessionOptions, sweepsOf } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

export function watchSessions(state: State, isLeader: boolean, { sweepMs }: SessionOptions, ctx: Ctx): void {
  if (!isLeader) {
    state.watched = null;
    return ctx.cancelTimer("sweep");
  }
  state.watched = [];
  ctx.setTimer("sweep", sweepMs);
}

/** @param propose puts it to the log; what is not applied is found again by the next sweep. */
export function sweep(
  state: State,
  sessions: readonly Seen[],
  options: SessionOptions,
  propose: (proposal: Proposal) => void,
): void {
  const { watched } = state;
  if (watched === null) return;
  state.watched = sessions.map(({ session, seen, ttlMs }) => {
    const before = watched.find((each) => each.session === session);
    const sweeps = before?.seen === seen ? before.sweeps + 1 : 0;
    if (sweeps >= sweepsOf(ttlMs, options)) propose({ type: "expire", session, seen });
    return { session, seen, sweeps };
  });
}
