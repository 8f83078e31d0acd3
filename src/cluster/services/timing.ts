/**
 * How long a member can be paused or disconnected before the others replace it. They wait just as long for a crashed
 * member. A single option sets the failure detector, the leases of elections and locks, and the views of channels.
 * docs/operate/timing.md lists the measured pauses that each setting tolerates.
 */
import type { HeartbeatOptions } from "../../protocols/membership/heartbeat.ts";
import type { LogViewsOptions } from "../../protocols/multicast/parts/log-views/log-views.ts";
import type { CoordinationServiceOptions } from "../../protocols/service/coordination-service/coordination-service.ts";

/** The values of the option `timing`. */
export const timings = ["fast", "default", "patient"] as const;
/** A value of the option `timing`. */
export type Timing = (typeof timings)[number];

/** The intervals of failure detectors and views, as multiples of the default. */
const factors: Readonly<Record<Timing, number>> = { fast: 0.5, default: 1, patient: 5 };

export const detectorOptions = (timing: Timing): Partial<HeartbeatOptions> => ({ intervalMs: 100 * factors[timing] });

/**
 * How long a session outlives its member, which determines when the locks of a crashed process are released.
 * `coterie bench services --only busy` measures which settings keep their sessions on a busy machine. Each keep-alive
 * is a log entry, so a longer lease costs fewer writes.
 */
const sessions = {
  fast: { leaseMs: 400, renewMs: 80, sweepMs: 25, retryMs: 200 },
  default: { leaseMs: 5_000, renewMs: 1_000, sweepMs: 100, retryMs: 200 },
  patient: { leaseMs: 15_000, renewMs: 3_000, sweepMs: 500, retryMs: 1_000 },
} as const;

/**
 * How long the leader of the log can be silent before it is replaced. By default, that is less than half a second,
 * regardless of the session lease.
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

/**
 * Returns the options for view changes. In each step of a change, members wait this long for a member that the detector
 * still trusts.
 */
export const viewOptions = (timing: Timing): Partial<LogViewsOptions> => ({
  roundMs: 500 * Math.max(1, factors[timing]),
});
