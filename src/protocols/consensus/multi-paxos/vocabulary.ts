/** The words of Multi-Paxos: its state, what is sent, journalled and said, and what can be told from a state. */
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { oneOf } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, requireLease } from "../../leases.ts";
import {
  count,
  flag,
  nodeIds,
  type OptionsOf,
  option,
  optionTable,
  positive,
  type Refuse,
  type ValuesOf,
  whole,
} from "../../options.ts";
import { type Command, MAX_MEMBERS, type Members, type ReplicatedLog } from "../family/replicated-log.ts";

/** The options that Cheap Paxos has, too. */
export const paceOptions = {
  ...leaseOptions(400, 100),
  answerMs: positive(60, "a candidate asks again after this time, up to twice as long"),
  minBackOffMs: positive(10, "the least random wait before a node becomes a candidate"),
  maxBackOffMs: positive(150, "the longest random wait before a node becomes a candidate"),
  window: count(
    16,
    "how many slots beyond the decided ones may be proposed, and how many slots later a new membership takes effect",
  ),
  keep: whole(64, "how many decided slots are kept behind a snapshot, for nodes that lag a little"),
  maxWaiting: count(
    1_000,
    "how many commands and reads wait at a node; further ones are dropped, and the client asks again",
  ),
  reads: option(
    oneOf("confirmed", "lease"),
    "confirmed",
    "a leader asks a majority before each read, or relies on its lease and so on clocks",
  ),
  announces: flag(
    true,
    "whether a decision is sent at once if no further proposal would carry it, or with the next heartbeat",
  ),
};

type PaceOptions = ValuesOf<typeof paceOptions>;

/** @throws UsageError */
export function requirePace(options: PaceOptions, refuse: Refuse<PaceOptions>): void {
  requireLease(options, refuse);
  const { minBackOffMs, maxBackOffMs } = options;
  if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
}

const multiPaxosOptions = optionTable(
  "multi-paxos",
  {
    ...paceOptions,
    voters: option(nodeIds(MAX_MEMBERS), [], "the nodes that vote at first; empty: all that are not learners"),
    learners: option(nodeIds(MAX_MEMBERS), [], "the nodes that learn decisions and do not vote at first"),
  },
  requirePace,
);

export type MultiPaxosOptions = OptionsOf<typeof multiPaxosOptions>;

/** The options, and what follows from them. */
export interface Settings extends MultiPaxosOptions {
  /** How long a node that promises or confirms is bound. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** An acceptor takes nothing that is so far beyond what it knows to be decided: first it catches up. */
  readonly tail: number;
  /** After so many heartbeats that it has not confirmed a main node counts as failed; 0: never. */
  readonly suspectAfter: number;
}

/** As far as the window can be from what the slowest of a quorum knows, with a reconfiguration on top. */
const TAIL_WINDOWS = 4;

/** @throws UsageError */
export function settled(given: Partial<MultiPaxosOptions> | undefined): Settings {
  return settings(multiPaxosOptions.settle(given), 0);
}

export function settings(options: MultiPaxosOptions, suspectAfter: number): Settings {
  const { leaseMs, drift, minBackOffMs, maxBackOffMs, window } = options;
  return {
    ...options,
    boundsMs: boundMs(leaseMs, drift),
    backOff: [minBackOffMs, maxBackOffMs],
    tail: TAIL_WINDOWS * window,
    suspectAfter,
  };
}

/** Unique, since the node is part of it and its round only grows. */
export interface Ballot {
  round: number;
  node: NodeId;
}

/** What stands in a slot of the log. */
export type Value =
  | { type: "command"; command: Command }
  /** Fills a gap that a leader has left, or brings new members into effect. */
  | { type: "noop" }
  | ({ type: "members" } & Members);

export interface Proposal {
  ballot: Ballot;
  value: Value;
}

export interface SlotProposal extends Proposal {
  slot: number;
}

/** Who the acceptors and learners of the slots from this one on are. */
export interface Configuration extends Members {
  from: number;
}

/** Stands for all slots up to `index`. `configurations`: those that are known by then, in effect or not. */
export interface Snapshot {
  index: number;
  text: string;
  configurations: Configuration[];
}

/** A read that was asked for at a node: up to date once a round of heartbeats from this one on is confirmed and `index` has been told. */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
  round: number;
}

/** Phase 1 of a ballot: once, for all slots that its proposer does not know to be decided. */
interface Attempt {
  ballot: Ballot;
  /** Who has promised, itself included. */
  promises: NodeId[];
  /** Of each slot, what was accepted with the highest ballot of which a promise has told. */
  found: Record<number, Proposal>;
  /** Whether auxiliaries are asked, too. */
  isEngaged: boolean;
}

export interface Candidate extends Attempt {
  is: "candidate";
  /** Up to here all is decided, says the promise of `source`: that is learnt first. */
  target: number;
  source: NodeId;
  /** A whole attempt has gone by without enough promises. */
  isHalted: boolean;
  /** The ballot of the leader that has stepped down for this node: who is bound to it is free. */
  released: Ballot | null;
}

/** What a leader knows of another node: how many heartbeats it owes, and up to where it has been told what is decided. */
interface Follower {
  silent: number;
  decided: number;
}

export interface Leader extends Attempt {
  is: "leader";
  /** The slot of the next proposal. */
  next: number;
  /** Who has accepted what it proposed in slots that are not decided. */
  votes: Record<number, NodeId[]>;
  /** Slots below were proposed before the last heartbeat: nodes that have not accepted by the next are asked again. */
  resendBelow: number;
  /** Up to where a notice or a proposal has told what is decided. */
  announced: number;
  /** Of heartbeats. The next begins when a majority has confirmed this one. */
  round: number;
  confirms: NodeId[];
  /** Who has confirmed the last round of which a majority did: they help nobody else to lead until its timer runs out. */
  lease: NodeId[];
  reads: Read[];
  followers: PerNode<Follower>;
  /** Asked for, and not proposed yet. */
  wanted: Members | null;
  /** The highest slot that auxiliaries may have been asked to accept, and are still to be told to forget. */
  auxiliariesHold: number;
}

type Role = { is: "follower" } | Candidate | Leader;

export type MultiPaxos = {
  state: {
    role: Role;
    /** The highest round that this node knows of. */
    round: number;
    /** Journalled: the acceptor ignores all ballots below this one. */
    promised: Ballot;
    /** While the timer `bound` runs: no promise to anybody but the node that has the promise. */
    isBound: boolean;
    leader: NodeId | null;
    /** Journalled: what has been accepted, by slot. Up to `decided` it is decided. */
    log: Record<number, Proposal>;
    decided: number;
    snapshot: Snapshot | null;
    /** Ascending. The last one that is not above a slot is that slot's. */
    configurations: Configuration[];
    /** Commands that wait for a slot, or for a leader to become known. */
    waiting: Command[];
    /** Reads of this node that wait until all up to their index has been told here. */
    reads: { read: number; index: number }[];
    /** So much of a snapshot has come. */
    incoming: { index: number; text: string } | null;
    /** Has its journal back and has not told the state machine of it yet: what is asked for meanwhile waits. */
    isRestored: boolean;
    /** Acceptors that are idle unless a main one is silent: Cheap Paxos has them. */
    auxiliaries: NodeId[];
  };
  message: /** Phase 1a, for all slots from this one on. */
    | { type: "prepare"; ballot: Ballot; from: number; released: Ballot | null }
    /** Phase 1b. `rest`: from this slot on there is more, which is to be asked for; null: that was all. */
    | { type: "promise"; ballot: Ballot; decided: number; accepted: SlotProposal[]; rest: number | null }
    /** Phase 2a. All slots up to `decided` are. */
    | ({ type: "accept"; decided: number } & SlotProposal)
    /** Phase 2b. */
    | { type: "accepted"; ballot: Ballot; slot: number; decided: number }
    /** `promised` is higher, or this node is bound to the node that leads in its eyes. */
    | { type: "nack"; ballot: Ballot; promised: Ballot; decided: number; leader: NodeId | null }
    /** Where no proposal follows that would tell it. */
    | { type: "decided"; ballot: Ballot; decided: number }
    | { type: "heartbeat"; ballot: Ballot; round: number; decided: number }
    | { type: "confirm"; ballot: Ballot; round: number; decided: number }
    /** Asks for what is decided from there on. So much of the snapshot up to `index` it has. */
    | { type: "catchUp"; decided: number; index: number; offset: number }
    /** Decided, one after the other. */
    | { type: "learn"; decided: number; entries: SlotProposal[] }
    | {
        type: "chunk";
        index: number;
        offset: number;
        text: string;
        isLast: boolean;
        configurations: Configuration[];
      }
    /** What was proposed at a node that does not lead, to the node that does. */
    | { type: "forward"; command: Command }
    | { type: "forwardMembers"; members: Members }
    | { type: "forwardRead"; read: number }
    | { type: "forwardTransfer"; to: NodeId }
    /** The leader of this ballot leads no longer, and asks the receiver to. */
    | { type: "takeOver"; ballot: Ballot }
    | { type: "readAt"; read: number; index: number }
    /** To an auxiliary: all main nodes know what is decided up to here. */
    | { type: "forget"; ballot: Ballot; index: number };
  timer: /** When a follower stands for election, and a candidate asks again. */
  "election" | "bound" | "heartbeat" | LeaseTimer;
  command: Exclude<ReplicatedLog["command"], { type: "reply" }>;
  event: ReplicatedLog["event"];
  record:
    | { type: "promised"; ballot: Ballot }
    /** `decided`: how much was known to be by then. */
    | ({ type: "accepted"; decided: number } & SlotProposal)
    | { type: "snapshot"; index: number; configurations: Configuration[] }
    /** What comes next of its text. */
    | { type: "snapshotText"; text: string }
    /** An auxiliary's: the main nodes have all up to here. */
    | { type: "forgotten"; index: number };
};

export type State = MultiPaxos["state"];

export const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
export const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;

/** Of ballots that this acceptor has promised to ignore. */
export const isStale = ({ promised }: State, ballot: Ballot): boolean => isBelow(ballot, promised);

/** A ballot is used by its own node alone. */
export const isForeign = (from: NodeId, { node }: Ballot): boolean => node !== from;

/** The attempt of this ballot, if this node is at it. */
export const attemptOf = ({ role }: State, ballot: Ballot): Candidate | Leader | null =>
  role.is !== "follower" && isSame(role.ballot, ballot) ? role : null;

// Who accepts and learns which slots. Members that are decided in a slot are in effect `window` slots later, and no slot is
// proposed before all that stand so far below it are decided: so a proposer always knows the acceptors of a slot.
// Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010, §2 (there the window is α).

export function configurationAt({ configurations }: State, slot: number): Configuration {
  return configurations.findLast(({ from }) => from <= slot) ?? (configurations[0] as Configuration);
}

/** Of the first slot that is not decided. */
export const currentConfiguration = (state: State): Configuration => configurationAt(state, state.decided + 1);

/** Decided, and not in effect yet. */
export const pendingConfiguration = ({ configurations, decided }: State): Configuration | null =>
  configurations.findLast(({ from }) => from > decided + 1) ?? null;

/** The quorums of a slot: any two meet. */
export const hasMajority = ({ voters }: Members, nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

export const isSameMembers = (a: Members, b: Members): boolean =>
  JSON.stringify([a.voters, a.learners]) === JSON.stringify([b.voters, b.learners]);

/** Whether these may be the members: some voters, all of them nodes that there are, each once. */
export function isMembership({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

export const sorted = ({ voters, learners }: Members): Members => ({
  voters: [...voters].sort((a, b) => a - b),
  learners: [...learners].sort((a, b) => a - b),
});

export const isAuxiliary = ({ auxiliaries }: State, node: NodeId): boolean => auxiliaries.includes(node);

/** Those of these nodes that an attempt asks: auxiliaries only when it must. */
export const asked = (state: State, { isEngaged }: Attempt, nodes: readonly NodeId[], self: NodeId): NodeId[] =>
  nodes.filter((node) => node !== self && (isEngaged || !isAuxiliary(state, node)));

/** Voters of the slots that are not decided. */
export function votersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(currentConfiguration(state).voters, pending?.voters ?? []);
}

/** Everybody who is to hear from a leader. */
export function membersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(votersAhead(state), currentConfiguration(state).learners, pending?.learners ?? []);
}

const union = (...sets: readonly (readonly NodeId[])[]): NodeId[] => [...new Set(sets.flat())].sort((a, b) => a - b);
