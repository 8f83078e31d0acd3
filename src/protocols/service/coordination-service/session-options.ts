/** The options of a member's session and their defaults. */
import { boundMs, leaseOptions, requireLease } from "../../leases.ts";
import { count, type OptionsOf, optionTable, positive } from "../../options.ts";

export const sessionOptions = optionTable(
  "session",
  {
    ...leaseOptions(3_000, 750),
    retryMs: positive(
      500,
      "a command that is not applied is proposed again after a random time between this and twice this",
    ),
    idleMs: positive(10_000, "a session is closed after this time without use, unless it holds or waits for something"),
    sweepMs: positive(500, "how often the leader checks that all sessions are renewed"),
    maxPending: count(1_024, "the maximum number of pending operations, and of waiting reads"),
    maxPendingChars: count(67_108_864, "the maximum size of pending operations, in characters of JSON"),
    maxUnderWay: count(
      4,
      "the maximum number of commands in flight from this member; later operations are batched into the next",
    ),
  },
  requireLease,
);

export type SessionOptions = OptionsOf<typeof sessionOptions>;

/**
 * @returns the number of consecutive sweeps without a sign of life until the member must know that its lease is over,
 * with any clock within `drift`.
 */
export const sweepsOf = (ttlMs: number, { drift, sweepMs }: SessionOptions): number =>
  Math.ceil(boundMs(ttlMs, drift) / sweepMs);
