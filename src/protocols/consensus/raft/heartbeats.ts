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
  role.round += 1;
  role.answered = [];
  if (options.leaseReads) ctx.setTimer(leaseTimer(role.round), leaseMs(options));
  sendHeartbeats(state, role, ctx);
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
