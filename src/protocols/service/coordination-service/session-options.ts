/** The options of a member's session and their defaults. */
import { boundMs, leaseOptions, requireLease } from "../../leases.ts";
import { count, type OptionsOf, optionTable, positive } from "../../options.ts";

export const sessionOptions = optionTable(
  "session",
  {
    ...leaseOptions(3_000, 750),
    retryMs: positive(500, "a command that is not applied after this time, up to twice as long, is proposed again"),
    idleMs: positive(
      10_000,
      "a session that is not used for this time is closed, unless it holds or waits for something",
    ),
    sweepMs: positive(500, "the time between two checks by the leader that all sessions are renewed"),
    maxPending: count(1_024, "how many operations may be not applied yet, and how many reads may wait"),
    maxPendingChars: count(67_108_864, "how many characters of JSON operations that are not applied yet may take"),
    maxUnderWay: count(4, "how many commands of this member are under way; later operations go together into the next"),
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
