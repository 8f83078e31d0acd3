/** A member's Prometheus metrics. */
import type { PeerStatus } from "../../runtime/admin-pages.ts";
import { linksOf, type Metric, networkMetrics, serviceMetrics } from "../../runtime/metric-table.ts";
import type { Counts } from "../../runtime/metrics.ts";
import type { MemberDetector } from "./member-detector.ts";
import { logGauges } from "./state/log-gauges.ts";
import type { SharedState } from "./state/shared-state.ts";

interface Measured {
  readonly counts: Counts;
  readonly detector: MemberDetector;
  readonly state: SharedState;
  isJoined(): boolean;
  peers(): readonly PeerStatus[];
}

/** Returns all of a member's metrics, with functions that read their values. */
export function memberMetrics({ counts, detector, state, isJoined, peers }: Measured): readonly Metric[] {
  return [
    ...networkMetrics(counts, linksOf(peers)),
    ...serviceMetrics(counts, {
      locksHeld: () => state.waits.held,
      lockWaiters: () => state.waiters.sum,
      leadershipsHeld: () => state.elections.filter(({ local }) => local.leads).length,
      stateCalls: () => state.host.waiting,
      hasLogLeader: () => isJoined() && state.host.leader !== null,
      hasQuorum: () => isJoined() && detector.hasQuorum,
      reachable: () => detector.reachable,
      suspected: () => peers().filter(({ id }) => detector.isSuspected(id)).length,
      watches: () => state.host.watches + counts.clients.watching,
      log: () => state.host.look(logGauges),
      instances: () => {
        const kinds = { election: 0, mutex: 0, channel: 0 };
        for (const { kind } of state.inUse) kinds[kind] += 1;
        return kinds;
      },
    }),
  ];
}
