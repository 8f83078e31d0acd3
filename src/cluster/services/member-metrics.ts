/** What Prometheus is told of a member. */
import type { PeerStatus } from "../../runtime/admin-pages.ts";
import { linksOf, type Metric, networkMetrics, serviceMetrics } from "../../runtime/metric-table.ts";
import type { Counts } from "../../runtime/metrics.ts";
import type { Instance } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { LocalElection } from "./local-election.ts";
import { LocalMutex } from "./local-mutex.ts";
import type { SharedParts } from "./shared-parts.ts";
import { logGauges } from "./state/log-gauges.ts";
import type { SharedState } from "./state/shared-state.ts";

interface Measured {
  readonly counts: Counts;
  readonly instances: Pick<Instances, "all">;
  readonly shared: SharedParts;
  readonly state: SharedState;
  isJoined(): boolean;
  peers(): readonly PeerStatus[];
}

export function memberMetrics({ counts, instances, shared, state, isJoined, peers }: Measured): readonly Metric[] {
  const open = (): readonly Instance[] => instances.all;
  const locks = () => open().flatMap(({ local }) => (local instanceof LocalMutex ? [local.held] : []));
  return [
    ...networkMetrics(counts, linksOf(peers)),
    ...serviceMetrics(counts, {
      locksHeld: () => locks().filter(({ isHeld }) => isHeld).length + state.waits.held,
      lockWaiters: () => locks().reduce((sum, { waiting }) => sum + waiting, state.waiters.sum),
      leadershipsHeld: () =>
        [...open(), ...state.elections].filter(({ local }) => local instanceof LocalElection && local.leads).length,
      stateCalls: () => state.host.waiting,
      hasLogLeader: () => isJoined() && state.host.leader !== null,
      hasQuorum: () => isJoined() && shared.hasQuorum,
      reachable: () => shared.reachable,
      suspected: () => peers().filter(({ id }) => shared.isSuspected(id)).length,
      watches: () => state.host.watches + counts.clients.watching,
      log: () => state.host.look(logGauges),
      hasLockServer: () => isJoined() && state.host.leader !== null,
      instances: () => {
        const kinds = { election: 0, mutex: 0, channel: 0 };
        for (const { kind } of [...open().map(({ setting }) => setting), ...state.inUse]) kinds[kind] += 1;
        return kinds;
      },
    }),
  ];
}
