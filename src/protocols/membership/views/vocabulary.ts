/** The vocabulary of views: its state, messages, journal records and events, and functions of its state. */
import { entriesIn, nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { real } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";

export const viewsOptions = optionTable(
  "views",
  {
    gatherMs: positive(
      20,
      "how long the lowest node collects reasons for a view change, so that several lead to one change",
    ),
    firstGatherMs: positive(
      200,
      "the same before the first view, until all nodes that are not suspected have been detected",
    ),
    roundMs: positive(
      1_000,
      "the duration of a step of a round; the request is resent after half of it to nodes that have not answered, and they are left out of the next round",
    ),
    backOffMs: positive(50, "the wait after a failed round, doubled with each failure"),
    maxBackOffMs: positive(2_000, "the longest such wait"),
    remindMs: option(
      real,
      1_000,
      "the interval at which the lowest member announces the view; 0: never, if working links lose no messages",
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

/** One incarnation of a node in the group. The number increases at each start, and each time the node drops out. */
export interface Member {
  node: NodeId;
  incarnation: number;
}

/** A view: the members of the group. View 0 has no members, and the group begins with view 1. */
export interface GroupView {
  number: number;
  /** Ascending by node. */
  members: Member[];
  /** For each member of the previous view, in order: how many of its messages belong to that view. */
  cut: number[];
}

/** The value for the next view that an acceptor has accepted last. */
export interface Accepted {
  round: number;
  view: GroupView;
}

/** Whether a node wants to be in the group. `base`: the number of the node's view when it made the request. */
interface Wish {
  base: number;
  incarnation: number;
  wants: boolean;
}

/** A node's answer to the coordinator that prepares the next view. */
export interface Promised {
  accepted: Accepted | null;
  incarnation: number;
  wants: boolean;
  /**
   * For each member of the current view: how many of its messages the node holds without a gap. It delivers no others
   * until the next view. Null: it is not in that view.
   */
  received: number[] | null;
}

export type Views = {
  state: {
    /** Journaled. */
    incarnation: number;
    wants: boolean;
    /** The last view known to be decided. Journaled. */
    view: GroupView;
    /** The highest round that this node has taken part in. It ignores lower ones. Journaled. */
    promised: number;
    /** The accepted value for the view after `view`. Journaled. */
    accepted: Accepted | null;
    /** The node is in the view, and has blocked since a node began to prepare the next one. */
    isBlocked: boolean;
    phase: Phase;
    /** Ascending. */
    suspected: NodeId[];
    /** The requests of other nodes that the current view does not grant. */
    wishes: PerNode<Wish>;
    /** Nodes that did not answer this node's rounds for the next view in time, ascending. They are left out. */
    late: NodeId[];
    /** Rounds in a row that failed, or that this node left to others. Each one doubles the wait for the next. */
    attempts: number;
    /** Has reported that no majority can be reached. */
    isStalled: boolean;
  };
  message: /** `view`: the view before the next one. A node that does not know it learns it. */
    | { type: "prepare"; view: GroupView; round: number }
    | ({ type: "promise"; base: number; round: number } & Promised)
    /** The receiver has promised `promised`, which is above the requested round. */
    | { type: "refuse"; base: number; promised: number }
    /** Obtain missing messages of the previous view. `holders`: for each member, a node that holds its messages up to the cut. */
    | { type: "fill"; base: number; round: number; cut: number[]; holders: NodeId[] }
    | { type: "filled"; base: number; round: number }
    | { type: "propose"; round: number; view: GroupView }
    | { type: "accept"; base: number; round: number }
    | { type: "decided"; view: GroupView }
    | ({ type: "wish" } & Wish);
  timer: /** When a node that sees the need for another view prepares one, or gives up the round that it has begun. */
    | "change"
    /** When the lowest member announces the current view again, for nodes that have missed it. */
    | "remind"
    /** When a node that has left reports it. */
    | "left";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "join" }
    | { type: "leave" }
    /** From the carrier of the messages, in reply to the event `flush`. */
    | { type: "flushed"; round: number; received: number[] }
    /** From the carrier, in reply to `fill`. */
    | { type: "filled"; round: number };
  event: /** Stop delivering, and report the received messages. */
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** `cut` is empty for a node that was not in the previous view. */
    | { type: "installed"; view: number; members: NodeId[]; cut: number[] }
    | { type: "ejected" }
    /** As requested: no view will include this incarnation of the node. */
    | { type: "left" }
    /** No majority can be reached: no view is installed until one can. */
    | { type: "stalled" }
    | { type: "resumed" };
  /** All state that must survive a crash. Each record replaces the previous one. */
  record: { type: "register"; incarnation: number; promised: number; accepted: Accepted | null; view: GroupView };
};

type Phase =
  | { is: "idle" }
  /** The view has to change, and this node gives others time to do it. */
  | { is: "due" }
  | { is: "preparing"; round: number; isRepeated: boolean; promises: PerNode<Promised> }
  /** `awaited`: members of the next view that do not hold the whole cut yet. */
  | { is: "filling"; round: number; isRepeated: boolean; view: GroupView; awaited: NodeId[]; holders: NodeId[] }
  | { is: "proposing"; round: number; isRepeated: boolean; view: GroupView; acceptors: NodeId[] };

export type State = Views["state"];

export const nodesOf = ({ members }: GroupView): NodeId[] => members.map(({ node }) => node);

export const memberOf = ({ members }: GroupView, of: NodeId): Member | undefined =>
  members.find(({ node }) => node === of);

/** Whether this incarnation of the node is in the current view. */
export const isInside = ({ view, incarnation }: State, self: NodeId): boolean =>
  memberOf(view, self)?.incarnation === incarnation;

/** Whether the group has no members: it has not begun, or all have left. */
export const isEmpty = ({ members }: GroupView): boolean => members.length === 0;

/** Whether the view grants the node's request. */
export function isGranted(view: GroupView, node: NodeId, { incarnation, wants }: Omit<Wish, "base">): boolean {
  const member = memberOf(view, node);
  if (wants) return member !== undefined && member.incarnation >= incarnation;
  return member === undefined || member.incarnation > incarnation; // An earlier incarnation must not be there either.
}

/** Whether the view has to change, as far as this node knows. */
export function isChangeDue(state: State, self: NodeId): boolean {
  const { view, suspected, wishes, isBlocked } = state;
  if (isBlocked || !isGranted(view, self, state)) return true;
  if (view.members.some(({ node }) => suspected.includes(node))) return true;
  return entriesIn(wishes).some(([node, wish]) => !suspected.includes(node) && !isGranted(view, node, wish));
}

/** The unsuspected nodes that are known in the current view, including this one. Ascending. */
export function present({ view, wishes, suspected }: State, self: NodeId): NodeId[] {
  const known = new Set([self, ...nodesOf(view), ...nodesIn(wishes)]);
  return [...known].filter((node) => node === self || !suspected.includes(node)).sort((a, b) => a - b);
}

/** Whether all unsuspected nodes have reported their wishes, so that no node is awaited. */
export const isEverybodyHeard = (state: State, { self, peers }: { self: NodeId; peers: readonly NodeId[] }): boolean =>
  present(state, self).length === 1 + peers.filter((peer) => !state.suspected.includes(peer)).length;

/** Rounds are unique: one in N belongs to each node. */
export const nextRound = (promised: number, place: number, nodes: number): number =>
  (Math.floor(promised / nodes) + 1) * nodes + place;

/** Below all other rounds. It belongs to the lowest node. */
export const FIRST_ROUND = 0;

export const whoseRound = (round: number, everybody: readonly NodeId[]): NodeId =>
  everybody[round % everybody.length] as NodeId;

// Invalid messages, which are ignored: rounds and views that no correct node reaches.

export type Ctx = Context<Views>;

/** No node is this many rounds or views ahead of another. At one per second, that would take 136 years. */
const REACH = 2 ** 32;

/** Each time a node prepares, its round grows by less than twice the number of nodes. */
export const isAbsurdRound = ({ promised }: State, round: number, ctx: Ctx): boolean =>
  round > promised + 2 * (ctx.peers.length + 1) * REACH;

/** Checks a view that is claimed to be decided, or proposed. The contents of a known view do not matter. */
export function isAbsurdView(state: State, next: GroupView, ctx: Ctx): boolean {
  const steps = next.number - state.view.number;
  if (steps <= 0) return false;
  if (steps > REACH || !isOfNodes(next, ctx)) return true;
  const goesOn = next.members.some(({ node, incarnation }) => node === ctx.self && incarnation === state.incarnation);
  // This incarnation has promised nothing beyond the view that it knows.
  if (steps > 1) return goesOn;
  if (next.cut.length !== state.view.members.length) return true;
  return goesOn && isInside(state, ctx.self) && !state.isBlocked;
}

/** An accepted value is for the very next view. */
export const isAbsurdValue = (state: State, accepted: Accepted | null, ctx: Ctx): boolean =>
  accepted !== null && (accepted.view.number !== state.view.number + 1 || isAbsurdView(state, accepted.view, ctx));

/** Whether the members are ascending and distinct nodes. */
function isOfNodes({ members }: GroupView, { self, peers }: Ctx): boolean {
  return members.every(({ node }, index) => {
    const before = members[index - 1];
    return (node === self || peers.includes(node)) && (before === undefined || before.node < node);
  });
}
