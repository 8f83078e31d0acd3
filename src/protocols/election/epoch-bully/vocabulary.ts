/** The vocabulary of epoch-bully (its state, messages, journal records and events) and functions on its state. */
import type { Context, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { boolean, natural, nullable, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, requireLease } from "../../leases.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";
import { ranksOption } from "../parts/ranks.ts";

/**
 * A promise not to help any other node lead in this epoch. Initially, each node has promised epoch 0, which has no
 * leader, to itself.
 */
export interface Pledge {
  /** The epoch of the promise. */
  epoch: number;
  /** The node that may lead in this epoch. */
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
    /** The latest promise. It is journaled, and its epoch never decreases. */
    promised: Pledge;
    /**
     * Whether the timer `bound` is running. Until it expires, this node votes only for the node that it has promised.
     */
    isBound: boolean;
    /** The last promise that its recipient is known to have given back. */
    released: Pledge | null;
    /** The latest term that this node knows of. The node follows its leader while bound to that leader. */
    term: Term | null;
    /** This node's own rank. */
    rank: number;
    /** Whether the node is a candidate. */
    isCandidate: boolean;
    /**
     * Whether this node no longer defers to higher nodes, because a higher node objected but then did not become
     * leader. Reset when this node requests votes.
     */
    insists: boolean;
    /**
     * The number of consecutive pre-votes that did not get answers from a majority in time. Each one doubles all waits
     * in the next election.
     */
    patience: number;
    /** In ascending order. */
    suspected: NodeId[];
    /** The number of nodes, including this one, that form a majority. */
    quorum: number;
  };
  message: /** Asks for support (pre-vote). The receiver's state does not change. `promised`: the sender's epoch. */
    | { type: "election"; promised: number; released: Pledge | null; rank: number }
    /**
     * `boundTo`: the only node that the sender lets lead, or null. `isAbove`: whether the sender, as a candidate,
     * outranks the receiver.
     */
    | { type: "answer"; promised: number; boundTo: NodeId | null; isAbove: boolean }
    | { type: "requestVote"; epoch: number; released: Pledge | null }
    | { type: "voteGranted"; epoch: number }
    /** Announces the sender as leader, and then renews its lease in every round. */
    | { type: "coordinator"; epoch: number; round: number; rank: number }
    | { type: "confirm"; epoch: number; round: number }
    /** Asks the leader of the epoch to make way. A majority supports the sender, which outranks that leader. */
    | { type: "displace"; epoch: number; rank: number }
    /**
     * Reports that the sender will not lead in this epoch, or not again. `successor`: the node that it makes way for,
     * or null.
     */
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
    /** Reports a suspected node. Elections do not wait for its answer. */
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Steps down and stops being a candidate. The node still follows leaders and votes. */
    | { type: "resign" }
    /** Withdraws a resignation. */
    | { type: "stand" }
    /** Sets the rank of this node. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId; epoch: number }
    /** At the leader: no other node leads until the lease expires. */
    | { type: "confirmed"; epoch: number }
    /** At the leader: it no longer leads, because its lease has expired or it has given up leadership. */
    | { type: "deposed"; epoch: number };
  record: { type: "promised"; epoch: number; to: NodeId };
};

export type Ctx = Context<EpochBully>;

type Phase =
  | { is: "following" }
  /** `promised`: the highest epoch that this node or a responder has promised. */
  | { is: "preVoting"; awaited: NodeId[]; backers: NodeId[]; promised: number }
  /** A majority supports this node, and it has asked the leader to make way. */
  | { is: "displacing"; promised: number }
  /** The node requests votes for the epoch that it has promised to itself. */
  | { is: "requestingVotes"; votes: NodeId[] }
  | { is: "leading"; round: number; confirms: NodeId[] };

export type State = EpochBully["state"];

export const isSame = (a: Pledge | null, b: Pledge): boolean => a !== null && a.epoch === b.epoch && a.to === b.to;

/** Returns the node's current leader: itself, or the node that it is bound to. Null if it has no leader. */
export function leaderOf({ phase, isBound, promised, term }: State, self: NodeId): NodeId | null {
  if (phase.is === "leading") return self;
  if (!isBound || term === null) return null;
  return term.epoch === promised.epoch && term.leader === promised.to ? term.leader : null;
}

/** Whether this node is a candidate and outranks another node. */
export const isAbove = (state: State, self: NodeId, rank: number, node: NodeId): boolean =>
  state.isCandidate && (state.rank > rank || (state.rank === rank && self > node));

/** Whether this node outranks its current leader. */
export const isAboveLeader = (state: State, self: NodeId): boolean =>
  state.term !== null &&
  leaderOf(state, self) === state.term.leader &&
  isAbove(state, self, state.term.rank, state.term.leader);

/** Whether the node is requesting votes or leading. */
export const mayLead = ({ phase }: State): boolean => phase.is === "requestingVotes" || phase.is === "leading";

/** Whether a quorum has confirmed the current round of this leader's lease. */
export const isConfirmed = ({ phase, quorum }: State): boolean =>
  phase.is === "leading" && phase.confirms.length + 1 >= quorum;

/** Whether this node must not help `node` lead, because its current leader may still be leading. */
export const isBoundAgainst = ({ phase, isBound, promised }: State, node: NodeId): boolean =>
  phase.is === "leading" || (isBound && promised.to !== node);

/** Whether the term has ended, as far as this node knows. Messages from lower epochs are ignored. */
export const isOver = ({ promised, released }: State, term: Pledge): boolean =>
  term.epoch < promised.epoch || isSame(released, term);

/**
 * The options of epoch-bully. With the defaults, failover takes at most 0.7 s: up to 443 ms until the nodes are no
 * longer bound to the leader, a back-off, and one wait for the crashed node's answer.
 */
export const epochBullyOptions = optionTable(
  "epoch-bully",
  {
    ...leaseOptions(400, 100),
    answerMs: positive(
      60,
      "the initial estimate of the round-trip time; a node that gets too few answers in time doubles it, up to `leaseMs`",
    ),
    minBackOffMs: positive(10, "the shortest random wait before a node starts an election"),
    maxBackOffMs: positive(80, "the longest random wait before a node starts an election"),
    ranks: ranksOption,
    preVote: flag(
      true,
      "whether a node first asks if a majority would vote for it; disabling this saves two messages per peer in each election, but then a node that cannot reach a majority keeps raising the epoch",
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

/** Options for `epochBully()`. */
export type EpochBullyOptions = OptionsOf<typeof epochBullyOptions>;

/**
 * The number of round trips that a vote may take. The second one allows for two journal writes, which may take just as
 * long.
 */
export const VOTE_TRIPS = 2;

/** Durations derived from the options. */
interface Timing {
  /** How long a node is bound after it votes or confirms a lease. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** How long a node defers to a higher one: long enough for a back-off, a pre-vote and a vote. */
  readonly deferenceMs: number;
}

export const timing = ({ leaseMs, drift, answerMs, minBackOffMs, maxBackOffMs }: EpochBullyOptions): Timing => ({
  boundsMs: boundMs(leaseMs, drift),
  backOff: [minBackOffMs, maxBackOffMs],
  deferenceMs: maxBackOffMs + (1 + VOTE_TRIPS) * answerMs,
});

type Declarations = Pick<Protocol<EpochBully>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view">;

const pledge = struct<Pledge>({ epoch: natural, to: natural });

/** Declares the shapes, assumptions, properties and costs. */
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
  source: "García-Molina, IEEE ToC 1982; hardened as in Lamport 2001, Gray & Cheriton 1989, Ongaro 2014",
  assumes: [
    "crash-recovery nodes with a journal",
    "for one leader at a time: clock drift within the configured margin, no process pauses",
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
  claim: "all live nodes that know the leader of an epoch agree on it",
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
  claim: "no node knows of a leader in an epoch above the last one that the node promised",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => (state(node).term?.epoch ?? 0) <= state(node).promised.epoch),
};

const oneLeaderAtATime: Property<EpochBully> = {
  name: "one leader at a time",
  claim:
    "no two nodes lead at the same time, regardless of delays, if clock drift stays within the configured margin and no node is paused",
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
