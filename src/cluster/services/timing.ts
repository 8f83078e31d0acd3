/**
 * How long a member may be paused or cut off before the others replace it, and so how long they wait for one that has
 * crashed. One option sets the failure detector, the leases of elections and locks, and the views of channels.
 * docs/operate/timing.md lists the pauses that each setting survives, as measured.
 */
import type { HeartbeatOptions } from "../../protocols/membership/heartbeat.ts";
import type { LogViewsOptions } from "../../protocols/multicast/parts/log-views/log-views.ts";
import type { CoordinationServiceOptions } from "../../protocols/service/coordination-service/coordination-service.ts";

export const timings = ["fast", "default", "patient"] as const;
export type Timing = (typeof timings)[number];

/** The intervals of detectors and views, as multiples of the default. */
const factors: Readonly<Record<Timing, number>> = { fast: 0.5, default: 1, patient: 5 };

export const detectorOptions = (timing: Timing): Partial<HeartbeatOptions> => ({ intervalMs: 100 * factors[timing] });

/**
 * How long a session outlives its member, and so when a lock of a crashed process is released.
 * `coterie bench services --only busy` measures which settings keep their sessions on a busy machine. A keep-alive is an
 * entry of the log, so a longer lease costs fewer writes.
 */
const sessions = {
  fast: { leaseMs: 400, renewMs: 80, sweepMs: 25, retryMs: 200 },
  default: { leaseMs: 5_000, renewMs: 1_000, sweepMs: 100, retryMs: 200 },
  patient: { leaseMs: 15_000, renewMs: 3_000, sweepMs: 500, retryMs: 1_000 },
} as const;

/**
 * When a silent leader of the log is replaced. By default that takes less than half a second, independent of the session
 * lease.
 */
const elections = {
  fast: { minElectionMs: 150, maxElectionMs: 250, heartbeatMs: 50 },
  default: { minElectionMs: 250, maxElectionMs: 450, heartbeatMs: 50 },
  patient: { minElectionMs: 1_250, maxElectionMs: 2_250, heartbeatMs: 250 },
} as const;

export const serviceOptions = (timing: Timing): CoordinationServiceOptions => ({
  session: sessions[timing],
  log: elections[timing],
});

/** In a view change, each step waits this long for a member that the detector still trusts. */
export const viewOptions = (timing: Timing): Partial<LogViewsOptions> => ({
  roundMs: 500 * Math.max(1, factors[timing]),
});
