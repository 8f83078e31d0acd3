/** Types and options of Multi-Paxos: its state, messages, commands, events and records. */
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

/** The options shared with Cheap Paxos. */
export const paceOptions = {
  ...leaseOptions(400, 100),
  answerMs: positive(60, "a candidate retries after a random time between this and twice this"),
  minBackOffMs: positive(10, "the shortest random wait before a node becomes a candidate"),
  maxBackOffMs: positive(150, "the longest random wait before a node becomes a candidate"),
  window: count(
    16,
    "how many slots beyond the decided ones may be proposed; a new membership takes effect that many slots later",
  ),
  keep: whole(64, "how many decided slots before a snapshot are kept, for nodes that lag a little"),
  maxWaiting: count(
    1_000,
    "the maximum number of commands and reads that wait at a node; further ones are dropped, and the client retries",
  ),
  reads: option(
    oneOf("confirmed", "lease"),
    "confirmed",
    "a leader confirms its leadership with a majority before each read, or relies on its lease and therefore on clocks",
  ),
  announces: flag(
    true,
    "whether a decision is sent at once if no later proposal carries it; otherwise it waits for the next heartbeat",
  ),
};

type PaceOptions = ValuesOf<typeof paceOptions>;

/** @throws UsageError if the times contradict each other. */
export function requirePace(options: PaceOptions, refuse: Refuse<PaceOptions>): void {
  requireLease(options, refuse);
  const { minBackOffMs, maxBackOffMs } = options;
  if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
}

const multiPaxosOptions = optionTable(
  "multi-paxos",
  {
    ...paceOptions,
    voters: option(nodeIds(MAX_MEMBERS), [], "the initial voters; empty: all nodes that are not learners"),
    learners: option(nodeIds(MAX_MEMBERS), [], "the initial learners, which learn decisions but do not vote"),
  },
  requirePace,
);

export type MultiPaxosOptions = OptionsOf<typeof multiPaxosOptions>;

/** The options, and values derived from them. */
export interface Settings extends MultiPaxosOptions {
  /** How long a promise or confirmation binds a node. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** An acceptor accepts nothing that is this far beyond its decided slots: it catches up first. */
  readonly tail: number;
  /** A main node counts as failed after this many unconfirmed heartbeats; 0: never. */
  readonly suspectAfter: number;
}

/** The largest distance between the window and the slowest member of a quorum, plus a reconfiguration. */
const TAIL_WINDOWS = 4;

/** @throws UsageError if an option is not valid. */
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

/** Unique, since it contains the node and the node's round only grows. */
export interface Ballot {
  round: number;
  node: NodeId;
}

/** The value of a slot. */
export type Value =
  | { type: "command"; command: Command }
  /** Fills a gap left by a leader, or fills slots until new members take effect. */
  | { type: "noop" }
  | ({ type: "members" } & Members);

export interface Proposal {
  ballot: Ballot;
  value: Value;
}

export interface SlotProposal extends Proposal {
  slot: number;
}

/** The acceptors and learners for slots from `from` on. */
export interface Configuration extends Members {
  from: number;
}

/** Replaces all slots up to `index`. `configurations` holds those known at that slot, in effect or not. */
export interface Snapshot {
  index: number;
  text: string;
  configurations: Configuration[];
}

/**
 * A read requested at a node. It may be served once a heartbeat round from `round` on is confirmed and the node has
 * emitted all slots up to `index`.
 */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
  round: number;
}

/** Phase 1 of a ballot, which covers all slots that its proposer does not know to be decided. */
interface Attempt {
  ballot: Ballot;
  /** The nodes that have promised, including this one. */
  promises: NodeId[];
  /** The accepted proposal with the highest ballot in each slot, as reported by promises. */
  found: Record<number, Proposal>;
  /** Whether auxiliaries are asked, too. */
  isEngaged: boolean;
}

export interface Candidate extends Attempt {
  is: "candidate";
  /** The highest decided slot in any promise, received from `source`. The candidate learns all slots up to it first. */
  target: number;
  source: NodeId;
  /** A whole attempt has passed without enough promises. */
  isHalted: boolean;
  /** The ballot of the leader that has stepped down for this node, which releases nodes bound to it. */
  released: Ballot | null;
}

/** The leader's view of another node: its unconfirmed heartbeats, and the last slot that it knows to be decided. */
interface Follower {
  silent: number;
  decided: number;
}

export interface Leader extends Attempt {
  is: "leader";
  /** The slot of the next proposal. */
  next: number;
  /** The nodes that have accepted the proposal in each undecided slot. */
  votes: Record<number, NodeId[]>;
  /**
   * Lower slots were proposed before the last heartbeat. Nodes that have not accepted them by the next one are asked
   * again.
   */
  resendBelow: number;
  /** The last decided slot that a notice or proposal has carried. */
  announced: number;
  /** The heartbeat round. The next one begins when a majority has confirmed this one. */
  round: number;
  confirms: NodeId[];
  /**
   * The nodes that confirmed the last round that a majority confirmed. They help no other node to lead until its timer
   * expires.
   */
  lease: NodeId[];
  reads: Read[];
  followers: PerNode<Follower>;
  /** A requested membership that is not proposed yet. */
  wanted: Members | null;
  /** The highest slot that auxiliaries may hold and have to drop later; 0: none. */
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
    /** While the timer `bound` runs, this node promises only to the node that has its promise. */
    isBound: boolean;
    leader: NodeId | null;
    /** Journalled: the accepted proposals by slot. Those up to `decided` are decided. */
    log: Record<number, Proposal>;
    decided: number;
    snapshot: Snapshot | null;
    /** Ascending. The configuration of a slot is the last one with `from` at or below it. */
    configurations: Configuration[];
    /** Commands that wait for a slot, or for a leader. */
    waiting: Command[];
    /** Reads of this node that wait until the slots up to their index are emitted here. */
    reads: { read: number; index: number }[];
    /** The part of a snapshot received so far. */
    incoming: { index: number; text: string } | null;
    /** The node has replayed its journal and has not yet passed it to the state machine. Requests wait meanwhile. */
    isRestored: boolean;
    /** Acceptors that are idle unless a main node is silent, as in Cheap Paxos. */
    auxiliaries: NodeId[];
  };
  message: /** Phase 1a, for all slots from `from` on. */
    | { type: "prepare"; ballot: Ballot; from: number; released: Ballot | null }
    /** Phase 1b. `rest`: the first slot that did not fit and must be requested again; null: everything did. */
    | { type: "promise"; ballot: Ballot; decided: number; accepted: SlotProposal[]; rest: number | null }
    /** Phase 2a. All slots up to `decided` are decided. */
    | ({ type: "accept"; decided: number } & SlotProposal)
    /** Phase 2b. */
    | { type: "accepted"; ballot: Ballot; slot: number; decided: number }
    /** `promised` is higher, or this node is bound to `leader`. */
    | { type: "nack"; ballot: Ballot; promised: Ballot; decided: number; leader: NodeId | null }
    /** Sent if no further proposal carries the decision. */
    | { type: "decided"; ballot: Ballot; decided: number }
    | { type: "heartbeat"; ballot: Ballot; round: number; decided: number }
    | { type: "confirm"; ballot: Ballot; round: number; decided: number }
    /**
     * Requests the decided slots after `decided`. The node has the first `offset` characters of the snapshot up to
     * `index`.
     */
    | { type: "catchUp"; decided: number; index: number; offset: number }
    /** Decided slots in order. */
    | { type: "learn"; decided: number; entries: SlotProposal[] }
    | {
        type: "chunk";
        index: number;
        offset: number;
        text: string;
        isLast: boolean;
        configurations: Configuration[];
      }
    /** Passes a request from a follower to the leader. */
    | { type: "forward"; command: Command }
    | { type: "forwardMembers"; members: Members }
    | { type: "forwardRead"; read: number }
    | { type: "forwardTransfer"; to: NodeId }
    /** The leader of this ballot has stepped down and asks the receiver to lead. */
    | { type: "takeOver"; ballot: Ballot }
    | { type: "readAt"; read: number; index: number }
    /** To an auxiliary: all main nodes know the decided slots up to `index`. */
    | { type: "forget"; ballot: Ballot; index: number };
  timer: /** When a follower becomes a candidate, or a candidate asks again. */
  "election" | "bound" | "heartbeat" | LeaseTimer;
  command: Exclude<ReplicatedLog["command"], { type: "reply" }>;
  event: ReplicatedLog["event"];
  record:
    | { type: "promised"; ballot: Ballot }
    /** `decided` is the last slot known to be decided at that time. */
    | ({ type: "accepted"; decided: number } & SlotProposal)
    | { type: "snapshot"; index: number; configurations: Configuration[] }
    /** The next part of the snapshot's text. */
    | { type: "snapshotText"; text: string }
    /** At an auxiliary: the main nodes have all slots up to `index`. */
    | { type: "forgotten"; index: number };
};

export type State = MultiPaxos["state"];

export const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
export const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;

/** Whether this acceptor has promised to ignore the ballot. */
export const isStale = ({ promised }: State, ballot: Ballot): boolean => isBelow(ballot, promised);

/** A ballot is used by its own node only. */
export const isForeign = (from: NodeId, { node }: Ballot): boolean => node !== from;

/** @returns the attempt with this ballot, if it is in progress at this node. */
export const attemptOf = ({ role }: State, ballot: Ballot): Candidate | Leader | null =>
  role.is !== "follower" && isSame(role.ballot, ballot) ? role : null;

// The acceptors and learners of each slot. Members decided in a slot take effect `window` slots later. No slot is
// proposed before all slots that far below it are decided, so a proposer always knows the acceptors of a slot.
// Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010, §2 (there the window is α).

export function configurationAt({ configurations }: State, slot: number): Configuration {
  return configurations.findLast(({ from }) => from <= slot) ?? (configurations[0] as Configuration);
}

/** The configuration of the first undecided slot. */
export const currentConfiguration = (state: State): Configuration => configurationAt(state, state.decided + 1);

/** The configuration that is decided and not in effect yet; null if there is none. */
export const pendingConfiguration = ({ configurations, decided }: State): Configuration | null =>
  configurations.findLast(({ from }) => from > decided + 1) ?? null;

/** Any two quorums of a slot intersect. */
export const hasMajority = ({ voters }: Members, nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

export const isSameMembers = (a: Members, b: Members): boolean =>
  JSON.stringify([a.voters, a.learners]) === JSON.stringify([b.voters, b.learners]);

/** Whether the membership is valid: at least one voter, no node twice, and only known nodes. */
export function isMembership({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

export const sorted = ({ voters, learners }: Members): Members => ({
  voters: [...voters].sort((a, b) => a - b),
  learners: [...learners].sort((a, b) => a - b),
});

export const isAuxiliary = ({ auxiliaries }: State, node: NodeId): boolean => auxiliaries.includes(node);

/** @returns the nodes that an attempt asks; they include auxiliaries only when needed. */
export const asked = (state: State, { isEngaged }: Attempt, nodes: readonly NodeId[], self: NodeId): NodeId[] =>
  nodes.filter((node) => node !== self && (isEngaged || !isAuxiliary(state, node)));

/** @returns the voters of the undecided slots. */
export function votersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(currentConfiguration(state).voters, pending?.voters ?? []);
}

/** @returns all nodes that a leader sends to. */
export function membersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(votersAhead(state), currentConfiguration(state).learners, pending?.learners ?? []);
}

const union = (...sets: readonly (readonly NodeId[])[]): NodeId[] => [...new Set(sets.flat())].sort((a, b) => a - b);
