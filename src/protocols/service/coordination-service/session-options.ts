/** What a member's session can be told, and what makes sense. */
import { natural, real, struct } from "../../../core/shape.ts";
import { boundMs, requireLease } from "../../leases.ts";
import { requirePositive, settle } from "../../options.ts";

export interface SessionOptions {
  /** So long after a keep-alive was proposed its member is certain of its session, once it has been applied. */
  leaseMs: number;
  /** After so long the next one is proposed. */
  renewMs: number;
  /** By how much the speed of clocks may differ from the right one, as a share of it. */
  drift: number;
  /** What has not been applied after this time, or up to twice as much, is proposed again. */
  retryMs: number;
  /** A session that is not used for so long is closed, unless it holds or waits for something. */
  idleMs: number;
  /** A leader looks that often whether all sessions have been heard of. */
  sweepMs: number;
  /** Operations that are not applied, and as many reads that wait. */
  maxPending: number;
  /** Of the operations that are not applied, as JSON. */
  maxPendingChars: number;
  /** Commands of this member that are under way; what comes meanwhile goes together into the next. */
  maxUnderWay: number;
}

const defaults: SessionOptions = {
  leaseMs: 3_000,
  renewMs: 750,
  drift: 0.05,
  retryMs: 500,
  idleMs: 10_000,
  sweepMs: 500,
  maxPending: 1_024,
  maxPendingChars: 67_108_864,
  maxUnderWay: 4,
};

const optionShape = struct<SessionOptions>({
  leaseMs: real,
  renewMs: real,
  drift: real,
  retryMs: real,
  idleMs: real,
  sweepMs: real,
  maxPending: natural,
  maxPendingChars: natural,
  maxUnderWay: natural,
});

/** @throws UsageError */
export function settled(given: Partial<SessionOptions> | undefined): SessionOptions {
  const options = settle(defaults, optionShape, given, "session");
  requireLease("session", options);
  for (const name of ["retryMs", "idleMs", "sweepMs", "maxPending", "maxPendingChars", "maxUnderWay"] as const)
    requirePositive(`session.${name}`, options[name]);
  return options;
}

/** So many sweeps in a row without a word of a session mean that its member knows that its lease is over, whatever the clocks. */
export const sweepsOf = (ttlMs: number, { drift, sweepMs }: SessionOptions): number =>
  Math.ceil(boundMs(ttlMs, drift) / sweepMs);
