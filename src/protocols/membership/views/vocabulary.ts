/** The vocabulary of views (state, messages, journal records and events), and functions on the state. */
import { entriesIn, nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { real } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";

/** The option table of views. */
export const viewsOptions = optionTable(
  "views",
  {
    gatherMs: positive(
      20,
      "how long the lowest node collects reasons for a view change, so that several reasons lead to a single change",
    ),
    firstGatherMs: positive(200, "the same before the first view, or until all unsuspected nodes have been detected"),
    roundMs: positive(
      1_000,
      "the time allowed for each step in a round; after half of it, the request is resent to nodes that have not answered; nodes that never answer are left out of the next round",
    ),
    backOffMs: positive(50, "the wait after a failed round, doubled with each failure"),
    maxBackOffMs: positive(2_000, "the longest wait after a failed round"),
    remindMs: option(
      real,
      1_000,
      "how often the lowest member announces the view; 0 disables announcements (safe only if working links lose no messages)",
      { min: 0 },
    ),
    joins: flag(true, "whether nodes request to join the group when they start"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

/** Options of `views()`. */
export type ViewsOptions = OptionsOf<typeof viewsOptions>;

/** One incarnation of a node in the group. The incarnation number increases each time the node starts or drops out. */
export interface Member {
  node: NodeId;
  incarnation: number;
}

/** A view: the members that the group has at one time. View 0 has no members, and the group begins with view 1. */
export interface GroupView {
  number: number;
  /** The members, in ascending order of node. */
  members: Member[];
  /** For each member of the previous view, in order, the number of its messages that belong to that view. */
  cut: number[];
}

/** The value that an acceptor most recently accepted for the next view. */
export interface Accepted {
  round: number;
  view: GroupView;
}

/**
 * A node's request to be in the group, or not to be. `base`: the number of the node's view when it made the request.
 */
interface Wish {
  base: number;
  incarnation: number;
  wants: boolean;
}

/** A node's answer to the coordinator that is preparing the next view. */
export interface Promised {
  accepted: Accepted | null;
  incarnation: number;
  wants: boolean;
  /**
   * For each member of the current view, how many of its messages the node holds contiguously. The node delivers no
   * others until the next view. Null if the node is not in that view.
   */
  received: number[] | null;
}

/** Vocabulary of views. */
export type Views = {
  state: {
    /** This incarnation's number. Journaled. */
    incarnation: number;
    wants: boolean;
    /** The last view known to be decided. Journaled. */
    view: GroupView;
    /** The highest round that this node has taken part in. The node ignores lower rounds. Journaled. */
    promised: number;
    /** The accepted value for the view after `view`. Journaled. */
    accepted: Accepted | null;
    /** Whether the node is in the view but blocked, because a node has begun to prepare the next view. */
    isBlocked: boolean;
    phase: Phase;
    /** The suspected nodes, in ascending order. */
    suspected: NodeId[];
    /** Requests from other nodes that the current view does not grant. */
    wishes: PerNode<Wish>;
    /**
     * Nodes that did not answer this node's rounds for the next view in time, in ascending order. The next round leaves
     * them out.
     */
    late: NodeId[];
    /**
     * The number of consecutive rounds that failed, or that this node left to others. Each such round doubles the wait
     * before the next one.
     */
    attempts: number;
    /** Whether the node has reported that no majority can be reached. */
    isStalled: boolean;
  };
  message: /** Prepares the view after `view`. A receiver that does not have `view` yet adopts it. */
    | { type: "prepare"; view: GroupView; round: number }
    | ({ type: "promise"; base: number; round: number } & Promised)
    /** Refuses a round, because the sender has promised the higher round `promised`. */
    | { type: "refuse"; base: number; promised: number }
    /**
     * Asks the receiver to obtain the messages that it lacks from the current view. `holders`: for each member, a node
     * that holds its messages up to the cut.
     */
    | { type: "fill"; base: number; round: number; cut: number[]; holders: NodeId[] }
    | { type: "filled"; base: number; round: number }
    | { type: "propose"; round: number; view: GroupView }
    | { type: "accept"; base: number; round: number }
    | { type: "decided"; view: GroupView }
    | ({ type: "wish" } & Wish);
  timer: /** Starts a round if a change is due. During this node's own round, resends messages or gives up the round. */
    | "change"
    /** If this node is the lowest member, announces the current view again, for nodes that have missed it. */
    | "remind"
    /** Reports that the node has left. */
    | "left";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "join" }
    | { type: "leave" }
    /** The carrier's reply to the event `flush`. */
    | { type: "flushed"; round: number; received: number[] }
    /** The carrier's reply to `fill`. */
    | { type: "filled"; round: number };
  event: /** Requests that the carrier stop delivering and report the messages it has received. */
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** A new view. `cut` is empty for a node that was not in the previous view. */
    | { type: "installed"; view: number; members: NodeId[]; cut: number[] }
    | { type: "ejected" }
    /** The node has left, as requested. No view will include this incarnation of the node. */
    | { type: "left" }
    /** No majority can be reached. No view is installed until a majority can be reached again. */
    | { type: "stalled" }
    | { type: "resumed" };
  /** All state that must survive a crash. Each record replaces the previous one. */
  record: { type: "register"; incarnation: number; promised: number; accepted: Accepted | null; view: GroupView };
};

type Phase =
  | { is: "idle" }
  /** The view has to change, and this node is giving other nodes time to change it. */
  | { is: "due" }
  | { is: "preparing"; round: number; isRepeated: boolean; promises: PerNode<Promised> }
  /** `awaited`: members of the next view that do not yet hold the whole cut. */
  | { is: "filling"; round: number; isRepeated: boolean; view: GroupView; awaited: NodeId[]; holders: NodeId[] }
  | { is: "proposing"; round: number; isRepeated: boolean; view: GroupView; acceptors: NodeId[] };

export type State = Views["state"];

export const nodesOf = ({ members }: GroupView): NodeId[] => members.map(({ node }) => node);

export const memberOf = ({ members }: GroupView, of: NodeId): Member | undefined =>
  members.find(({ node }) => node === of);

/** Whether this incarnation of the node is in the current view. */
export const isInside = ({ view, incarnation }: State, self: NodeId): boolean =>
  memberOf(view, self)?.incarnation === incarnation;

/** Whether the group has no members, either because it has not begun or because all members have left. */
export const isEmpty = ({ members }: GroupView): boolean => members.length === 0;

/** Whether the view grants the node's request. */
export function isGranted(view: GroupView, node: NodeId, { incarnation, wants }: Omit<Wish, "base">): boolean {
  const member = memberOf(view, node);
  if (wants) return member !== undefined && member.incarnation >= incarnation;
  // The view must not contain an earlier incarnation either.
  return member === undefined || member.incarnation > incarnation;
}

/** Whether the view has to change, as far as this node knows. */
export function isChangeDue(state: State, self: NodeId): boolean {
  const { view, suspected, wishes, isBlocked } = state;
  if (isBlocked || !isGranted(view, self, state)) return true;
  if (view.members.some(({ node }) => suspected.includes(node))) return true;
  return entriesIn(wishes).some(([node, wish]) => !suspected.includes(node) && !isGranted(view, node, wish));
}

/** Returns this node and all unsuspected nodes that are members or have sent a request, in ascending order. */
export function present({ view, wishes, suspected }: State, self: NodeId): NodeId[] {
  const known = new Set([self, ...nodesOf(view), ...nodesIn(wishes)]);
  return [...known].filter((node) => node === self || !suspected.includes(node)).sort((a, b) => a - b);
}

/**
 * Whether all unsuspected nodes have reported whether they want to join, so that this node does not wait for any other.
 */
export const isEverybodyHeard = (state: State, { self, peers }: { self: NodeId; peers: readonly NodeId[] }): boolean =>
  present(state, self).length === 1 + peers.filter((peer) => !state.suspected.includes(peer)).length;

/** Returns a node's next round. No two nodes share a round: each node owns every Nth one. */
export const nextRound = (promised: number, place: number, nodes: number): number =>
  (Math.floor(promised / nodes) + 1) * nodes + place;

/** The lowest round. It belongs to the lowest node. */
export const FIRST_ROUND = 0;

/** Returns the node that may propose in a round. */
export const whoseRound = (round: number, everybody: readonly NodeId[]): NodeId =>
  everybody[round % everybody.length] as NodeId;

// Checks for messages to ignore, because they contain rounds or views that no correct node reaches.

export type Ctx = Context<Views>;

/** No node is ever this many rounds or views ahead of another. At one per second, that would take 136 years. */
const REACH = 2 ** 32;

/**
 * Whether no correct node can have reached the round. Each time a node prepares, its round grows by less than twice the
 * number of nodes.
 */
export const isAbsurdRound = ({ promised }: State, round: number, ctx: Ctx): boolean =>
  round > promised + 2 * (ctx.peers.length + 1) * REACH;

/**
 * Whether an allegedly decided or proposed view is invalid. Views up to the current one are not checked, because this
 * node does not use their contents.
 */
export function isAbsurdView(state: State, next: GroupView, ctx: Ctx): boolean {
  const steps = next.number - state.view.number;
  if (steps <= 0) return false;
  if (steps > REACH || !isOfNodes(next, ctx)) return true;
  const goesOn = next.members.some(({ node, incarnation }) => node === ctx.self && incarnation === state.incarnation);
  // This incarnation has made no promises beyond its current view.
  if (steps > 1) return goesOn;
  if (next.cut.length !== state.view.members.length) return true;
  return goesOn && isInside(state, ctx.self) && !state.isBlocked;
}

/** Whether an accepted value is invalid. It must be for the view right after the current one. */
export const isAbsurdValue = (state: State, accepted: Accepted | null, ctx: Ctx): boolean =>
  accepted !== null && (accepted.view.number !== state.view.number + 1 || isAbsurdView(state, accepted.view, ctx));

/** Whether the members are distinct nodes in ascending order. */
function isOfNodes({ members }: GroupView, { self, peers }: Ctx): boolean {
  return members.every(({ node }, index) => {
    const before = members[index - 1];
    return (node === self || peers.includes(node)) && (before === undefined || before.node < node);
  });
}
