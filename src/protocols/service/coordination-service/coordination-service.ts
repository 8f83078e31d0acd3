/**
 * Coordination service: the functionality of etcd, ZooKeeper and Chubby, embedded in the application. All members have
 * the same keys, counters, grants, barriers, queues and state machines, and a Raft log orders all changes to them.
 * Burrows, "The Chubby Lock Service", OSDI 2006; Hunt, Konar, Junqueira & Reed, "ZooKeeper", USENIX ATC 2010; Ongaro &
 * Ousterhout, USENIX ATC 2014, §8 for sessions; Gray & Cheriton, "Leases", SOSP 1989.
 *
 * Assumes   crash-recovery nodes with a journal. For leases: clock rates are accurate to within `drift`, and either
 *           nodes are not paused or the driver passes each lease's deadline to the application. For liveness: the same
 *           as Raft.
 * Safety    always: all replicas apply the same commands in the same order, and each operation once; reads and
 *           operations are linearizable; tokens increase; a watch does not miss or repeat any change. While clocks stay
 *           within `drift`: a session's grant does not go to another session before the member knows that its own
 *           session is over.
 * Liveness  once a majority is connected, every operation is answered, and a stopped member's session ends.
 * Cost      on Raft, a command is one entry: 3(N − 1) messages, plus one if it comes from a member that is not the
 *           leader. Many operations share an entry. A read takes a round of heartbeats, which all waiting reads share.
 *           A session in use costs one entry every `renewMs`; an unused session is closed after `idleMs`.
 *
 * A lock never has two holders, no matter how slow the network is, for the following reason. A member starts a lease's
 * timer when it first proposes a keep-alive, and relies on the lease only once its own replica has applied that
 * keep-alive. The leader that expires a session counts from when it applied the last keep-alive, even if it was not the
 * leader at that time. It therefore starts counting later, and it also waits longer, to allow for clock drift. Its
 * proposal names the log index of that keep-alive. If a newer keep-alive comes first in the log, the proposal has no
 * effect.
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

/** The parts of a node in the service, each with its vocabulary. */
export type ServiceParts = { session: MemberSession; replica: Replica; log: Raft };
/** The parts of a node in a service whose member list can change. */
type EmbeddedParts = ServiceParts & { configuration: Configuration };
/** Vocabulary of the coordination service, including a member list that can change. */
export type CoordinationService = Assembly<EmbeddedParts>;

/** Options of the coordination service, by part. */
export interface CoordinationServiceOptions {
  /** Options of the member's session. */
  session?: Partial<SessionOptions>;
  /** Options of the replica. */
  replica?: Partial<ReplicaOptions>;
  /** Options of the log. */
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

/** Wires that make the log's configuration follow the member list. */
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

/**
 * Defaults for the log. Every member must apply committed commands immediately, so the leader sends its followers the
 * commit index.
 */
const ofLog: Partial<RaftOptions> = { tellsCommit: true };

/** Returns the service together with the parts that use it. @param log a variant of Raft to use */
export const withService = (
  users: Readonly<Record<string, AnyMaker>>,
  userWires: WireTable,
  log: AnyMaker = raft,
): Pick<System, "parts" | "wires"> => ({
  parts: { session: memberSession, replica, log: defaulting(log, ofLog), ...users }, // Last: users send requests as they start.
  wires: joined(wires as WireTable, userWires),
});

/**
 * Returns the service with a lock at every node. The lock has the same interface as all mutual exclusion algorithms.
 */
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

/** The service with a lock, as a system for the registry. */
export const coordinationSystem = withLock();

/**
 * Returns the model for the simulator and the checker, with every node using the lock.
 * @param log a variant of Raft to use
 */
export function serviceModel(log?: AnyMaker) {
  const make = withMutexWorkload<ServiceParts & { mutex: ServiceMutex }, CoordinationServiceOptions>(withLock(log));
  return (options?: Parameters<typeof make>[0]): ReturnType<typeof make> => {
    const model = make(options);
    return { ...model, properties: [...model.properties, ...(serviceProperties as typeof model.properties)] };
  };
}

/** The number of catch-up rounds for a new voter (Ongaro 2014, §4.2.1). */
const CATCH_UP_ROUNDS = 10;

/**
 * Creates all of a member's parts, as `join()` runs them. @param machines the application's state machines; may be
 * extended while the service is running
 */
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
