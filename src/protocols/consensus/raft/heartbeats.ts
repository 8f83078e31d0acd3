/**
 * Heartbeats (§5.2), in rounds. A new round begins when a quorum has answered this one. The leader then knows that no
 * other node was elected before the round began, which reads and leases depend on. An unanswered round is sent again.
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
 * Called when a quorum has answered the round. The round's lease replaces the lease of the round before. If the timer
 * of the round has expired, the answers took too long: the followers' promises may have expired as well.
 */
export function takeLease(role: Leader, ctx: Ctx): void {
  if (!role.mayLease || !role.isTimely || role.leaseRound === role.round) return;
  ctx.cancelTimer(leaseTimer(role.round - 1));
  role.leaseRound = role.round;
}

/**
 * Handles the expiry of the lease timer for rounds of this parity. The lease of a later answered round is not affected.
 */
export function endLease(role: Leader, parity: number): void {
  if (role.round % 2 === parity) role.isTimely = false;
  if (role.leaseRound !== null && role.leaseRound % 2 === parity) role.leaseRound = null;
}

/**
 * Runs every `heartbeatMs`, no matter how many rounds reads begin in between. It detects lost messages, which are sent
 * again.
 */
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

/**
 * Heartbeats carry no entries, so a follower may commit only the part of its log that is known to equal the leader's.
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

/** Thesis §6.2: a leader that no quorum has answered for an election timeout steps down. */
export function checkQuorum(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const active = ctx.peers.filter((node) => role.followers[node]?.isActive === true);
  if (!isQuorum(state.configuration, [ctx.self, ...active])) return becomeFollower(state, null, options, ctx);
  for (const follower of Object.values(role.followers)) follower.isActive = false;
  ctx.setTimer("quorum", options.maxElectionMs);
}
