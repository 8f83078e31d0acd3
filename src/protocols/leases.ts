/**
 * Leases without a clock that anybody shares. The leader arms a timer when it *sends* a round of renewals; a node that
 * confirms the round binds itself when it *receives* it, so later, for a time that is longer by what clocks may drift. So
 * the leader's timer runs out first, however long the messages travel.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { requirePositive } from "./options.ts";

/** Two timers take turns, so that the certainty of one round lasts while the next is on its way. */
export type LeaseTimer = "leaseEven" | "leaseOdd";

export const leaseTimer = (round: number): LeaseTimer => (round % 2 === 0 ? "leaseEven" : "leaseOdd");

/**
 * How long a node that confirms is bound. A clock may be slow or fast by `drift`, a share of its speed: a lease on the
 * slowest clock ends no later than this on the fastest.
 */
export const boundMs = (leaseMs: number, drift: number): number => Math.ceil((leaseMs * (1 + drift)) / (1 - drift));

export interface LeaseOptions {
  leaseMs: number;
  renewMs: number;
  /** By how much the speed of clocks may differ from the right one, as a share of it. */
  drift: number;
}

/** @throws UsageError */
export function requireLease(protocol: string, { leaseMs, renewMs, drift }: LeaseOptions): void {
  const refuse = (name: string, wanted: string, got: number): never => {
    throw new UsageError("bad-option", unexpected(`${protocol}.${name}`, wanted, got));
  };
  requirePositive(`${protocol}.leaseMs`, leaseMs);
  requirePositive(`${protocol}.renewMs`, renewMs);
  if (renewMs >= leaseMs) refuse("renewMs", `a number below leaseMs, which is ${leaseMs}`, renewMs);
  if (!(drift >= 0 && drift < 1)) refuse("drift", "a number from 0 up to, not including, 1", drift);
}
