/** The words of epoch-bully: its state, what is sent, journalled and said, and what can be told from a state. */
import type { Context, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { boolean, natural, nullable, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, requireLease } from "../../leases.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";
import { ranksOption } from "../parts/ranks.ts";

/** That nobody else is helped to lead this epoch. At first everybody has promised epoch 0, in which nobody leads, to itself. */
export interface Pledge {
  epoch: number;
  to: NodeId;
}

/** A term of leadership: who leads an epoch, with which rank. */
export interface Term {
  epoch: number;
  leader: NodeId;
  rank: number;
}

export type EpochBully = {
  state: {
    phase: Phase;
    /** Journalled. Its epoch never goes back. */
    promised: Pledge;
    /** While the timer `bound` runs: no vote for anybody but the node that the promise was made to. */
    isBound: boolean;
    /** The last promise known to have been given back by the node that it was made to. */
    released: Pledge | null;
    /** The last leader that this node has known. It follows that leader while it is bound to it. */
    term: Term | null;
    /** This node's own. */
    rank: number;
    /** Whether it stands for election. */
    isCandidate: boolean;
    /** Has let somebody higher go first, and in vain: the next time it does not. Spent by the vote that comes of it. */
    insists: boolean;
    /** How many pre-votes in a row have heard from less than a majority in time: each doubles all waits of the next election. */
    patience: number;
    /** Ascending. */
    suspected: NodeId[];
    /** How many nodes, this one included, make a majority. */
    quorum: number;
  };
  message: /** May there be an election? Changes nothing for the node that is asked. `promised`: the sender's own, so far. */
    | { type: "election"; promised: number; released: Pledge | null; rank: number }
    /** `boundTo`: nobody else may lead. `isAbove`: stands and outranks the asker. */
    | { type: "answer"; promised: number; boundTo: NodeId | null; isAbove: boolean }
    | { type: "requestVote"; epoch: number; released: Pledge | null }
    | { type: "voteGranted"; epoch: number }
    /** Announces the leader at first, and then renews its lease, round by round. */
    | { type: "coordinator"; epoch: number; round: number; rank: number }
    | { type: "confirm"; epoch: number; round: number }
    /** A majority would have the sender, which outranks the leader of the epoch, in its place. */
    | { type: "displace"; epoch: number; rank: number }
    /** The sender does not lead this epoch, or no longer, and never will again. `successor`: the node that it makes way for. */
    | { type: "resign"; epoch: number; successor: NodeId | null };
  timer: /** When the next election is called. */
    | "call"
    /** When an election that this node has called is given up. */
    | "answer"
    | "bound"
    | "renew"
    | LeaseTimer;
  command: /** Calls an election, unless this node leads, or is bound to somebody higher. */
    | { type: "call" }
    /** Nobody waits for the answer of a node that is suspected. */
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Steps down and is no longer a candidate; still follows and votes. */
    | { type: "resign" }
    /** Takes a resignation back. */
    | { type: "stand" }
    /** Of this node, from now on. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId; epoch: number }
    /** At the leader: certain that nobody else leads until the deadline. */
    | { type: "confirmed"; epoch: number }
    /** At the leader: no longer certain. */
    | { type: "deposed"; epoch: number };
  record: { type: "promised"; epoch: number; to: NodeId };
};

export type Ctx = Context<EpochBully>;

type Phase =
  | { is: "following" }
  /** `promised`: the highest epoch that anybody who answered has promised. */
  | { is: "preVoting"; awaited: NodeId[]; backers: NodeId[]; promised: number }
  /** A majority backs this node; the leader is asked to make way. */
  | { is: "displacing"; promised: number }
  /** Asks for votes for the epoch that it has promised itself. */
  | { is: "requestingVotes"; votes: NodeId[] }
  | { is: "leading"; round: number; confirms: NodeId[] };

export type State = EpochBully["state"];

export const isSame = (a: Pledge | null, b: Pledge): boolean => a !== null && a.epoch === b.epoch && a.to === b.to;

/** Who leads in this node's eyes: itself, or the node that it is bound to. */
export function leaderOf({ phase, isBound, promised, term }: State, self: NodeId): NodeId | null {
  if (phase.is === "leading") return self;
  if (!isBound || term === null) return null;
  return term.epoch === promised.epoch && term.leader === promised.to ? term.leader : null;
}

/** Whether this node stands and outranks another. */
export const isAbove = (state: State, self: NodeId, rank: number, node: NodeId): boolean =>
  state.isCandidate && (state.rank > rank || (state.rank === rank && self > node));

export const isAboveLeader = (state: State, self: NodeId): boolean =>
  state.term !== null &&
  leaderOf(state, self) === state.term.leader &&
  isAbove(state, self, state.term.rank, state.term.leader);

export const mayLead = ({ phase }: State): boolean => phase.is === "requestingVotes" || phase.is === "leading";

export const isConfirmed = ({ phase, quorum }: State): boolean =>
  phase.is === "leading" && phase.confirms.length + 1 >= quorum;

/** Whether this node must not help `node` to lead, as the one that it is sure of now may still lead. */
export const isBoundAgainst = ({ phase, isBound, promised }: State, node: NodeId): boolean =>
  phase.is === "leading" || (isBound && promised.to !== node);

/** Of a term that has ended, as far as this node knows. Lower epochs are ignored. */
export const isOver = ({ promised, released }: State, term: Pledge): boolean =>
  term.epoch < promised.epoch || isSame(released, term);

/** A crash is made good within 0.7 s at worst: what is left of 443 ms, a back-off, one wait for the crashed one's answer. */
export const epochBullyOptions = optionTable(
  "epoch-bully",
  {
    ...leaseOptions(400, 100),
    answerMs: positive(
      60,
      "the time of a round trip at first; a node that gets too few answers in time doubles it, up to `leaseMs`",
    ),
    minBackOffMs: positive(10, "the least random wait before a node calls an election"),
    maxBackOffMs: positive(80, "the longest random wait before a node calls an election"),
    ranks: ranksOption,
    preVote: flag(
      true,
      "whether a node first asks if a majority would vote for it; without, two messages fewer for each peer, but a node that cannot reach a majority raises epochs",
    ),
    takesOver: flag(true, "whether a higher node takes over from a working leader, as in the book"),
    stands: flag(true, "whether nodes become candidates when they start"),
  },
  (options, refuse) => {
    requireLease(options, refuse);
    const { minBackOffMs, maxBackOffMs } = options;
    if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
  },
);

export type EpochBullyOptions = OptionsOf<typeof epochBullyOptions>;

/** Votes take a round trip, and two writes to journals, which may take as long. */
export const VOTE_TRIPS = 2;

/** What follows from the options. */
interface Timing {
  /** How long a node that votes or confirms is bound. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** A node that lets a higher one go first gives it time for a back-off, a pre-vote and a vote. */
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
    "for liveness: a majority alive, reliable links and bounded delay in the end",
  ],
  properties: [oneLeaderPerEpoch, epochsGrow, oneLeaderAtATime, agreement, ...(takesOver ? [preference] : [])],
  costs: [
    { when: "one undisturbed election", messages: (nodes) => 6 * (nodes - 1) },
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
  claim: "nobody leads, has led or is known to have led an epoch that another leads",
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
  claim: "nobody knows of a leader of an epoch above the one that it has promised last",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => (state(node).term?.epoch ?? 0) <= state(node).promised.epoch),
};

const oneLeaderAtATime: Property<EpochBully> = {
  name: "one leader at a time",
  claim: "no two nodes lead, whatever the delays, if clocks keep to the margin and nobody is paused",
  when: "always",
  holds: (world) => leadersOf(world).length <= 1,
};

const agreement: Property<EpochBully> = {
  name: "E2 liveness",
  claim: "in the end one node leads and all alive follow it, if a majority is alive and somebody stands",
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
  claim: "in the end nobody that stands outranks the leader",
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
