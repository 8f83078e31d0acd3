/**
 * All textbook algorithms, and the registry that lists them by name.
 *
 * @module coterie/protocols
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId, Tagged } from "../core/protocol.ts";
import { suggestion } from "../core/suggestion.ts";
import { oralMessages } from "./consensus/byzantine-generals/byzantine-generals.ts";
import { signedMessages } from "./consensus/byzantine-generals/signed-messages.ts";
import { cheapPaxos } from "./consensus/cheap-paxos/cheap-paxos.ts";
import { aroundCoordinator, ballotLog, byPromises, raftLog } from "./consensus/family/presentations.ts";
import { fastPaxos } from "./consensus/fast-paxos/fast-paxos.ts";
import { generalizedPaxos } from "./consensus/generalized-paxos/generalized-paxos.ts";
import { clientOrders } from "./consensus/generalized-paxos/vocabulary.ts";
import { multiPaxos } from "./consensus/multi-paxos/multi-paxos.ts";
import { paxos } from "./consensus/paxos/paxos.ts";
import { pbft } from "./consensus/pbft/pbft.ts";
import { boundedRaft } from "./consensus/raft/bounded.ts";
import { raft } from "./consensus/raft/raft.ts";
import { replicatedCommitSystem } from "./consensus/replicated-commit.ts";
import { twoPhaseCommit } from "./consensus/two-phase-commit/two-phase-commit.ts";
import { bully } from "./election/bully/bully.ts";
import { extendedBully } from "./election/bully/extended-bully.ts";
import { changRoberts } from "./election/chang-roberts/chang-roberts.ts";
import { extendedChangRoberts } from "./election/chang-roberts/extended-chang-roberts.ts";
import { boundedEpochBully, epochBully } from "./election/epoch-bully/epoch-bully.ts";
import { monitored } from "./election/monitored.ts";
import { extendedRing } from "./election/ring/extended-ring.ts";
import { ring } from "./election/ring/ring.ts";
import { entry, type RegistryEntry, type Variant } from "./entry.ts";
import { atomicCommit, consensus, election, membership, replicatedAtomicCommit, replicatedLog } from "./family.ts";
import { byzantineLogHeadline } from "./headlines.ts";
import { lockstepRounds } from "./lockstep-rounds.ts";
import { heartbeat } from "./membership/heartbeat.ts";
import { multicasts } from "./multicasts.ts";
import { mutualExclusions } from "./mutexes.ts";
import { overlays } from "./overlays.ts";
import { services } from "./services.ts";
import { settled } from "./system.ts";

const onRealProcesses = {
  summary: "with the failure detector that real processes use",
  detects: true,
} as const;

const told = (node: NodeId): Tagged => ({ type: "suspect", node }) as Tagged;

/** Periodic messages that renew leases. */
const leases = ["coordinator", "confirm", "renew", "confirmed"];

const registry: Readonly<Record<string, RegistryEntry>> = {
  bully: entry(election, "the live node with the highest id leads", monitored(extendedBully), {
    model: bully,
    variants: {
      extended: { summary: "with resignation, ranks and self-correction" },
      monitored: { summary: "the same, with the failure detector that real processes use", detects: true },
    },
    check: { crashNotification: told },
    shown: { periodic: ["alive", "beat"] },
  }),
  "byzantine-generals": entry(
    consensus,
    "all loyal generals agree on a commander's order despite traitors: majorities over all paths, or signatures",
    oralMessages,
    {
      variants: {
        signed: { summary: "with signed messages: any number of traitors", algorithm: signedMessages },
      },
      mustStart: true,
      check: { timers: "rounds" },
      shown: { periodic: ["round"] },
    },
  ),
  "chang-roberts": entry(
    election,
    "on a ring, the highest id comes back to its own node, which becomes the leader",
    monitored(extendedChangRoberts),
    {
      variants: {
        textbook: { summary: "as in the paper: no rounds, ranks, resignation or crashes", model: changRoberts },
        monitored: onRealProcesses,
      },
      onRing: (ring) => ({ ring }),
      check: { crashNotification: told },
      shown: { topology: "ring", labels: { election: ["id"], elected: ["id"] } },
    },
  ),
  "cheap-paxos": entry(
    replicatedLog,
    "f + 1 main nodes decide commands; f auxiliary nodes participate only after a main node has failed",
    cheapPaxos,
    {
      mustStart: true,
      check: { maxInFlight: 4, maxTimeouts: 1 },
      shown: ballotLog,
    },
  ),
  "epoch-bully": entry(election, "bully with majority votes: one leader per epoch", monitored(epochBully), {
    isDetectedInNodes: false,
    variants: {
      bounded: {
        summary: "no pre-vote, one election, no renewals: every run terminates, for the checker",
        algorithm: boundedEpochBully,
        ends: true,
      },
      whole: { summary: "includes pre-votes, later elections and renewals" },
    },
    mustStart: true,
    check: { variant: "bounded", maxTimeouts: 1 },
    shown: {
      term: "epoch",
      labels: { election: [], answer: [], coordinator: ["epoch"], requestVote: ["epoch"] },
      periodic: leases,
    },
  }),
  "fast-paxos": entry(
    replicatedLog,
    "commands go directly to the acceptors and are decided after two message delays unless they collide",
    fastPaxos,
    {
      variants: {
        uncoordinated: {
          summary: "the acceptors resolve collisions themselves, one message delay faster than the coordinator",
          algorithm: settled(fastPaxos, { recovery: "uncoordinated" }),
        },
      },
      mustStart: true,
      check: { maxTimeouts: 1 },
      shown: { term: "round", labels: { accepted: ["instance", "round"] }, periodic: ["heartbeat"] },
    },
  ),
  "generalized-paxos": entry(
    replicatedLog,
    "orders only interfering commands; commuting commands are decided after two message delays regardless of concurrent ones",
    generalizedPaxos,
    {
      orders: clientOrders,
      mustStart: true,
      check: { maxTimeouts: 1 },
      shown: { term: "round", labels: { propose: [], accepted: ["round"] }, periodic: ["heartbeat"] },
    },
  ),
  heartbeat: entry(membership, "suspects nodes whose heartbeats do not arrive in time", heartbeat, {
    mustStart: true,
    check: { maxTimeouts: 4 },
    shown: { periodic: ["alive", "beat"] },
  }),
  "multi-paxos": entry(
    replicatedLog,
    "a stable leader gets promises for all slots at once; after that, each command takes one round trip",
    multiPaxos,
    {
      mustStart: true,
      check: { maxInFlight: 4, maxTimeouts: 1 },
      shown: ballotLog,
    },
  ),
  paxos: entry(consensus, "a majority promises, a majority accepts, and one value is decided", paxos, {
    variants: {
      "distinguished-learner": {
        summary: "acceptors answer only the proposer, which notifies the learners: 5(N − 1) messages",
        algorithm: settled(paxos, { acceptorsTell: "proposer" }),
        counters: ["round"],
      },
      duelling: {
        summary:
          "without back-off: a refused proposer retries at once, so two proposers may preempt each other forever",
        algorithm: settled(paxos, { backsOff: false }),
        counters: ["round"],
      },
    },
    check: { counters: ["round"], maxInFlight: 4 },
    shown: {
      term: "ballot",
      spans: "ballot",
      topology: "quorums",
      position: byPromises,
      labels: {
        prepare: ["ballot"],
        promise: ["ballot", "accepted"],
        accept: ["proposal"],
        accepted: ["proposal"],
        nack: ["ballot", "promised"],
      },
    },
  }),
  pbft: entry(
    replicatedLog,
    "a primary orders signed requests; 2f + 1 of 3f + 1 replicas agree on each, despite f Byzantine replicas",
    pbft,
    {
      variants: {
        bounded: {
          summary: "one view change, no retransmissions: every run terminates, for the checker",
          algorithm: settled(pbft, { lastView: 1, statusMs: 0, retransmitMs: 0 }),
        },
        "client-apart": {
          summary: "the node with the highest id is only a client and waits for f + 1 matching replies",
          algorithm: settled(pbft, { clients: 1 }),
        },
      },
      mustStart: true,
      check: { variant: "bounded", maxTimeouts: 2 },
      shown: {
        term: "view",
        spans: "views",
        headline: byzantineLogHeadline({ term: "view", spans: "views" }),
        labels: { prePrepare: [], prepare: [], commit: [] },
        periodic: ["status"],
      },
    },
  ),
  raft: entry(
    replicatedLog,
    "an elected leader orders all commands in its log; an entry is committed once a majority stores it",
    raft,
    {
      variants: {
        bounded: {
          summary: "two terms, no pre-vote, no heartbeats: elections terminate, for the checker",
          algorithm: boundedRaft,
        },
        lecture: {
          summary:
            "as taught in a lecture: elects the first node to time out regardless of its log, so committed entries are lost",
          algorithm: settled(boundedRaft, { checksLog: false }),
        },
      },
      mustStart: true,
      check: { variant: "bounded", maxTimeouts: 2 },
      shown: raftLog,
    },
  ),
  "replicated-commit": entry(
    replicatedAtomicCommit,
    "two-phase commit with votes in a replicated log: a coordinator crash does not block the participants",
    replicatedCommitSystem,
    {
      variants: {
        bounded: {
          summary: "on a log whose elections terminate, for the checker",
          algorithm: {
            ...replicatedCommitSystem,
            parts: { ...replicatedCommitSystem.parts, log: boundedRaft },
          },
        },
      },
      mustStart: true,
      check: { variant: "bounded", maxTimeouts: 1 },
      shown: { labels: raftLog.labels ?? {}, periodic: raftLog.periodic ?? [] },
    },
  ),
  ring: entry(
    election,
    "a list of live nodes circulates on a ring, followed by the name of the leader",
    monitored(extendedRing),
    {
      variants: {
        textbook: { summary: "as in the textbook: no receipts, no election numbers, no resignation", model: ring },
        monitored: onRealProcesses,
      },
      onRing: (ring) => ({ ring }),
      check: { crashNotification: told },
      shown: { topology: "ring", labels: { election: ["list"], received: ["of"], coordinator: ["list"] } },
    },
  ),
  "two-phase-commit": entry(
    atomicCommit,
    "the transaction commits only if all nodes vote yes; a coordinator crash blocks the participants",
    twoPhaseCommit,
    {
      check: { maxInFlight: 4 },
      shown: {
        topology: "star",
        position: aroundCoordinator,
        term: "transaction",
        labels: { vote: ["vote"], decision: ["decision"] },
      },
    },
  ),
  ...lockstepRounds,
  ...mutualExclusions,
  ...overlays,
  ...multicasts,
  ...services,
  // coterie new: election, consensus, membership
};

/** Protocols from users' own files, by the path of the file. */
const own = new Map<string, RegistryEntry>();

/**
 * Adds a protocol to the registry for the lifetime of this process, so that every tool can find it by name.
 * @param name the path of the protocol's file, such as `./mine.ts`
 */
export const registerProtocol = (name: string, entry: RegistryEntry): void => void own.set(name, entry);

/** Whether the registry contains an algorithm or a registered file with this name. */
export const isRegistered = (name: string): boolean => own.has(name) || Object.hasOwn(registry, name);

/** The names of all registered algorithms, such as `raft`. Pass a name to `protocolNamed()`. */
export const protocolNames = Object.keys(registry);

/** Returns an algorithm's registry entry. @throws UsageError if the registry does not contain the name. */
export function protocolNamed(name: string): RegistryEntry {
  const found = Object.hasOwn(registry, name) ? registry[name] : own.get(name);
  if (found === undefined)
    throw new UsageError(
      "unknown-protocol",
      `${unexpected("the protocol", "a name listed by `coterie protocols`, or a file such as ./mine.ts", name)}${suggestion(name, protocolNames)}`,
    );
  return found;
}

/** Returns a variant of an algorithm by name. @throws UsageError if the algorithm has no such variant. */
export function variantNamed(protocol: string, variant: string): Variant {
  const { variants } = protocolNamed(protocol);
  const found = Object.hasOwn(variants, variant) ? variants[variant] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(variants);
  const wanted = names.length === 0 ? `omitted, since ${protocol} has no variants` : `one of ${names.join(", ")}`;
  throw new UsageError("unknown-variant", `${unexpected("the variant", wanted, variant)}${suggestion(variant, names)}`);
}

/** Whether nodes that run this form of an algorithm do nothing until they receive a start command. */
export function hasToStart(protocol: string, variant: string | null = null): boolean {
  const entry = protocolNamed(protocol);
  return (variant === null ? undefined : variantNamed(protocol, variant).mustStart) ?? entry.mustStart;
}

export type { Command } from "./consensus/family/replicated-log.ts";
export type { Proposal } from "./consensus/paxos/paxos.ts";
export * from "./consensus-exports.ts";
export { type DefinedProtocol, defineProtocol } from "./define.ts";
export { type Bully, type BullyOptions, bully } from "./election/bully/bully.ts";
export { type ExtendedBully, type ExtendedBullyOptions, extendedBully } from "./election/bully/extended-bully.ts";
export { type ChangRoberts, type ChangRobertsOptions, changRoberts } from "./election/chang-roberts/chang-roberts.ts";
export {
  type ExtendedChangRoberts,
  type ExtendedChangRobertsOptions,
  extendedChangRoberts,
} from "./election/chang-roberts/extended-chang-roberts.ts";
export { type EpochBully, epochBully, type Pledge } from "./election/epoch-bully/epoch-bully.ts";
export type { EpochBullyOptions } from "./election/epoch-bully/vocabulary.ts";
export {
  type MonitoredBully,
  type MonitoredBullyOptions,
  type MonitoredChangRoberts,
  type MonitoredOptions,
  type MonitoredRing,
  monitoredBully,
  monitoredChangRoberts,
  monitoredRing,
} from "./election/monitored.ts";
export { type ExtendedRing, type ExtendedRingOptions, extendedRing } from "./election/ring/extended-ring.ts";
export { type Ring, type RingOptions, ring } from "./election/ring/ring.ts";
export type { AnyProtocol, CheckHints, RegistryEntry, Variant } from "./entry.ts";
export type { Emitted, Ending, Entry, Family, Outcome } from "./family.ts";
export {
  type Heartbeat,
  type HeartbeatOptions,
  heartbeat,
} from "./membership/heartbeat.ts";
export { type CentralServer, type CentralServerOptions, centralServer } from "./mutex/central-server.ts";
export { type ElectedServer, type ElectedServerOptions, electedServer } from "./mutex/elected-server/elected-server.ts";
export { type LockServiceOptions, lockService } from "./mutex/elected-server/lock-service.ts";
export type { LockService } from "./mutex/elected-server/server.ts";
export {
  type EpochTokenRing,
  type EpochTokenRingOptions,
  epochTokenRing,
} from "./mutex/epoch-token-ring/epoch-token-ring.ts";
export {
  type Mutex,
  type MutexWithWorkload,
  type MutexWithWorkloadOptions,
  type MutexWorkload,
  type MutexWorkloadOptions,
  mutexProperties,
  mutexWithWorkload,
  mutexWorkload,
  type Section,
} from "./mutex/family/workload.ts";
export { type Maekawa, maekawa } from "./mutex/maekawa.ts";
export {
  type MaekawaSanders,
  type MaekawaSandersOptions,
  maekawaSanders,
} from "./mutex/maekawa-sanders/maekawa-sanders.ts";
export {
  type RecoveringMaekawaSanders,
  type RecoveringMaekawaSandersOptions,
  recoveringMaekawaSanders,
} from "./mutex/maekawa-sanders/recovering.ts";
export { type Construction, type VotingSets, votingSets, votingSetsProblem } from "./mutex/parts/voting-sets.ts";
export { type Raymond, type RaymondOptions, raymond } from "./mutex/raymond.ts";
export {
  type RecoveringRicartAgrawala,
  type RecoveringRicartAgrawalaOptions,
  recoveringRicartAgrawala,
} from "./mutex/ricart-agrawala/recovering.ts";
export { type RicartAgrawala, ricartAgrawala } from "./mutex/ricart-agrawala/ricart-agrawala.ts";
export {
  type RoucairolCarvalho,
  type RoucairolCarvalhoOptions,
  roucairolCarvalho,
} from "./mutex/ricart-agrawala/roucairol-carvalho.ts";
export { type SuzukiKasami, suzukiKasami } from "./mutex/suzuki-kasami.ts";
export { type TokenRing, type TokenRingOptions, tokenRing } from "./mutex/token-ring.ts";
export * from "./offered-multicasts.ts";
export * from "./offered-service.ts";
export { count, flag, type OptionsOf, option, optionTable, positive, requireNoOptions, whole } from "./options.ts";
export {
  type SuperPeerDht,
  type SuperPeerDhtOptions,
  superPeerDht,
} from "./overlay/super-peer-dht/super-peer-dht.ts";
export {
  type SuperPeerTokens,
  type SuperPeerTokensOptions,
  superPeerTokens,
} from "./overlay/super-peer-tokens/super-peer-tokens.ts";
export {
  type ArrangedNode,
  type Arrangement,
  arrangementOf,
  type Position,
  type Presentation,
  rowsOf,
  type Scene,
  type ShownNode,
  type Span,
  type SpanRule,
  type Spans,
  spanOf,
  type Topology,
} from "./presentation.ts";
