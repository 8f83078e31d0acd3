/**
 * The member's side of its session's lease. A round begins, and its timer starts, when one of its commands is first
 * proposed. The round is confirmed when this node's replica applies a command from that round. The member therefore
 * always assumes a shorter lease than the leader, which counts from when it applied the command.
 */
import type { Context } from "../../../core/protocol.ts";
import { type LeaseTimer, leaseTimer } from "../../leases.ts";
import type { SessionOptions } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** Returns a lease without rounds. */
export const emptyLease = (): State["lease"] => ({ round: 0, confirmed: 0, running: [], isDue: true });

/**
 * Begins a round with the next command if the last round has expired, or is confirmed and due for renewal. An
 * unconfirmed round is proposed again unchanged.
 */
export function beginRound({ lease }: State, { leaseMs }: SessionOptions, ctx: Ctx): void {
  const isOver = !lease.running.includes(leaseTimer(lease.round));
  if (!isOver && !(lease.isDue && lease.confirmed === lease.round)) return;
  lease.isDue = false;
  lease.round += 1;
  const timer = leaseTimer(lease.round);
  ctx.setTimer(timer, leaseMs);
  lease.running = [timer, ...lease.running.filter((other) => other !== timer)].sort();
}

/** Replaces the previous round's lease with this round's. */
export function confirmRound(state: State, round: number, ctx: Ctx): void {
  const { lease, session } = state;
  if (session === null || round <= lease.confirmed || !isInTime(state, round)) return;
  lease.confirmed = round;
  if (round === lease.round) stop(state, leaseTimer(round - 1), ctx);
  ctx.emit({ type: "confirmed", session }, leaseTimer(round));
}

const isInTime = ({ lease }: State, round: number): boolean =>
  round > lease.round - 2 && round <= lease.round && lease.running.includes(leaseTimer(round));

function stop({ lease }: State, timer: LeaseTimer, ctx: Ctx): void {
  ctx.cancelTimer(timer);
  lease.running = lease.running.filter((other) => other !== timer);
}

/**
 * Handles the expiry of a lease timer. Returns whether the lease is over, which is the case if the timer belongs to the
 * last confirmed round.
 */
export function runOut({ lease }: State, timer: LeaseTimer): boolean {
  lease.running = lease.running.filter((other) => other !== timer);
  return lease.confirmed > 0 && leaseTimer(lease.confirmed) === timer;
}

/** Stops all the lease's timers. */
export function stopLease(state: State, ctx: Ctx): void {
  for (const timer of [...state.lease.running]) stop(state, timer, ctx);
  state.lease = emptyLease();
}

/** Returns whether the member may rely on its session's grants. */
export const isCertain = ({ lease }: State): boolean =>
  lease.confirmed > 0 && lease.running.includes(leaseTimer(lease.confirmed));
