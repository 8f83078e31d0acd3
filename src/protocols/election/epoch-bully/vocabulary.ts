/** The vocabulary of epoch-bully: its state, messages, journal records and events, and functions of its state. */
import type { Context, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { boolean, natural, nullable, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, requireLease } from "../../leases.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";
import { ranksOption } from "../parts/ranks.ts";

/** A promise to help no other node lead this epoch. Initially, each node has promised epoch 0, which has no leader, to itself. */
export interface Pledge {
  epoch: number;
  to: NodeId;
}

/** A term of leadership: the leader of an epoch, and its rank. */
export interface Term {
  epoch: number;
  leader: NodeId;
  rank: number;
}

/** Vocabulary of epoch-bully. */
export type EpochBully = {
  state: {
    phase: Phase;
    /** Journaled. Its epoch never decreases. */
    promised: Pledge;
    /** True while the timer `bound` runs: the node votes only for the node that it has promised its vote to. */
    isBound: boolean;
    /** The last promise that the promised node is known to have given back. */
    released: Pledge | null;
    /** The last leader that this node has known. The node follows that leader while it is bound to it. */
    term: Term | null;
    /** This node's own rank. */
    rank: number;
    /** Whether the node is a candidate. */
    isCandidate: boolean;
    /** A higher node objected and then did not lead. Next time this node does not defer. Reset when it requests votes. */
    insists: boolean;
    /** Pre-votes in a row that got no majority of answers in time. Each one doubles all waits of the next election. */
    patience: number;
    /** Ascending. */
    suspected: NodeId[];
    /** The number of nodes, including this one, that form a majority. */
    quorum: number;
  };
  message: /** Pre-vote: asks for support without changing the receiver's state. `promised`: the sender's promised epoch. */
    | { type: "election"; promised: number; released: Pledge | null; rank: number }
    /** `boundTo`: the only node that may lead. `isAbove`: the sender is a candidate and outranks the receiver. */
    | { type: "answer"; promised: number; boundTo: NodeId | null; isAbove: boolean }
    | { type: "requestVote"; epoch: number; released: Pledge | null }
    | { type: "voteGranted"; epoch: number }
    /** Announces the leader first, and then renews its lease in every round. */
    | { type: "coordinator"; epoch: number; round: number; rank: number }
    | { type: "confirm"; epoch: number; round: number }
    /** A majority supports the sender, which outranks the leader of the epoch, in its place. */
    | { type: "displace"; epoch: number; rank: number }
    /** The sender will never lead this epoch, or never again. `successor`: the node that it makes way for. */
    | { type: "resign"; epoch: number; successor: NodeId | null };
  timer: /** Calls the next election. */
    | "call"
    /** Ends an election that this node has called. */
    | "answer"
    | "bound"
    | "renew"
    | LeaseTimer;
  command: /** Calls an election, unless this node leads or is bound to a higher node. */
    | { type: "call" }
    /** Elections do not wait for the answer of a suspected node. */
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Steps down and is no longer a candidate. The node still follows and votes. */
    | { type: "resign" }
    /** Withdraws a resignation. */
    | { type: "stand" }
    /** Sets the rank of this node. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId; epoch: number }
    /** At the leader: no other node leads until the deadline. */
    | { type: "confirmed"; epoch: number }
    /** At the leader: its lease is over. */
    | { type: "deposed"; epoch: number };
  record: { type: "promised"; epoch: number; to: NodeId };
};

export type Ctx = Context<EpochBully>;

type Phase =
  | { is: "following" }
  /** `promised`: the highest epoch that a responder has promised. */
  | { is: "preVoting"; awaited: NodeId[]; backers: NodeId[]; promised: number }
  /** A majority supports this node. It has asked the leader to make way. */
  | { is: "displacing"; promised: number }
  /** Requests votes for the epoch that it has promised to itself. */
  | { is: "requestingVotes"; votes: NodeId[] }
  | { is: "leading"; round: number; confirms: NodeId[] };

export type State = EpochBully["state"];

export const isSame = (a: Pledge | null, b: Pledge): boolean => a !== null && a.epoch === b.epoch && a.to === b.to;

/** The leader that this node knows: itself, or the node that it is bound to. */
export function leaderOf({ phase, isBound, promised, term }: State, self: NodeId): NodeId | null {
  if (phase.is === "leading") return self;
  if (!isBound || term === null) return null;
  return term.epoch === promised.epoch && term.leader === promised.to ? term.leader : null;
}

/** Whether this node is a candidate and outranks another node. */
export const isAbove = (state: State, self: NodeId, rank: number, node: NodeId): boolean =>
  state.isCandidate && (state.rank > rank || (state.rank === rank && self > node));

export const isAboveLeader = (state: State, self: NodeId): boolean =>
  state.term !== null &&
  leaderOf(state, self) === state.term.leader &&
  isAbove(state, self, state.term.rank, state.term.leader);

export const mayLead = ({ phase }: State): boolean => phase.is === "requestingVotes" || phase.is === "leading";

export const isConfirmed = ({ phase, quorum }: State): boolean =>
  phase.is === "leading" && phase.confirms.length + 1 >= quorum;

/** Whether this node must not help `node` to lead, because its current leader may still lead. */
export const isBoundAgainst = ({ phase, isBound, promised }: State, node: NodeId): boolean =>
  phase.is === "leading" || (isBound && promised.to !== node);

/** Whether the term has ended, as far as this node knows. Messages of lower epochs are ignored. */
export const isOver = ({ promised, released }: State, term: Pledge): boolean =>
  term.epoch < promised.epoch || isSame(released, term);

/** Failover takes at most 0.7 s: the rest of 443 ms, a back-off, and one wait for the crashed node's answer. */
export const epochBullyOptions = optionTable(
  "epoch-bully",
  {
    ...leaseOptions(400, 100),
    answerMs: positive(
      60,
      "the initial round-trip time; a node that gets too few answers in time doubles it, up to `leaseMs`",
    ),
    minBackOffMs: positive(10, "the shortest random wait before a node starts an election"),
    maxBackOffMs: positive(80, "the longest random wait before a node starts an election"),
    ranks: ranksOption,
    preVote: flag(
      true,
      "whether a node first asks whether a majority would vote for it; without the pre-vote, each election saves two messages per peer, but a node that cannot reach a majority raises epochs",
    ),
    takesOver: flag(true, "whether a higher node takes over from a working leader, as in the textbook"),
    stands: flag(true, "whether nodes become candidates when they start"),
  },
  (options, refuse) => {
    requireLease(options, refuse);
    const { minBackOffMs, maxBackOffMs } = options;
    if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
  },
);

/** Options of `epochBully()`. */
export type EpochBullyOptions = OptionsOf<typeof epochBullyOptions>;

/** Votes take a round trip and two journal writes, which may take as long. */
export const VOTE_TRIPS = 2;

/** Durations that follow from the options. */
interface Timing {
  /** How long a node that votes or confirms is bound. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** How long a node defers to a higher one: enough for a back-off, a pre-vote and a vote. */
  readonly deferenceMs: number;
}

export const timing = ({ leaseMs, drift, answerMs, minBackOffMs, maxBackOffMs }: EpochBullyOptions): Timing => ({
  boundsMs: boundMs(leaseMs, drift),
  backOff: [minBackOffMs, maxBackOffMs],
  deferenceMs: maxBackOffMs + (1 + VOTE_TRIPS) * answerMs,
});

type Declarations = Pick<Protocol<EpochBully>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view">;

const pledge = struct<Pledge>({ epoch: natural, to: natural });

export const declarations = (takesOver: boolean): Declarations => ({
  shapes: {
    message: {
      election: { promised: natural, released: nullable(pledge), rank: real },
      answer: { promised: natural, boundTo: nullable(natural), isAbove: boolean },
      requestVote: { epoch: natural, released: nullable(pledge) },
      voteGranted: { epoch: natural },
      coordinator: { epoch: natural, round: natural, rank: real },
      confirm: { epoch: natural, round: natural },
      displace: { epoch: natural, rank: real },
      resign: { epoch: natural, successor: nullable(natural) },
    },
    command: {
      call: {},
      suspect: { node: natural },
      restore: { node: natural },
      resign: {},
      stand: {},
      rank: { rank: real },
    },
    record: { promised: { epoch: natural, to: natural } },
  },
  source: "García-Molina, IEEE ToC 1982; hardened as by Lamport 2001, Gray & Cheriton 1989, Ongaro 2014",
  assumes: [
    "crash-recovery nodes with a journal",
    "for one leader at a time: clocks within the margin, no pauses",
    "for liveness: a majority alive; eventually reliable links and bounded delay",
  ],
  properties: [oneLeaderPerEpoch, epochsGrow, oneLeaderAtATime, agreement, ...(takesOver ? [preference] : [])],
  costs: [
    { when: "one uncontended election", messages: (nodes) => 6 * (nodes - 1) },
    { when: "one round of renewals", messages: (nodes) => 2 * (nodes - 1) },
  ],
  view: (state, self) => ({ role: roleOf(state), leader: leaderOf(state, self), term: state.promised.epoch }),
});

const roles = {
  following: "follower",
  preVoting: "pre-voting",
  displacing: "displacing",
  requestingVotes: "requesting votes",
  leading: "leader",
} as const;

function roleOf({ phase, isCandidate }: State): string {
  if (!isCandidate && phase.is !== "leading") return "not a candidate";
  return roles[phase.is];
}

const oneLeaderPerEpoch: Property<EpochBully> = {
  name: "one leader per epoch",
  claim: "no two nodes lead, have led or are known to have led the same epoch",
  when: "always",
  holds({ alive, state }) {
    const leaders = new Map<number, NodeId>();
    return alive.every((node) => {
      const { term } = state(node);
      if (term === null) return true;
      const known = leaders.get(term.epoch) ?? term.leader;
      leaders.set(term.epoch, known);
      return known === term.leader;
    });
  },
};

const epochsGrow: Property<EpochBully> = {
  name: "epochs grow",
  claim: "no node knows a leader of an epoch above the last one it promised",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => (state(node).term?.epoch ?? 0) <= state(node).promised.epoch),
};

const oneLeaderAtATime: Property<EpochBully> = {
  name: "one leader at a time",
  claim:
    "no two nodes lead at the same time, regardless of delays, if clocks stay within the margin and no node is paused",
  when: "always",
  holds: (world) => leadersOf(world).length <= 1,
};

const agreement: Property<EpochBully> = {
  name: "E2 liveness",
  claim:
    "eventually one node leads and all live nodes follow it, if a majority is alive and at least one node is a candidate",
  when: "eventually",
  holds(world) {
    const { alive, state } = world;
    const mayLead = alive.length > 0 && alive.length >= state(alive[0] as NodeId).quorum;
    if (!mayLead || !alive.some((node) => state(node).isCandidate)) return true;
    const [leader] = leadersOf(world);
    return leader !== undefined && alive.every((node) => leaderOf(state(node), node) === leader);
  },
};

const preference: Property<EpochBully> = {
  name: "E1 preference",
  claim: "eventually no candidate outranks the leader",
  when: "eventually",
  holds: (world) =>
    leadersOf(world).every((leader) => {
      const { rank } = world.state(leader);
      return world.alive.every((node) => {
        const other = world.state(node);
        return !other.isCandidate || other.rank < rank || (other.rank === rank && node <= leader);
      });
    }),
};

const leadersOf = ({ alive, state }: World<State>): NodeId[] =>
  alive.filter((node) => state(node).phase.is === "leading");
