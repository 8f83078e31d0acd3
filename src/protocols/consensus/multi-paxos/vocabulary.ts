/** The types and options of Multi-Paxos: its state, messages, commands, events and records. */
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
  keep: whole(64, "how many decided slots before a snapshot are kept, for nodes that are slightly behind"),
  maxWaiting: count(
    1_000,
    "the maximum number of commands and reads that wait at a node; any more are dropped, and the client retries",
  ),
  reads: option(
    oneOf("confirmed", "lease"),
    "confirmed",
    "whether a leader confirms its leadership with a majority before each read, or relies on its lease and therefore on clocks",
  ),
  announces: flag(
    true,
    "whether a decision is sent at once if no later proposal carries it; otherwise it waits for the next heartbeat",
  ),
};

type PaceOptions = ValuesOf<typeof paceOptions>;

/** Checks the times. @throws UsageError if they contradict each other */
export function requirePace(options: PaceOptions, refuse: Refuse<PaceOptions>): void {
  requireLease(options, refuse);
  const { minBackOffMs, maxBackOffMs } = options;
  if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
}

const multiPaxosOptions = optionTable(
  "multi-paxos",
  {
    ...paceOptions,
    voters: option(nodeIds(MAX_MEMBERS), [], "the initial voters; if empty, all nodes that are not learners"),
    learners: option(nodeIds(MAX_MEMBERS), [], "the initial learners, which learn decisions but do not vote"),
  },
  requirePace,
);

/** Options for `multiPaxos()`. */
export type MultiPaxosOptions = OptionsOf<typeof multiPaxosOptions>;

/** The options, and values derived from them. */
export interface Settings extends MultiPaxosOptions {
  /** The time for which a promise or confirmation binds a node. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /**
   * An acceptor accepts proposals for up to this many slots beyond its decided ones. Beyond that, it catches up first.
   */
  readonly tail: number;
  /** A main node counts as failed after this number of unconfirmed heartbeats. 0 means never. */
  readonly suspectAfter: number;
}

/**
 * The value of `tail` in multiples of the window: the largest distance to the slowest member of a quorum, plus a
 * reconfiguration.
 */
const TAIL_WINDOWS = 4;

/** Returns the settings for these options. @throws UsageError if an option is not valid */
export function settled(given: Partial<MultiPaxosOptions> | undefined): Settings {
  return settings(multiPaxosOptions.settle(given), 0);
}

/** Derives the settings from the options. */
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

/** A proposal number. It is unique, because it contains the node's id, and the node's round only increases. */
export interface Ballot {
  round: number;
  node: NodeId;
}

/** The value of a slot. */
export type Value =
  | { type: "command"; command: Command }
  /** Fills a gap that an earlier leader left, or slots until new members take effect. */
  | { type: "noop" }
  | ({ type: "members" } & Members);

/** A value with its ballot. */
export interface Proposal {
  ballot: Ballot;
  value: Value;
}

/** A proposal with its slot. */
export interface SlotProposal extends Proposal {
  slot: number;
}

/** The acceptors and learners for the slots from `from` onward. */
export interface Configuration extends Members {
  from: number;
}

/**
 * A snapshot that replaces all slots up to `index`. `configurations` contains the configurations known at that slot,
 * including any not yet in effect.
 */
export interface Snapshot {
  index: number;
  text: string;
  configurations: Configuration[];
}

/**
 * A read requested at a node. It may be served once the heartbeat round `round` or a later one is confirmed and the
 * node has emitted all slots up to `index`.
 */
export interface Read {
  node: NodeId;
  read: number;
  index: number;
  round: number;
}

/** The state of phase 1 of a ballot. It covers all slots that the proposer does not know to be decided. */
interface Attempt {
  ballot: Ballot;
  /** The nodes that have promised, including this one. */
  promises: NodeId[];
  /** For each slot: the accepted proposal with the highest ballot that promises have reported. */
  found: Record<number, Proposal>;
  /** Whether auxiliaries are included. */
  isEngaged: boolean;
}

/** The state of a node in phase 1. */
export interface Candidate extends Attempt {
  is: "candidate";
  /** The highest decided slot in any promise, received from `source`. The candidate learns all slots up to it first. */
  target: number;
  source: NodeId;
  /** Whether an attempt has timed out without enough promises. */
  isHalted: boolean;
  /** The ballot of the leader that has stepped down for this node, which releases nodes bound to it. */
  released: Ballot | null;
}

/**
 * The leader's view of another node: the number of unconfirmed heartbeats, and the last slot that the node knows to be
 * decided.
 */
interface Follower {
  silent: number;
  decided: number;
}

/** The state of a node in phase 2. */
export interface Leader extends Attempt {
  is: "leader";
  /** The slot of the next proposal. */
  next: number;
  /** For each undecided slot: the nodes that have accepted the proposal. */
  votes: Record<number, NodeId[]>;
  /**
   * The first slot not yet proposed at the last heartbeat. At the next heartbeat, the leader resends the proposals for
   * lower slots to nodes that have not accepted them.
   */
  resendBelow: number;
  /** The last decided slot that a notice or proposal has announced. */
  announced: number;
  /** The heartbeat round. The next one begins when a majority has confirmed this one. */
  round: number;
  confirms: NodeId[];
  /**
   * The nodes that confirmed the last round for which a majority answered. They promise to no other node until the
   * round's timer expires.
   */
  lease: NodeId[];
  reads: Read[];
  followers: PerNode<Follower>;
  /** The requested membership that has not been proposed yet. */
  wanted: Members | null;
  /** The highest slot that auxiliaries may have stored and still have to drop. 0 if there is none. */
  auxiliariesHold: number;
}

type Role = { is: "follower" } | Candidate | Leader;

/** Vocabulary of Multi-Paxos. */
export type MultiPaxos = {
  state: {
    role: Role;
    /** The highest round that this node knows of. */
    round: number;
    /** The acceptor ignores all ballots below this one. Journaled. */
    promised: Ballot;
    /**
     * Whether the timer `bound` is running. Until it expires, this node promises only to the node that already has its
     * promise.
     */
    isBound: boolean;
    leader: NodeId | null;
    /** The accepted proposals, keyed by slot. Those up to `decided` are decided. Journaled. */
    log: Record<number, Proposal>;
    decided: number;
    snapshot: Snapshot | null;
    /**
     * The configurations, in ascending order of `from`. A slot's configuration is the last one whose `from` is at or
     * below the slot.
     */
    configurations: Configuration[];
    /** Commands that wait for a slot or a leader. */
    waiting: Command[];
    /** This node's reads that wait until it has emitted the slots up to their index. */
    reads: { read: number; index: number }[];
    /** The part of a snapshot received so far. */
    incoming: { index: number; text: string } | null;
    /**
     * Whether the node has replayed its journal but not yet passed it to the state machine. Requests wait until then.
     */
    isRestored: boolean;
    /** Acceptors that are idle unless a main node is silent, as in Cheap Paxos. */
    auxiliaries: NodeId[];
  };
  message: /** Phase 1a, for all slots from `from` onward. */
    | { type: "prepare"; ballot: Ballot; from: number; released: Ballot | null }
    /** Phase 1b. `rest`: the first slot that did not fit and must be requested separately. Null if all slots fit. */
    | { type: "promise"; ballot: Ballot; decided: number; accepted: SlotProposal[]; rest: number | null }
    /** Phase 2a. All slots up to `decided` are decided. */
    | ({ type: "accept"; decided: number } & SlotProposal)
    /** Phase 2b. */
    | { type: "accepted"; ballot: Ballot; slot: number; decided: number }
    /** Refuses a ballot, because `promised` is higher or this node is bound to `leader`. */
    | { type: "nack"; ballot: Ballot; promised: Ballot; decided: number; leader: NodeId | null }
    /** Announces decisions if no later proposal carries them. */
    | { type: "decided"; ballot: Ballot; decided: number }
    | { type: "heartbeat"; ballot: Ballot; round: number; decided: number }
    | { type: "confirm"; ballot: Ballot; round: number; decided: number }
    /**
     * Requests the decided slots after `decided`. The requesting node has the first `offset` characters of the snapshot
     * up to `index`.
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
    /** Asks the receiver to lead. The leader of this ballot has stepped down. */
    | { type: "takeOver"; ballot: Ballot }
    | { type: "readAt"; read: number; index: number }
    /** Lets an auxiliary drop the slots up to `index`, which all main nodes know to be decided. */
    | { type: "forget"; ballot: Ballot; index: number };
  timer: /** When it expires, a follower becomes a candidate, or a candidate retries. */
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
    /** For auxiliaries: the main nodes have all slots up to `index`. */
    | { type: "forgotten"; index: number };
};

export type State = MultiPaxos["state"];

export const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
export const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;

/** Returns whether this acceptor has promised to ignore the ballot. */
export const isStale = ({ promised }: State, ballot: Ballot): boolean => isBelow(ballot, promised);

/** Returns whether the ballot belongs to a node other than the sender. Only its own node may use a ballot. */
export const isForeign = (from: NodeId, { node }: Ballot): boolean => node !== from;

/** Returns the attempt with this ballot, if it is in progress at this node. */
export const attemptOf = ({ role }: State, ballot: Ballot): Candidate | Leader | null =>
  role.is !== "follower" && isSame(role.ballot, ballot) ? role : null;

// The acceptors and learners of each slot. A membership decided in a slot takes effect `window` slots later. A slot is
// proposed only once the slot `window` below it is decided, so a proposer always knows the acceptors of a slot.
// Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010, §2 (where the window is called α).

/** Returns the configuration that decides the slot. */
export function configurationAt({ configurations }: State, slot: number): Configuration {
  return configurations.findLast(({ from }) => from <= slot) ?? (configurations[0] as Configuration);
}

/** Returns the configuration of the first undecided slot. */
export const currentConfiguration = (state: State): Configuration => configurationAt(state, state.decided + 1);

/** Returns the configuration that is decided but not yet in effect. Null if there is none. */
export const pendingConfiguration = ({ configurations, decided }: State): Configuration | null =>
  configurations.findLast(({ from }) => from > decided + 1) ?? null;

/** Returns whether the nodes contain a majority of the voters. Any two quorums of a slot intersect. */
export const hasMajority = ({ voters }: Members, nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

/** Returns whether two lists of members are equal. */
export const isSameMembers = (a: Members, b: Members): boolean =>
  JSON.stringify([a.voters, a.learners]) === JSON.stringify([b.voters, b.learners]);

/** Returns whether the membership is valid: it has at least one voter, no duplicate nodes and only known nodes. */
export function isMembership({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

/** Returns the same members in ascending order. */
export const sorted = ({ voters, learners }: Members): Members => ({
  voters: [...voters].sort((a, b) => a - b),
  learners: [...learners].sort((a, b) => a - b),
});

/** Returns whether a node is an auxiliary of Cheap Paxos. */
export const isAuxiliary = ({ auxiliaries }: State, node: NodeId): boolean => auxiliaries.includes(node);

/** Returns the nodes that an attempt sends messages to. They include auxiliaries only if needed. */
export const asked = (state: State, { isEngaged }: Attempt, nodes: readonly NodeId[], self: NodeId): NodeId[] =>
  nodes.filter((node) => node !== self && (isEngaged || !isAuxiliary(state, node)));

/** Returns the voters of the undecided slots. */
export function votersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(currentConfiguration(state).voters, pending?.voters ?? []);
}

/** Returns all nodes that a leader sends messages to. */
export function membersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(votersAhead(state), currentConfiguration(state).learners, pending?.learners ?? []);
}

const union = (...sets: readonly (readonly NodeId[])[]): NodeId[] => [...new Set(sets.flat())].sort((a, b) => a - b);
