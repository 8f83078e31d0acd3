/**
 * Heartbeats (§5.2), in rounds. A new round begins when a quorum has answered the current one. The leader then knows
 * that no other node had been elected when the round began. Reads and leases depend on that. An unanswered round is
 * resent.
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

/** Begins a round of heartbeats. */
export function beginRound(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  takeLease(role, ctx); // A membership change may have turned the nodes that answered into a quorum.
  role.round += 1;
  role.answered = [];
  if (options.leaseReads) {
    role.isTimely = true;
    ctx.setTimer(leaseTimer(role.round), leaseMs(options));
  }
  sendHeartbeats(state, role, ctx);
}

/**
 * Replaces the lease of the previous round with the lease of this one. Call when a quorum has answered the round. If
 * the round's timer has expired, the answers took too long, and the followers' promises may also have expired.
 */
export function takeLease(role: Leader, ctx: Ctx): void {
  if (!role.mayLease || !role.isTimely || role.leaseRound === role.round) return;
  ctx.cancelTimer(leaseTimer(role.round - 1));
  role.leaseRound = role.round;
}

/** Handles the expiry of the lease timer for rounds of this parity. A lease from a later round is not affected. */
export function endLease(role: Leader, parity: number): void {
  if (role.round % 2 === parity) role.isTimely = false;
  if (role.leaseRound !== null && role.leaseRound % 2 === parity) role.leaseRound = null;
}

/**
 * Sends a heartbeat and detects lost messages, which are then resent. Runs every `heartbeatMs`, even if reads begin
 * rounds in between.
 */
export function heartbeat(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  ctx.setTimer("heartbeat", options.heartbeatMs);
  considerHeir(state, role, options, ctx);
  for (const follower of Object.values(role.followers)) follower.isOverdue = isAwaited(follower);
  if (isConfirmed(state, role, ctx)) beginRound(state, role, options, ctx);
  else sendHeartbeats(state, role, ctx);
}

/** Returns whether a quorum has answered the current round. */
export function isConfirmed({ configuration }: State, { answered }: Leader, ctx: Ctx): boolean {
  return isQuorum(configuration, [ctx.self, ...answered]);
}

/**
 * Sends the heartbeats of the round. They carry no entries, so a follower may commit only the part of its log that is
 * known to equal the leader's.
 */
function sendHeartbeats(state: State, role: Leader, ctx: Ctx): void {
  const { term, commitIndex } = state;
  for (const node of ctx.peers) {
    const follower = role.followers[node];
    if (follower === undefined) continue;
    const known = Math.min(commitIndex, follower.match);
    ctx.send(node, { type: "heartbeat", term, round: role.round, commitIndex: known });
  }
}

/** Steps down if no quorum has answered this leader for an election timeout (thesis §6.2). */
export function checkQuorum(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const active = ctx.peers.filter((node) => role.followers[node]?.isActive === true);
  if (!isQuorum(state.configuration, [ctx.self, ...active])) return becomeFollower(state, null, options, ctx);
  for (const follower of Object.values(role.followers)) follower.isActive = false;
  ctx.setTimer("quorum", options.maxElectionMs);
}
