/**
 * Leases without a clock that anybody shares. The leader arms a timer when it *sends* a round of renewals; a node that
 * confirms the round binds itself when it *receives* it, so later, for a time that is longer by what clocks may drift. So
 * the leader's timer runs out first, however long the messages travel.
 */
import { real } from "../core/shape.ts";
import { option, positive, type Refuse, type ValuesOf } from "./options.ts";

/** Two timers take turns, so that the certainty of one round lasts while the next is on its way. */
export type LeaseTimer = "leaseEven" | "leaseOdd";

export const leaseTimer = (round: number): LeaseTimer => (round % 2 === 0 ? "leaseEven" : "leaseOdd");

/**
 * How long a node that confirms is bound. A clock may be slow or fast by `drift`, a share of its speed: a lease on the
 * slowest clock ends no later than this on the fastest.
 */
export const boundMs = (leaseMs: number, drift: number): number => Math.ceil((leaseMs * (1 + drift)) / (1 - drift));

/** The options of an algorithm with leases. */
export const leaseOptions = (leaseMs: number, renewMs: number) => ({
  leaseMs: positive(leaseMs, "how long a leader or holder is certain after it has asked for or renewed its lease"),
  renewMs: positive(renewMs, "the time between renewals, less than `leaseMs`"),
  drift: option(real, 0.05, "the share of its speed by which a clock may be wrong", { min: 0, below: 1 }),
});

export type LeaseOptions = ValuesOf<ReturnType<typeof leaseOptions>>;

/** A lease is renewed before it ends. @throws UsageError */
export function requireLease({ leaseMs, renewMs }: LeaseOptions, refuse: Refuse<LeaseOptions>): void {
  if (renewMs >= leaseMs) refuse("renewMs", `a number below leaseMs, which is ${leaseMs}`);
}
