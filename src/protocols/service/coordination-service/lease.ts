/**
 * The member's side of the lease of its session. A round begins, and its timer is armed, when a command is proposed for the first
 * time; it is confirmed when this node's replica applies a command of that round. So it is worth less than what whoever looks at
 * the log allows the member: they count from when they applied the command, which is later.
 */
import type { Context } from "../../../core/protocol.ts";
import { type LeaseTimer, leaseTimer } from "../../leases.ts";
import type { SessionOptions } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

export const emptyLease = (): State["lease"] => ({ round: 0, confirmed: 0, running: [], isDue: true });

/** With the next command, if the last one was confirmed, or can be no more. A round that is not confirmed is proposed again as it is. */
export function beginRound({ lease }: State, { leaseMs }: SessionOptions, ctx: Ctx): void {
  const isOver = !lease.running.includes(leaseTimer(lease.round));
  if (!isOver && !(lease.isDue && lease.confirmed === lease.round)) return;
  lease.isDue = false;
  lease.round += 1;
  const timer = leaseTimer(lease.round);
  ctx.setTimer(timer, leaseMs);
  lease.running = [timer, ...lease.running.filter((other) => other !== timer)].sort();
}

/** The certainty of this round takes the place of that of the round before. */
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

/** @returns whether the session was certain by this timer alone. */
export function runOut({ lease }: State, timer: LeaseTimer): boolean {
  lease.running = lease.running.filter((other) => other !== timer);
  return lease.confirmed > 0 && leaseTimer(lease.confirmed) === timer;
}

export function stopLease(state: State, ctx: Ctx): void {
  for (const timer of [...state.lease.running]) stop(state, timer, ctx);
  state.lease = emptyLease();
}

/** Whether the member may rely on what its session holds. */
export const isCertain = ({ lease }: State): boolean =>
  lease.confirmed > 0 && lease.running.includes(leaseTimer(lease.confirmed));
