/**
 * Functions for leases without a shared clock. The leader starts a timer when it *sends* a round of renewals. A node
 * that confirms the round is bound from when it *receives* the round, which is later, and for a longer time, which
 * allows for clock drift. The leader's timer therefore expires first, no matter how long messages take.
 */
import { real } from "../core/shape.ts";
import { option, positive, type Refuse, type ValuesOf } from "./options.ts";

/** Two timers alternate, so that one round's lease keeps running while the next round is in progress. */
export type LeaseTimer = "leaseEven" | "leaseOdd";

/** Returns the timer for a round. Consecutive rounds use different timers. */
export const leaseTimer = (round: number): LeaseTimer => (round % 2 === 0 ? "leaseEven" : "leaseOdd");

/**
 * Returns how long a node that confirms is bound. A clock may run too slow or too fast by `drift`, a fraction of its
 * speed. A lease timed by the slowest clock ends no later than this duration timed by the fastest clock.
 */
export const boundMs = (leaseMs: number, drift: number): number => Math.ceil((leaseMs * (1 + drift)) / (1 - drift));

/** Declares the options for an algorithm that uses leases. */
export const leaseOptions = (leaseMs: number, renewMs: number) => ({
  leaseMs: positive(leaseMs, "the duration of a lease, measured from the request to acquire or renew it"),
  renewMs: positive(renewMs, "the renewal interval, less than `leaseMs`"),
  drift: option(real, 0.05, "the maximum relative error in a clock's speed", { min: 0, below: 1 }),
});

/** The values of the lease options. */
export type LeaseOptions = ValuesOf<ReturnType<typeof leaseOptions>>;

/** Checks that leases are renewed before they expire. @throws UsageError if `renewMs` is not less than `leaseMs`. */
export function requireLease({ leaseMs, renewMs }: LeaseOptions, refuse: Refuse<LeaseOptions>): void {
  if (renewMs >= leaseMs) refuse("renewMs", `a number below leaseMs, which is ${leaseMs}`);
}
