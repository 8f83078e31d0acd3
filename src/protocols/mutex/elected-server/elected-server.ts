/**
 * Elected server: a central server that is replaced when it crashes, by an election with epochs. Permissions are leases,
 * and their tokens grow with every grant, over all servers.
 * Coulouris et al. §15.2 for the server; its hardening as in Gray & Cheriton, "Leases: An Efficient Fault-Tolerant
 * Mechanism for Distributed File Cache Consistency", SOSP 1989, and Burrows, "The Chubby Lock Service", OSDI 2006.
 *
 * Assumes   crash-recovery nodes that keep their journal; clocks whose speeds are right to within `drift` and nodes that are
 *           not paused, for ME1; a majority alive and connected in the end, with round trips below `renewMs`, for ME2.
 * Safety    tokens are unique, always: under any delay, loss, duplication, reordering, partition, crash and recovery,
 *           however wrong the clocks; those of one server grow, and those of a later one are all higher. ME1: at most one
 *           node is inside, and entries have growing tokens, while the clocks keep to `drift`. Not ME3: requests are
 *           granted as they reach the server.
 * Liveness  ME2: every request of a node that stays up and connected to the server is granted in the end.
 * Cost      3 messages per entry: request, grant, release; none for the server itself. A request more for each `renewMs`
 *           of waiting, 2 for each `renewMs` inside. For a change of server at most 2(N − 1), when somebody wants in, and
 *           what `epoch-bully` costs.
 *
 * A node is told that its permission is lost before anybody else can get it: see `lock-service.ts`.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { type EpochBully, epochBully } from "../../election/epoch-bully/epoch-bully.ts";
import type { EpochBullyOptions } from "../../election/epoch-bully/vocabulary.ts";
import { type Heartbeat, heartbeat } from "../../membership/heartbeat.ts";
import type { System } from "../../system.ts";
import { type MutexWorkload, type MutexWorkloadOptions, withMutexWorkload } from "../family/workload.ts";
import { type LockServiceOptions, lockService } from "./lock-service.ts";
import type { LockService } from "./server.ts";

export type ElectedServer = Assembly<{ workload: MutexWorkload; mutex: LockService; election: EpochBully }>;

export interface ElectedServerOptions {
  workload?: Partial<MutexWorkloadOptions>;
  mutex?: Partial<LockServiceOptions>;
  election?: Partial<EpochBullyOptions>;
}

const wires: Wires<{ mutex: LockService; election: EpochBully; detector: Heartbeat }> = {
  mutex: {
    exhausted(_event, give) {
      give("election", { type: "resign" });
      give("election", { type: "stand" }); // The same node may lead again, in a higher epoch.
    },
  },
  election: {
    elected: ({ leader, epoch }, give) => give("mutex", { type: "elected", leader, epoch }),
    deposed: ({ epoch }, give) => give("mutex", { type: "deposed", epoch }),
  },
  detector: {
    suspected({ node }, give) {
      give("mutex", { type: "suspect", node });
      give("election", { type: "suspect", node });
    },
    restored: ({ node }, give) => give("election", { type: "restore", node }),
  },
};

const system: System = { parts: { mutex: lockService, election: epochBully }, wires, algorithm: "mutex" };

/** As a member of `join()` has it, where one election and one failure detector do for all locks. */
export const monitoredElectedServer: System = { ...system, parts: { ...system.parts, detector: heartbeat } };

export const electedServer: (options?: ElectedServerOptions) => Protocol<ElectedServer> = withMutexWorkload<
  { mutex: LockService; election: EpochBully },
  ElectedServerOptions
>(system);
