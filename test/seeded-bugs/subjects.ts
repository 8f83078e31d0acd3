/**
 * The protocols that the seeded-bug tests search. Each is assembled from its modules, so a test can replace a module
 * with a buggy version.
 */
import type { ExploreOptions } from "../../src/check/explore.ts";
import { type Assembly, assemble } from "../../src/core/assemble.ts";
import type { Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { type ByzantineBehaviour, byzantine } from "../../src/protocols/byzantine.ts";
import { replicated } from "../../src/protocols/consensus/family/systems.ts";
import type { MultiPaxos } from "../../src/protocols/consensus/multi-paxos/multi-paxos.ts";
import type { boundedRaft as realRaft } from "../../src/protocols/consensus/raft/bounded.ts";
import type { Raft } from "../../src/protocols/consensus/raft/raft.ts";
import type { Views } from "../../src/protocols/membership/views/vocabulary.ts";
import {
  delivery,
  fifoOrder,
  happenedBeforeOrder,
  totalOrder,
} from "../../src/protocols/multicast/family/properties.ts";
import { monitoredMulticastModel } from "../../src/protocols/multicast/family/systems.ts";
import { multicastWithWorkload } from "../../src/protocols/multicast/family/workload.ts";
import { evenly } from "../../src/protocols/multicast/ip-multicast/vocabulary.ts";
import type { LockService } from "../../src/protocols/mutex/elected-server/server.ts";
import { mutexWithWorkload } from "../../src/protocols/mutex/family/workload.ts";
import { inTwoBallots } from "../protocols/multi-paxos-models.ts";
import { forger } from "../protocols/pbft-forger.ts";
import { asInFigure8, overAConflict, readElsewhere, withinALease, withPreVotes } from "../protocols/raft-models.ts";
import { type Nothing, nothing } from "../protocols/views-explored.ts";
import { liars } from "./agreement.ts";
import type { SeededBug, Subject } from "./seeded-bug.ts";

export type AnyProtocol = Protocol<Vocabulary>;
type Module = Readonly<Record<string, (options?: object) => never>>;

interface Making {
  /** The imported file, relative to the root of the repository. The bug may also be in a file that it imports. */
  readonly file: string;
  make(module: Module): unknown;
  /** Returns options of the checker in addition to the setting's options. */
  explored?(protocol: AnyProtocol): Partial<ExploreOptions<Vocabulary>>;
}

/** Returns the protocol with one Byzantine node. */
const beside = (protocol: AnyProtocol | undefined, liar: number, how: ByzantineBehaviour): AnyProtocol =>
  byzantine(protocol as AnyProtocol, new Map([[liar, how]]));

const GENERALS = "src/protocols/consensus/byzantine-generals/byzantine-generals.ts";
const SIGNED_GENERALS = "src/protocols/consensus/byzantine-generals/signed-messages.ts";
const LOCKSTEP = "src/protocols/consensus/lockstep/lockstep.ts";
const COMMANDER = 0;
const oneTurn = { echoes: true, moves: ["rock"], turns: 1, resends: 0 };

/** Returns bounds like those in the explorations of PBFT, so that a view change carries over a certificate. */
const besideForgerOf = (name: string): Making => ({
  file: "src/protocols/consensus/pbft/pbft.ts",
  make({ pbft }) {
    const log = { lastView: 1, statusMs: 0, retransmitMs: 0 };
    return beside(replicated(pbft as never, { log, client: { retryMs: 0 } }) as never, 1, forger(1, [name]));
  },
  explored: () => ({ network: "inbox", delays: 0 }),
});

const madeOf: Readonly<Record<Subject, Making>> = {
  bully: {
    file: "src/protocols/election/bully/bully.ts",
    make: ({ bully }) => bully?.(),
    // The detector may report a crash before the node's last messages arrive. In that case E1 does not eventually hold,
    // even without a bug.
    explored: ({ properties }) => ({
      crashNotification: (node) => ({ type: "suspect", node }) as never,
      properties: properties.filter(({ name }) => name !== "E1 eventually"),
    }),
  },
  causal: {
    file: "src/protocols/multicast/causal.ts",
    make: ({ causal }) => multicastWithWorkload(causal?.() as never, [happenedBeforeOrder]),
  },
  "chang-roberts": {
    file: "src/protocols/election/chang-roberts/extended-chang-roberts.ts",
    make: ({ extendedChangRoberts }) => extendedChangRoberts?.(),
  },
  "cheap-paxos": {
    file: "src/protocols/consensus/cheap-paxos/cheap-paxos.ts",
    make: ({ cheapPaxos }) => replicated(cheapPaxos as never, littleRoom),
  },
  "elected-server": {
    file: "src/protocols/mutex/elected-server/elected-server.ts",
    // Long enough for leases to be renewed and to expire.
    make: ({ electedServer }) => electedServer?.({ workload: { stayMs: 2_500 } }),
  },
  "elected-server, short stays": {
    file: "src/protocols/mutex/elected-server/elected-server.ts",
    make: ({ electedServer }) => electedServer?.({ workload: { stayMs: 5 } }),
  },
  "elected-server, server given": {
    file: "src/protocols/mutex/elected-server/lock-service.ts",
    make: ({ lockService }) => servedBy0(lockService?.() as unknown as Protocol<LockService>),
    explored: () => ({ ...lockServiceCommands }) as never,
  },
  "epoch-bully": {
    file: "src/protocols/election/epoch-bully/epoch-bully.ts",
    // Without a pre-vote and a long wait, which would add a margin that hides the bug.
    make: ({ epochBully }) => epochBully?.({ preVote: false, answerMs: 150, minBackOffMs: 1, maxBackOffMs: 10 }),
  },
  "epoch-bully, bounded": {
    file: "src/protocols/election/epoch-bully/epoch-bully.ts",
    make: ({ boundedEpochBully }) => boundedEpochBully?.(),
  },
  "epoch-token-ring": {
    file: "src/protocols/mutex/epoch-token-ring/epoch-token-ring.ts",
    make: ({ epochTokenRing }) => mutexWithWorkload(epochTokenRing as never),
  },
  "epoch-token-ring, long stays": {
    file: "src/protocols/mutex/epoch-token-ring/epoch-token-ring.ts",
    make: ({ epochTokenRing }) => mutexWithWorkload(epochTokenRing as never, { workload: { stayMs: 1_500 } }),
  },
  "fast-paxos": {
    file: "src/protocols/consensus/fast-paxos/fast-paxos.ts",
    make: ({ fastPaxos }) => fastPaxos?.({ patienceMs: 60, heartbeatMs: 25 }),
  },
  "generalized-paxos": {
    file: "src/protocols/consensus/generalized-paxos/generalized-paxos.ts",
    make: ({ generalizedPaxos }) =>
      generalizedPaxos?.({
        interference: "by-key",
        checkpointEvery: 4,
        patienceMs: 150,
        heartbeatMs: 50,
        recoverMs: 100,
      }),
  },
  "flood-set": {
    file: "src/protocols/consensus/flood-set.ts",
    make: ({ floodSet }) => floodSet?.({ values: ["c", "a", "b"] }),
  },
  "generals, a lieutenant is Byzantine": {
    file: GENERALS,
    make: ({ oralMessages }) => beside(oralMessages?.(), 3, liars.lieutenant),
  },
  "generals, the commander is Byzantine": {
    file: GENERALS,
    make: ({ oralMessages }) => beside(oralMessages?.(), COMMANDER, "adversary"),
  },
  "signed generals, a lieutenant is Byzantine": {
    file: SIGNED_GENERALS,
    make: ({ signedMessages }) => beside(signedMessages?.(), 2, liars.forger),
  },
  "signed generals, the commander is Byzantine": {
    file: SIGNED_GENERALS,
    make: ({ signedMessages }) => beside(signedMessages?.(), COMMANDER, "adversary"),
  },
  "lockstep of two": { file: LOCKSTEP, make: ({ lockstep }) => lockstep?.(oneTurn) },
  "lockstep of three": { file: LOCKSTEP, make: ({ lockstep }) => lockstep?.(oneTurn) },
  "lockstep, a player commits twice": {
    file: LOCKSTEP,
    make: ({ lockstep }) => beside(lockstep?.(oneTurn), 2, liars.committer),
  },
  "lockstep, a player withholds its action": {
    file: LOCKSTEP,
    make: ({ lockstep }) => beside(lockstep?.(oneTurn), 2, liars.hider),
  },
  "lockstep, a player reveals another action": {
    file: LOCKSTEP,
    make: ({ lockstep }) => beside(lockstep?.(oneTurn), 2, liars.revealer),
  },
  heartbeat: {
    file: "src/protocols/membership/heartbeat.ts",
    make: ({ heartbeat }) => heartbeat?.(),
  },
  "ip-multicast": {
    file: "src/protocols/multicast/ip-multicast/ip-multicast.ts",
    make: ({ ipMulticast }) => multicastWithWorkload(ipMulticast?.(evenly) as never, [fifoOrder, ...delivery]),
  },
  "isis over views": {
    file: "src/protocols/multicast/parts/flush.ts",
    make: ({ flushIsis }) => monitoredMulticastModel(flushIsis as never, [totalOrder]),
  },
  "maekawa-sanders, rejoining": {
    file: "src/protocols/mutex/maekawa-sanders/recovering.ts",
    make: ({ recoveringMaekawaSanders }) =>
      mutexWithWorkload(() => recoveringMaekawaSanders?.({ rejoins: true }) as never),
  },
  "multi-paxos": {
    file: "src/protocols/consensus/multi-paxos/multi-paxos.ts",
    make: ({ multiPaxos }) => replicated(multiPaxos as never, littleRoom),
  },
  "multi-paxos, alone": {
    file: "src/protocols/consensus/multi-paxos/multi-paxos.ts",
    make: ({ multiPaxos }) => multiPaxos?.({ window: 2, announces: false }),
  },
  "multi-paxos, members change": {
    file: "src/protocols/consensus/multi-paxos/multi-paxos.ts",
    make: ({ multiPaxos }) => multiPaxos?.({ window: 2, keep: 0, leaseMs: 120, renewMs: 40 }),
  },
  "multi-paxos, two ballots": {
    file: "src/protocols/consensus/multi-paxos/multi-paxos.ts",
    make: ({ multiPaxos }) =>
      inTwoBallots(multiPaxos?.({ window: 2, announces: false }) as unknown as Protocol<MultiPaxos>),
  },
  paxos: {
    file: "src/protocols/consensus/paxos/paxos.ts",
    make: ({ paxos }) => paxos?.(),
  },
  pbft: {
    file: "src/protocols/consensus/pbft/pbft.ts",
    make: ({ pbft }) => replicated(pbft as never, fewBatches),
  },
  "pbft, the next primary forges a certificate": besideForgerOf("a certificate of 2f"),
  "pbft, the next primary forges a new view": besideForgerOf("a new view without prepared batches"),
  raft: {
    file: "src/protocols/consensus/raft/raft.ts",
    make: ({ raft }) => raft?.(oftenElected),
  },
  "raft, bounded": {
    file: "src/protocols/consensus/raft/bounded.ts",
    make: ({ boundedRaft }) => boundedRaft?.({ maxBatchEntries: 1 }),
  },
  "raft, drifting clocks": {
    file: "src/protocols/consensus/raft/raft.ts",
    make: ({ raft }) =>
      raft?.({ leaseReads: true, drift: 0.3, minElectionMs: 200, maxElectionMs: 201, heartbeatMs: 40 }),
  },
  "raft, figure 8": {
    file: "src/protocols/consensus/raft/bounded.ts",
    make: ({ boundedRaft }) => asInFigure8((boundedRaft as unknown as typeof realRaft)({ maxBatchEntries: 1 }, 5)),
  },
  "raft, leases": {
    file: "src/protocols/consensus/raft/raft.ts",
    make: ({ raft }) =>
      withinALease(raft?.({ leaseReads: true, maxBatchEntries: 1 }) as unknown as Protocol<Raft>, [0, 2]),
  },
  "raft, succession": {
    file: "src/protocols/consensus/raft/bounded.ts",
    make: ({ boundedRaft }) => readElsewhere((boundedRaft as unknown as typeof realRaft)()),
  },
  "raft, over a conflict": {
    file: "src/protocols/consensus/raft/bounded.ts",
    make: ({ boundedRaft }) => overAConflict((boundedRaft as unknown as typeof realRaft)({ keptEntries: 0 })),
  },
  "raft, pre-votes": {
    file: "src/protocols/consensus/raft/raft.ts",
    make: ({ raft }) => withPreVotes(raft?.() as unknown as Protocol<Raft>),
  },
  "raft, reads": {
    file: "src/protocols/consensus/raft/bounded.ts",
    make: ({ boundedRaft }) => readElsewhere((boundedRaft as unknown as typeof realRaft)({ tellsCommit: true })),
  },
  "raft, two learners": {
    file: "src/protocols/consensus/raft/raft.ts",
    make: ({ raft }) => raft?.({ ...oftenElected, learners: [3, 4] }),
  },
  "ricart-agrawala": {
    file: "src/protocols/mutex/ricart-agrawala/ricart-agrawala.ts",
    make: ({ ricartAgrawala }) => mutexWithWorkload(ricartAgrawala as never),
  },
  "ricart-agrawala, rejoining": {
    file: "src/protocols/mutex/ricart-agrawala/recovering.ts",
    make: ({ recoveringRicartAgrawala }) =>
      mutexWithWorkload(() => recoveringRicartAgrawala?.({ rejoins: true }) as never),
  },
  "super-peer-dht": {
    file: "src/protocols/overlay/super-peer-dht/super-peer-dht.ts",
    make: ({ superPeerDht }) => superPeerDht?.(),
  },
  "super-peer-tokens": {
    file: "src/protocols/overlay/super-peer-tokens/super-peer-tokens.ts",
    make: ({ superPeerTokens }) => superPeerTokens?.({ share: 0.3 }),
  },
  "two-phase-commit": {
    file: "src/protocols/consensus/two-phase-commit/two-phase-commit.ts",
    // Participants in doubt query each other, including a participant that has forgotten its vote.
    make: ({ twoPhaseCommit }) => twoPhaseCommit?.({ isCooperative: true }),
  },
  "view-synchrony, the agreement on views": {
    file: "src/protocols/membership/views/agreement.ts",
    make: ({ views }) => settledViews(views?.({ remindMs: 0 }) as unknown as Protocol<Views>),
    explored: () => ({ crashNotification: (node) => ({ type: "views", body: { type: "suspect", node } }) as never }),
  },
  "view-synchrony": {
    file: "src/protocols/multicast/view-synchrony.ts",
    make: ({ viewSynchrony }) => monitoredMulticastModel(viewSynchrony as never, [fifoOrder]),
  },
};

/** Small windows and frequent snapshots, so that a run of a few seconds reaches their limits. Leaders change often. */
const littleRoom = {
  client: { retryMs: 100 },
  machine: { snapshotEvery: 3 },
  log: { window: 4, keep: 0, leaseMs: 120, renewMs: 40 },
};

/** Views change often, and every other batch is followed by a checkpoint. */
const fewBatches = {
  client: { retryMs: 150 },
  log: {
    maxBatch: 1,
    checkpointEvery: 2,
    window: 4,
    viewChangeMs: 100,
    maxViewChangeMs: 200,
    retransmitMs: 50,
    statusMs: 60,
  },
};

/** Disables the options that keep elections rare, because their margins would hide the bug. */
const oftenElected = {
  preVote: false,
  checkQuorum: false,
  minElectionMs: 60,
  maxElectionMs: 160,
  heartbeatMs: 40,
  maxBatchEntries: 1,
  keptEntries: 0,
};

/**
 * Replaces the election of the lock service: node 0 serves in epoch 1. If it crashes, all nodes learn that node 1
 * serves in epoch 2.
 */
function servedBy0(lockService: Protocol<LockService>): Protocol<LockService> {
  return {
    ...lockService,
    init(self, peers) {
      const service = { grants: 0, awaited: [], isRecalling: false, holder: null, queue: [] };
      return { ...lockService.init(self, peers), epoch: 1, server: 0, service: self === 0 ? service : null };
    },
    // Only a restarted node calls it.
    start: (state) => void Object.assign(state, { epoch: 0, server: null, service: null }),
  };
}

/** Agrees on views without application messages, as if all nodes had been in view 1 for a long time. */
function settledViews(agreement: Protocol<Views>): Protocol<Assembly<{ nothing: Nothing; views: Views }>> {
  const whole = assemble<{ nothing: Nothing; views: Views }>(
    "views",
    { nothing, views: agreement },
    {
      views: { flush: ({ round }, give) => give("nothing", { type: "flush", round }) },
      nothing: { flushed: ({ round, received }, give) => give("views", { type: "flushed", round, received }) },
    },
    { face: "views" },
  );
  return {
    ...whole,
    init(self, peers) {
      const state = whole.init(self, peers);
      const members = [self, ...peers].sort((a, b) => a - b).map((node) => ({ node, incarnation: 1 }));
      return { ...state, views: { ...state.views, incarnation: 1, view: { number: 1, members, cut: [] } } };
    },
  };
}

const elected = (leader: number, epoch: number): LockService["command"] => ({ type: "elected", leader, epoch });

/**
 * Commands that announce the server to nodes. Each node enters once per run and leaves at any time, as a holder or as a
 * waiter.
 */
const lockServiceCommands: Partial<ExploreOptions<LockService>> = {
  crashNotification: (crashed) => (crashed === 0 ? elected(1, 2) : elected(0, 1)),
  commands({ epoch, section, requestId }, node) {
    if (epoch === 0) return [node === 0 ? elected(1, 2) : elected(0, 1)];
    if (section !== "released") return [{ type: "exit" }];
    return requestId.request === 0 ? [{ type: "enter" }] : [];
  },
};

const root = new URL("../..", import.meta.url).pathname;

export async function withBug({ protocol, name }: SeededBug): Promise<AnyProtocol> {
  const { file, make } = madeOf[protocol];
  return make(await import(/* @vite-ignore */ `${root}${file}?bug=${name}`)) as AnyProtocol;
}

export async function withoutBug({ protocol }: SeededBug): Promise<AnyProtocol> {
  const { file, make } = madeOf[protocol];
  return make(await import(/* @vite-ignore */ `${root}${file}`)) as AnyProtocol;
}

/** Returns the checker options for this subject, in addition to the setting's options. */
export const exploredWith = (subject: Subject, protocol: AnyProtocol): Partial<ExploreOptions<Vocabulary>> =>
  madeOf[subject].explored?.(protocol) ?? {};
