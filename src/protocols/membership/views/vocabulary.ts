/** The words of views: its state, what is sent, journalled and said, and what can be told from a state. */
import { entriesIn, nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { real } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";

export const viewsOptions = optionTable(
  "views",
  {
    gatherMs: positive(
      20,
      "how long the lowest node waits for further reasons to change the view, so that several make one change",
    ),
    firstGatherMs: positive(
      200,
      "the same before the first view, until all nodes that are not suspected have been detected",
    ),
    roundMs: positive(
      1_000,
      "the time of a step of a round; a node that has not answered is asked again after half of it, and is left out of the next round",
    ),
    backOffMs: positive(50, "the wait after a failed round, doubled with each"),
    maxBackOffMs: positive(2_000, "the longest such wait"),
    remindMs: option(
      real,
      1_000,
      "the time between two announcements of the view by the lowest member; 0: none, if no message is lost while links work",
      { min: 0 },
    ),
    joins: flag(true, "whether nodes ask to join the group when they start"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type ViewsOptions = OptionsOf<typeof viewsOptions>;

/** One life of a node in the group: the number is raised at each start, and each time the node has dropped out. */
export interface Member {
  node: NodeId;
  incarnation: number;
}

/** Who is in the group. View 0 has no members: the group begins with view 1. */
export interface GroupView {
  number: number;
  /** Ascending by node. */
  members: Member[];
  /** How many messages of each member of the view before belong to that one, in the order of its members. */
  cut: number[];
}

/** What an acceptor has accepted last for the view that comes next. */
export interface Accepted {
  round: number;
  view: GroupView;
}

/** What a node would have: to be in the group, or not. `base`: the number of the view in which it wishes so. */
interface Wish {
  base: number;
  incarnation: number;
  wants: boolean;
}

/** What a node answers the one that prepares the next view. */
export interface Promised {
  accepted: Accepted | null;
  incarnation: number;
  wants: boolean;
  /**
   * How many messages of each member of the present view it holds, from the first on without a gap, and it delivers no
   * others until the next view. Null: it is not in that view.
   */
  received: number[] | null;
}

export type Views = {
  state: {
    /** Journalled. */
    incarnation: number;
    wants: boolean;
    /** The last view known to be decided. Journalled. */
    view: GroupView;
    /** The highest round that this node has taken part in: it ignores lower ones. Journalled. */
    promised: number;
    /** For the view after `view`. Journalled. */
    accepted: Accepted | null;
    /** In the view, and silent since somebody has begun to prepare the next one. */
    isBlocked: boolean;
    phase: Phase;
    /** Ascending. */
    suspected: NodeId[];
    /** What others wish, as far as the present view does not give it to them. */
    wishes: PerNode<Wish>;
    /** Who did not answer this node's rounds for the next view in time: it is left out. Ascending. */
    late: NodeId[];
    /** How many rounds in a row this node has begun in vain, or left to others: each doubles the wait for the next. */
    attempts: number;
    /** Has said that no majority can be reached. */
    isStalled: boolean;
  };
  message: /** `view`: the one that is to be followed by another; a node that does not know it learns it. */
    | { type: "prepare"; view: GroupView; round: number }
    | ({ type: "promise"; base: number; round: number } & Promised)
    /** The receiver has promised `promised`, which is above the round it was asked for. */
    | { type: "refuse"; base: number; promised: number }
    /** Get what you lack of the view before: `holders` names who has all that the cut takes of each member. */
    | { type: "fill"; base: number; round: number; cut: number[]; holders: NodeId[] }
    | { type: "filled"; base: number; round: number }
    | { type: "propose"; round: number; view: GroupView }
    | { type: "accept"; base: number; round: number }
    | { type: "decided"; view: GroupView }
    | ({ type: "wish" } & Wish);
  timer: /** When a node that sees the need for another view prepares one, or gives up the round that it has begun. */
    | "change"
    /** When the lowest member says again what the present view is, for those who have not heard it. */
    | "remind"
    /** When a node that has left says so. */
    | "left";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "join" }
    | { type: "leave" }
    /** From what carries the messages, in answer to the event `flush`. */
    | { type: "flushed"; round: number; received: number[] }
    /** Likewise, in answer to `fill`. */
    | { type: "filled"; round: number };
  event: /** Deliver nothing more than has been delivered, and say what you hold. */
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** `cut` is empty for a node that was not in the view before. */
    | { type: "installed"; view: number; members: NodeId[]; cut: number[] }
    | { type: "ejected" }
    /** As it wished: no view takes in this life of the node any more. */
    | { type: "left" }
    /** No majority can be reached: there is no other view until one can. */
    | { type: "stalled" }
    | { type: "resumed" };
  /** All that has to outlive a crash; each replaces the one before. */
  record: { type: "register"; incarnation: number; promised: number; accepted: Accepted | null; view: GroupView };
};

type Phase =
  | { is: "idle" }
  /** Sees the need for another view, and gives others time to see to it. */
  | { is: "due" }
  | { is: "preparing"; round: number; isRepeated: boolean; promises: PerNode<Promised> }
  /** `awaited`: members of the view to come that do not hold the whole cut yet. */
  | { is: "filling"; round: number; isRepeated: boolean; view: GroupView; awaited: NodeId[]; holders: NodeId[] }
  | { is: "proposing"; round: number; isRepeated: boolean; view: GroupView; acceptors: NodeId[] };

export type State = Views["state"];

export const nodesOf = ({ members }: GroupView): NodeId[] => members.map(({ node }) => node);

export const memberOf = ({ members }: GroupView, of: NodeId): Member | undefined =>
  members.find(({ node }) => node === of);

/** Whether this life of the node is in the present view. */
export const isInside = ({ view, incarnation }: State, self: NodeId): boolean =>
  memberOf(view, self)?.incarnation === incarnation;

/** Whether nobody is in the group: it has yet to begin, or all have left it. */
export const isEmpty = ({ members }: GroupView): boolean => members.length === 0;

/** Whether the view is as the node would have it. */
export function isGranted(view: GroupView, node: NodeId, { incarnation, wants }: Omit<Wish, "base">): boolean {
  const member = memberOf(view, node);
  if (wants) return member !== undefined && member.incarnation >= incarnation;
  return member === undefined || member.incarnation > incarnation; // An earlier life has no business there either.
}

/** Whether there has to be another view, as far as this node can see. */
export function isChangeDue(state: State, self: NodeId): boolean {
  const { view, suspected, wishes, isBlocked } = state;
  if (isBlocked || !isGranted(view, self, state)) return true;
  if (view.members.some(({ node }) => suspected.includes(node))) return true;
  return entriesIn(wishes).some(([node, wish]) => !suspected.includes(node) && !isGranted(view, node, wish));
}

/** The nodes that have been heard of in the present view and are not suspected, this node included. Ascending. */
export function present({ view, wishes, suspected }: State, self: NodeId): NodeId[] {
  const known = new Set([self, ...nodesOf(view), ...nodesIn(wishes)]);
  return [...known].filter((node) => node === self || !suspected.includes(node)).sort((a, b) => a - b);
}

/** Whether everybody that is not suspected has said what it would have: then there is nobody to wait for. */
export const isEverybodyHeard = (state: State, { self, peers }: { self: NodeId; peers: readonly NodeId[] }): boolean =>
  present(state, self).length === 1 + peers.filter((peer) => !state.suspected.includes(peer)).length;

/** Rounds are unique: one in N belongs to each node. */
export const nextRound = (promised: number, place: number, nodes: number): number =>
  (Math.floor(promised / nodes) + 1) * nodes + place;

/** Below all others; it belongs to the lowest node. */
export const FIRST_ROUND = 0;

export const whoseRound = (round: number, everybody: readonly NodeId[]): NodeId =>
  everybody[round % everybody.length] as NodeId;

// Messages that are dropped: rounds and views such as nobody who follows the protocol comes to.

export type Ctx = Context<Views>;

/** Nobody is so many rounds or views ahead of another: at one a second that takes 136 years. */
const REACH = 2 ** 32;

/** Each time a node prepares, its round grows by less than twice the number of nodes. */
export const isAbsurdRound = ({ promised }: State, round: number, ctx: Ctx): boolean =>
  round > promised + 2 * (ctx.peers.length + 1) * REACH;

/** A view said to be decided, or proposed. One that is known already has nothing in it that matters. */
export function isAbsurdView(state: State, next: GroupView, ctx: Ctx): boolean {
  const steps = next.number - state.view.number;
  if (steps <= 0) return false;
  if (steps > REACH || !isOfNodes(next, ctx)) return true;
  const goesOn = next.members.some(({ node, incarnation }) => node === ctx.self && incarnation === state.incarnation);
  // This life has promised nothing beyond the view that it knows.
  if (steps > 1) return goesOn;
  if (next.cut.length !== state.view.members.length) return true;
  return goesOn && isInside(state, ctx.self) && !state.isBlocked;
}

/** What has been accepted is for the very next view. */
export const isAbsurdValue = (state: State, accepted: Accepted | null, ctx: Ctx): boolean =>
  accepted !== null && (accepted.view.number !== state.view.number + 1 || isAbsurdView(state, accepted.view, ctx));

/** Ascending, and each once. */
function isOfNodes({ members }: GroupView, { self, peers }: Ctx): boolean {
  return members.every(({ node }, index) => {
    const before = members[index - 1];
    return (node === self || peers.includes(node)) && (before === undefined || before.node < node);
  });
}
