/** The options of a member's session and their defaults. */
import { boundMs, leaseOptions, requireLease } from "../../leases.ts";
import { count, type OptionsOf, optionTable, positive } from "../../options.ts";

/** The option table of a member's session. */
export const sessionOptions = optionTable(
  "session",
  {
    ...leaseOptions(3_000, 750),
    retryMs: positive(
      500,
      "how long before a command that has not been applied is proposed again; the actual time is random, up to twice as long",
    ),
    idleMs: positive(10_000, "a session is closed after this time without use, unless it holds or waits for something"),
    sweepMs: positive(500, "how often the leader checks that all sessions have been renewed"),
    maxPending: count(1_024, "the maximum number of pending operations, and also of waiting reads"),
    maxPendingChars: count(67_108_864, "the maximum size of pending operations, in characters of JSON"),
    maxUnderWay: count(
      4,
      "the maximum number of commands in flight from this member; later operations are batched into the next one",
    ),
  },
  requireLease,
);

/** Options of a member's session. */
export type SessionOptions = OptionsOf<typeof sessionOptions>;

/**
 * Returns how many consecutive sweeps without a sign of life make a session expire. By then, provided that all clocks
 * stay within `drift`, the member must know that its lease is over.
 */
export const sweepsOf = (ttlMs: number, { drift, sweepMs }: SessionOptions): number =>
  Math.ceil(boundMs(ttlMs, drift) / sweepMs);
