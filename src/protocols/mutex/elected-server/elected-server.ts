/**
 * Elected server: a central server that is replaced after a crash by an election with epochs. Permissions are leases,
 * and their tokens increase with every grant, across all servers. Coulouris et al. §15.2 for the server; hardened as in
 * Gray & Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency", SOSP 1989,
 * and Burrows, "The Chubby Lock Service", OSDI 2006.
 *
 * Assumes   crash-recovery nodes that keep their journal; for ME1, clocks accurate to within `drift` and nodes that are
 *           not paused; for ME2, eventually a connected majority with round trips below `renewMs`.
 * Safety    tokens are always unique, despite any delays, losses, duplicates, reordering, partitions, crashes and
 *           recoveries, and with any clocks. A server's tokens increase, and all tokens from a later server are higher.
 *           While the clocks stay within `drift`, ME1: at most one node is inside, and entries have increasing tokens.
 *           Not ME3: requests are granted in the order they arrive at the server.
 * Liveness  ME2: every request from a node that stays up and connected to the server is eventually granted.
 * Cost      3 messages per entry (request, grant and release), none for the server itself. One more request for every
 *           `renewMs` of waiting, and 2 messages for every `renewMs` inside. A change of server costs at most 2(N − 1)
 *           messages when a node next wants to enter, in addition to the cost of `epoch-bully`.
 *
 * A node learns that it has lost its permission before another node can acquire it; see `lock-service.ts`.
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

/** Vocabulary of the elected server. */
export type ElectedServer = Assembly<{ workload: MutexWorkload; mutex: LockService; election: EpochBully }>;

/** Options of `electedServer()`, by part. */
export interface ElectedServerOptions {
  /** Options of the workload. */
  workload?: Partial<MutexWorkloadOptions>;
  /** Options of the lock service. */
  mutex?: Partial<LockServiceOptions>;
  /** Options of the election. */
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

/** The form for members of `join()`. All locks share one election and one failure detector. */
export const monitoredElectedServer: System = { ...system, parts: { ...system.parts, detector: heartbeat } };

/**
 * Creates the elected server, with a workload at every node.
 * @throws UsageError if an option is unknown or out of range.
 */
export const electedServer: (options?: ElectedServerOptions) => Protocol<ElectedServer> = withMutexWorkload<
  { mutex: LockService; election: EpochBully },
  ElectedServerOptions
>(system);
