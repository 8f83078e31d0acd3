/**
 * How long a member may stand still, or be cut off, before the others go on without it; and so how long they wait for one
 * that has crashed. One word for the failure detector, the leases of elections and locks, and the views of channels.
 * docs/timing.md says what each survives, measured.
 */
import { embeddedNamed } from "../../protocols/index.ts";
import type { HeartbeatOptions } from "../../protocols/membership/heartbeat.ts";
import type { NamesOptions } from "../../protocols/membership/names/names.ts";
import type { ViewsOptions } from "../../protocols/membership/views/options.ts";
import type { CoordinationServiceOptions } from "../../protocols/service/coordination-service/coordination-service.ts";

export const timings = ["fast", "default", "patient"] as const;
export type Timing = (typeof timings)[number];

/** All waits that a stall must fit into are so many times those of the default. */
const factors: Readonly<Record<Timing, number>> = { fast: 0.5, default: 1, patient: 5 };

export const detectorOptions = (timing: Timing): Partial<HeartbeatOptions> => ({ intervalMs: 100 * factors[timing] });

/**
 * Of the replicated service: how soon the next leader of its log stands, and how long a session outlives its member. A member that was
 * about to renew its lease as the leader crashed has time to until there is the next, and locks of one that has crashed are free in
 * about half a second.
 */
const ofService = {
  session: { leaseMs: 400, renewMs: 80, sweepMs: 25, retryMs: 200 },
  log: { minElectionMs: 150, maxElectionMs: 250, heartbeatMs: 50 },
};

export function serviceOptions(timing: Timing): CoordinationServiceOptions {
  const times = <T extends Readonly<Record<string, number>>>(waits: T): T =>
    Object.fromEntries(Object.entries(waits).map(([name, ms]) => [name, ms * factors[timing]])) as T;
  return { session: times(ofService.session), log: times(ofService.log) };
}

/** What an algorithm is told where its user does not say otherwise. Some wait as their own options say. */
export function leaseOptions(timing: Timing, algorithm: string): object {
  const lease = embeddedNamed(algorithm)?.lease;
  if (timing === "default" || lease?.isTimed !== true) return {};
  const { leaseMs, renewMs } = lease.with({});
  return { leaseMs: leaseMs * factors[timing], renewMs: renewMs * factors[timing] };
}

/** A step of a change of the view waits for a member that the detector still trusts. */
export const viewOptions = (timing: Timing): Partial<ViewsOptions> => ({
  roundMs: 1_000 * Math.max(1, factors[timing]),
});

/** A name is put away only after it was idle for longer than the detector takes to suspect a member that does not answer. */
export const namesOptions = (timing: Timing): Partial<NamesOptions> => ({
  sweepMs: 250 * Math.max(1, factors[timing]),
});
