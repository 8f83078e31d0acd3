/**
 * Heartbeats (§5.2), in rounds. The next round begins when a quorum has answered this one, and then the leader knows that
 * nobody else was elected before it began: reads and leases rest on that. Without an answer a round is sent again.
 */
import type { Context } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import { considerHeir } from "./leadership-transfer.ts";
import { isAwaited } from "./log-replication.ts";
import { isQuorum } from "./membership-changes.ts";
import { leaseMs, type RaftOptions } from "./options.ts";
import { becomeFollower } from "./server-states.ts";
import type { Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

export function beginRound(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  takeLease(role, ctx); // If it was a change of members that made those that had answered a quorum.
  role.round += 1;
  role.answered = [];
  if (options.leaseReads) {
    role.isTimely = true;
    ctx.setTimer(leaseTimer(role.round), leaseMs(options));
  }
  sendHeartbeats(state, role, ctx);
}

/**
 * A quorum has answered the round. Its lease takes the place of the lease of the round before, unless the answers took so long that the
 * timer of the round has expired: then the promises may have expired as well.
 */
export function takeLease(role: Leader, ctx: Ctx): void {
  if (!role.mayLease || !role.isTimely || role.leaseRound === role.round) return;
  ctx.cancelTimer(leaseTimer(role.round - 1));
  role.leaseRound = role.round;
}

/** The timer of the rounds of this parity has expired. The lease of a later round that was answered is not concerned. */
export function endLease(role: Leader, parity: number): void {
  if (role.round % 2 === parity) role.isTimely = false;
  if (role.leaseRound !== null && role.leaseRound % 2 === parity) role.leaseRound = null;
}

/** Every `heartbeatMs`, however many rounds reads begin in between: what has been lost is sent again then. */
export function heartbeat(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  ctx.setTimer("heartbeat", options.heartbeatMs);
  considerHeir(state, role, options, ctx);
  for (const follower of Object.values(role.followers)) follower.isOverdue = isAwaited(follower);
  if (isConfirmed(state, role, ctx)) beginRound(state, role, options, ctx);
  else sendHeartbeats(state, role, ctx);
}

export function isConfirmed({ configuration }: State, { answered }: Leader, ctx: Ctx): boolean {
  return isQuorum(configuration, [ctx.self, ...answered]);
}

/** They carry no entries, so a follower may commit no more of its log than is known to be the leader's. */
function sendHeartbeats(state: State, role: Leader, ctx: Ctx): void {
  const { term, commitIndex } = state;
  for (const node of ctx.peers) {
    const follower = role.followers[node];
    if (follower === undefined) continue;
    const known = Math.min(commitIndex, follower.match);
    ctx.send(node, { type: "heartbeat", term, round: role.round, commitIndex: known });
  }
}

/** Thesis §6.2: a leader that has heard from no quorum for an election time-out leads nobody any more. */
export function checkQuorum(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const active = ctx.peers.filter((node) => role.followers[node]?.isActive === true);
  if (!isQuorum(state.configuration, [ctx.self, ...active])) return becomeFollower(state, null, options, ctx);
  for (const follower of Object.values(role.followers)) follower.isActive = false;
  ctx.setTimer("quorum", options.maxElectionMs);
}
