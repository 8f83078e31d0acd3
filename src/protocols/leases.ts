/**
 * Leases without a shared clock. The leader arms a timer when it *sends* a round of renewals. A node that confirms the
 * round
 * binds itself when it *receives* it, hence later, for a time that is longer by the possible clock drift. So the leader's
 * timer
 * expires first, no matter how long the messages travel.
 */
import { real } from "../core/shape.ts";
import { option, positive, type Refuse, type ValuesOf } from "./options.ts";

/** Two timers alternate, so that the lease of one round lasts while the next round is in progress. */
export type LeaseTimer = "leaseEven" | "leaseOdd";

export const leaseTimer = (round: number): LeaseTimer => (round % 2 === 0 ? "leaseEven" : "leaseOdd");

/**
 * How long a confirming node is bound. A clock may run slow or fast by `drift`, a fraction of its speed. A lease on the
 * slowest clock ends no later than this duration on the fastest.
 */
export const boundMs = (leaseMs: number, drift: number): number => Math.ceil((leaseMs * (1 + drift)) / (1 - drift));

/** The options of an algorithm with leases. */
export const leaseOptions = (leaseMs: number, renewMs: number) => ({
  leaseMs: positive(leaseMs, "the duration of a lease, counted from the request for it or its renewal"),
  renewMs: positive(renewMs, "the renewal interval, less than `leaseMs`"),
  drift: option(real, 0.05, "the maximum relative error in the speed of a clock", { min: 0, below: 1 }),
});

/** The values of the lease options. */
export type LeaseOptions = ValuesOf<ReturnType<typeof leaseOptions>>;

/** Checks that leases are renewed before they end. @throws UsageError if `renewMs` is not less than `leaseMs`. */
export function requireLease({ leaseMs, renewMs }: LeaseOptions, refuse: Refuse<LeaseOptions>): void {
  if (renewMs >= leaseMs) refuse("renewMs", `a number below leaseMs, which is ${leaseMs}`);
}
