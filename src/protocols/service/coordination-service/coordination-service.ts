/**
 * Coordination service: what etcd, ZooKeeper and Chubby are run beside an application for, in the application itself. All members
 * hold the same keys, counters, grants, barriers, queues and state machines, and a Raft log orders every change of them.
 * Burrows, "The Chubby Lock Service", OSDI 2006; Hunt, Konar, Junqueira & Reed, "ZooKeeper", USENIX ATC 2010; Ongaro & Ousterhout,
 * USENIX ATC 2014, §8 for sessions; Gray & Cheriton, "Leases", SOSP 1989.
 *
 * Assumes   crash-recovery nodes with a journal. For leases: clocks whose speeds are right to within `drift`, and nodes that are not
 *           paused, or a driver that tells the application the deadline of each lease. For liveness: what Raft needs.
 * Safety    always: all replicas apply the same commands in the same order, each operation once; reads and operations are
 *           linearizable; tokens grow; a watch has no gap and no double. While clocks keep to `drift`: what a session holds is granted
 *           to nobody else before its member knows that the session is over.
 * Liveness  every operation is answered, and a session whose member is gone ends, once a majority is connected.
 * Cost      on Raft a command is one entry: 3(N − 1) messages, one more from a member that does not lead; many operations go
 *           together into one. A read is a round of heartbeats, however many wait for it. A session that is used costs an entry each
 *           `renewMs`, one that is not is closed after `idleMs`.
 *
 * Why no two hold a lock, however slow the network is. A member arms the timer of a lease when it proposes a keep-alive for the first
 * time, and relies on it only once its own replica has applied that keep-alive. A leader that wants a session to expire has counted
 * since it applied the last keep-alive, whether it led then or not, so since later, and for longer, by what clocks may drift. And what it proposes names the
 * place of that keep-alive in the log: if another one stands between, it changes nothing.
 *
 *     member   propose ─────────── lease ───────────────┤ lost
 *     log            keepAlive                                    expire   granted to the next
 *     leader               applied ─── longer than the lease ────┤ propose
 */
import { type Assembly, assemble, type Wires } from "../../../core/assemble.ts";
import type { Protocol } from "../../../core/protocol.ts";
import type { RaftOptions } from "../../consensus/raft/options.ts";
import { type Raft, raft } from "../../consensus/raft/raft.ts";
import { withMutexWorkload } from "../../mutex/family/workload.ts";
import { requireParts } from "../../options.ts";
import { type AnyMaker, defaulting, joined, type System, type WireTable } from "../../system.ts";
import { type Configuration, configuration } from "./configuration.ts";
import type { MachineDefinitions } from "./machines.ts";
import { serviceProperties } from "./properties.ts";
import { type Replica, type ReplicaOptions, replica } from "./replica.ts";
import { type ServiceMutex, serviceMutex } from "./service-mutex.ts";
import { memberSession } from "./session.ts";
import type { SessionOptions } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

export type ServiceParts = { session: MemberSession; replica: Replica; log: Raft };
/** With a list of members that changes. */
type EmbeddedParts = ServiceParts & { configuration: Configuration };
export type CoordinationService = Assembly<EmbeddedParts>;

export interface CoordinationServiceOptions {
  session?: Partial<SessionOptions>;
  replica?: Partial<ReplicaOptions>;
  log?: Partial<RaftOptions>;
}

const wires = {
  session: {
    proposed: ({ command }, give) => give("log", { type: "propose", command }),
    reading: ({ read }, give) => give("log", { type: "read", read }),
    query: ({ request, query }, give) => give("replica", { type: "query", request, query }),
    looking: (_event, give) => give("replica", { type: "look" }),
  },
  log: {
    decided: ({ index, command }, give) => give("replica", { type: "decided", index, command }),
    installed: ({ index, snapshot }, give) => give("replica", { type: "installed", index, snapshot }),
    readable: ({ read }, give) => give("session", { type: "readable", read }),
    led: ({ leader, term }, give) => give("session", { type: "led", leader, term }),
  },
  replica: {
    answered: (answered, give) => give("session", answered),
    queried: (queried, give) => give("session", queried),
    seen: (seen, give) => give("session", seen),
    saved: ({ index, snapshot }, give) => give("log", { type: "compact", index, snapshot }),
  },
} satisfies Wires<ServiceParts>;

/** The log's configuration follows the list of members. */
const embeddedWires: Wires<EmbeddedParts> = {
  session: wires.session,
  log: {
    ...wires.log,
    led({ leader, term }, give) {
      give("session", { type: "led", leader, term });
      give("configuration", { type: "led", leader, term });
    },
    reconfigured: ({ voters, learners }, give) => give("replica", { type: "reconfigured", voters, learners }),
  },
  replica: { ...wires.replica, members: ({ list }, give) => give("configuration", { type: "listed", list }) },
  configuration: { wanted: ({ voters, learners }, give) => give("log", { type: "reconfigure", voters, learners }) },
};

/** Members apply what is committed at once, wherever they are; a command is as long as many operations. */
const ofLog: Partial<RaftOptions> = { tellsCommit: true };

/** The service and what uses it. @param log may be another form of Raft. */
export const withService = (
  users: Readonly<Record<string, AnyMaker>>,
  userWires: WireTable,
  log: AnyMaker = raft,
): Pick<System, "parts" | "wires"> => ({
  parts: { session: memberSession, replica, log: defaulting(log, ofLog), ...users }, // Users ask for something as they start.
  wires: joined(wires as WireTable, userWires),
});

/** With a lock at every node, which is used as every mutual exclusion is. */
const withLock = (log?: AnyMaker): System => ({
  ...withService(
    { mutex: serviceMutex },
    {
      mutex: { asked: ({ operation }, give) => give("session", { type: "perform", operation }) },
      session: {
        began: ({ session }, give) => give("mutex", { type: "began", session }),
        confirmed: ({ session }, give) => give("mutex", { type: "confirmed", session }),
        lost: ({ session }, give) => give("mutex", { type: "over", session }),
      },
      replica: {
        opened: ({ session, member }, give) => give("mutex", { type: "opened", session, member }),
        granted: ({ session, wait, token }, give) => give("mutex", { type: "granted", session, wait, token }),
        restored: (_event, give) => give("mutex", { type: "restored" }),
      },
    },
    log,
  ),
  algorithm: "mutex",
});

export const coordinationSystem = withLock();

/** What simulator and checker run: every node uses the lock. @param log may be another form of Raft. */
export function serviceModel(log?: AnyMaker) {
  const make = withMutexWorkload<ServiceParts & { mutex: ServiceMutex }, CoordinationServiceOptions>(withLock(log));
  return (options?: Parameters<typeof make>[0]): ReturnType<typeof make> => {
    const model = make(options);
    return { ...model, properties: [...model.properties, ...(serviceProperties as typeof model.properties)] };
  };
}

/** Thesis §4.2.1. */
const CATCH_UP_ROUNDS = 10;

/** A member's whole part in it, as `join()` runs it. @param machines of the application; may be filled while the service runs. */
export function coordinationService(
  options: CoordinationServiceOptions = {},
  machines: MachineDefinitions = {},
): Protocol<CoordinationService> {
  requireParts("coordination-service", options, ["session", "replica", "log"]);
  const parts = {
    session: memberSession(options.session),
    replica: replica(options.replica, machines),
    log: raft({ ...ofLog, catchUpRounds: CATCH_UP_ROUNDS, ...options.log }),
    configuration: configuration(),
  };
  const service = assemble<EmbeddedParts>("coordination-service", parts, embeddedWires, { face: "session" });
  return { ...service, properties: [...service.properties, ...(serviceProperties as typeof service.properties)] };
}
