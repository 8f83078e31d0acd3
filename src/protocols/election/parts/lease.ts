/**
 * Leases without a clock that anybody shares. Whoever leads arms a timer when it *sends* a round of renewals; whoever
 * confirms the round binds itself when it *receives* it, so later, for a time that is longer by what clocks may drift. So
 * the leader's timer runs out first, however long the messages travel.
 */

/** Two timers take turns, so that the certainty of one round lasts while the next is on its way. */
export type LeaseTimer = "leaseEven" | "leaseOdd";

export const leaseTimer = (round: number): LeaseTimer => (round % 2 === 0 ? "leaseEven" : "leaseOdd");

/**
 * How long whoever confirms is bound. A clock may be slow or fast by `drift`, a share of its speed: a lease on the
 * slowest clock ends no later than this on the fastest.
 */
export const boundMs = (leaseMs: number, drift: number): number => Math.ceil((leaseMs * (1 + drift)) / (1 - drift));
