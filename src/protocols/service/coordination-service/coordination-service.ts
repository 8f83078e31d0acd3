/**
 * Coordination service: the functions of etcd, ZooKeeper and Chubby, embedded in the application. All members hold the
 * same keys, counters, grants, barriers, queues and state machines, and a Raft log orders every change of them.
 * Burrows, "The Chubby Lock Service", OSDI 2006; Hunt, Konar, Junqueira & Reed, "ZooKeeper", USENIX ATC 2010; Ongaro &
 * Ousterhout, USENIX ATC 2014, §8 for sessions; Gray & Cheriton, "Leases", SOSP 1989.
 *
 * Assumes   crash-recovery nodes with a journal. For leases: the rates of clocks are correct to within `drift`, and
 *           nodes are not paused, or the driver passes the deadline of each lease to the application. For liveness: the
 *           assumptions of Raft.
 * Safety    always: all replicas apply the same commands in the same order, each operation once; reads and operations
 *           are linearizable; tokens increase; a watch misses no change and repeats none. While clocks keep to `drift`:
 *           a grant of a session goes to no other session before the member knows that its session is over.
 * Liveness  every operation is answered, and the session of a stopped member ends, once a majority is connected.
 * Cost      on Raft a command is one entry: 3(N − 1) messages, and one more from a member that does not lead; many
 *           operations share an entry. A read is a round of heartbeats, which all waiting reads share. A session in use
 *           costs an entry every `renewMs`; an unused one is closed after `idleMs`.
 *
 * Why no lock has two holders, no matter how slow the network is: a member starts the timer of a lease when it first
 * proposes a keep-alive, and relies on the lease only once its own replica has applied that keep-alive. The leader that
 * expires a session has counted since it applied the last keep-alive, even if it did not lead then. It started later
 * and waits longer, by the possible drift of clocks. Its proposal names the log index of that keep-alive: if another
 * keep-alive comes first in the log, the proposal has no effect.
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
/** With a member list that can change. */
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

/** The configuration of the log follows the member list. */
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

/** Every member must apply committed commands at once, so followers learn the commit index immediately. */
const ofLog: Partial<RaftOptions> = { tellsCommit: true };

/** The service together with its users. @param log an alternative form of Raft. */
export const withService = (
  users: Readonly<Record<string, AnyMaker>>,
  userWires: WireTable,
  log: AnyMaker = raft,
): Pick<System, "parts" | "wires"> => ({
  parts: { session: memberSession, replica, log: defaulting(log, ofLog), ...users }, // Last: users send requests as they start.
  wires: joined(wires as WireTable, userWires),
});

/** A lock at every node, with the interface of every mutual exclusion algorithm. */
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

/** The model for simulator and checker: every node uses the lock. @param log an alternative form of Raft. */
export function serviceModel(log?: AnyMaker) {
  const make = withMutexWorkload<ServiceParts & { mutex: ServiceMutex }, CoordinationServiceOptions>(withLock(log));
  return (options?: Parameters<typeof make>[0]): ReturnType<typeof make> => {
    const model = make(options);
    return { ...model, properties: [...model.properties, ...(serviceProperties as typeof model.properties)] };
  };
}

/** Thesis §4.2.1. */
const CATCH_UP_ROUNDS = 10;

/**
 * All parts of a member, as `join()` runs them. @param machines the application's state machines; may be extended while
 * the service runs.
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
