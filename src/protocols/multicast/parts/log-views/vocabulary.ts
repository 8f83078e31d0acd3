/** The vocabulary of views on the log (state, messages and options), and functions on the state. */
import type { PerNode } from "../../../../core/per-node.ts";
import type { NodeId } from "../../../../core/protocol.ts";
import { list, natural, problem, type Shape, struct, text } from "../../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive } from "../../../options.ts";
import { type GroupUpdate, MAX_GROUP_MEMBERS } from "../../../service/coordination-service/group-updates.ts";
import type { GroupOperation, SessionId } from "../../../service/coordination-service/operations.ts";

/** One of a node's memberships. If the node enters the group again, it is a different member. */
export interface GroupMember {
  node: NodeId;
  session: SessionId;
  wait: number;
}

/** Which of the previous view's messages a member holds, for the round that follows a group change. */
export interface Promised {
  round: number;
  /** The members of the node's current view. Empty if it is not in a view. */
  members: NodeId[];
  /**
   * For each member, how many of its messages the node has received contiguously. Null if the node is not in a view.
   */
  received: number[] | null;
}

/** The coordinator's record of the members that lack messages and the members that have them. */
export interface Filling {
  cut: number[];
  holders: NodeId[];
  awaited: NodeId[];
}

/** Vocabulary of views on a log. */
export type LogViews = {
  state: {
    /**
     * `entering`: the node has requested to enter, and ignores the group until its own log entry. `inside`: it follows
     * the group from that entry onward.
     */
    membership: "outside" | "entering" | "inside" | "left";
    /** The node's session in this run. Null while it has none. */
    session: SessionId | null;
    /** How many times the node has entered the group in this run. */
    wait: number;
    /**
     * The group's members, in ascending order of node, and the revision of the last change. The revision is 0 if this
     * node does not follow the group.
     */
    roster: { revision: number; members: GroupMember[] };
    /** The last installed view. Its number is 0 if no view has been installed since the node entered. */
    view: { number: number; members: NodeId[] };
    /** Whether the group has changed since the last view. */
    isChanging: boolean;
    /** This node's promise in this round. Null if it has not promised yet. */
    promised: number[] | null;
    /** At the coordinator, the members' answers. */
    answers: PerNode<Promised>;
    filling: Filling | null;
    isProposed: boolean;
    /** How many times the `round` timer has expired in this round. */
    tries: number;
    suspected: NodeId[];
    /** How many times in a row the node has been expelled before it was in a view. */
    attempts: number;
    /** Whether the node has reported that the log has no leader. */
    isStalled: boolean;
  };
  message:
    | ({ type: "promise" } & Promised)
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    | { type: "filled"; round: number };
  timer: "round" | "expel" | "enter" | "left" | "stall";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "leave" }
    | GroupUpdate
    /** The message carrier's replies to `flush` and `fill`. */
    | { type: "flushed"; round: number; received: number[] }
    | { type: "filled"; round: number };
  event:
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** A new view. `cut` is empty for a node that was not in the previous view. */
    | { type: "installed"; view: number; members: NodeId[]; cut: number[] }
    | { type: "ejected" }
    | { type: "left" }
    | { type: "stalled" }
    | { type: "resumed" }
    /** A request for the session. */
    | { type: "asked"; operation: GroupOperation };
};

/** The option table of views on the log. */
export const logViewsOptions = optionTable(
  "views",
  {
    group: option(text(256), "group", "the name of the group in the service"),
    setting: option(text(4_096), "", "how the group is used; members that join with a different setting are rejected"),
    roundMs: positive(500, "the timeout of a round; a member that has not answered after two timeouts is expelled"),
    gatherMs: positive(20, "how long suspicions are collected before members are expelled"),
    backOffMs: positive(50, "the wait before an expelled node rejoins, doubled each time up to `maxBackOffMs`"),
    maxBackOffMs: positive(5_000, "the longest wait before an expelled node rejoins"),
    stallMs: positive(1_000, "how long the log may have no leader before sends have to wait"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type LogViewsOptions = OptionsOf<typeof logViewsOptions>;

export type State = LogViews["state"];

export const counts: Shape<number[]> = list(natural, MAX_GROUP_MEMBERS);

/** The coordinator's log entry, which defines the view that follows the group change at revision `round`. */
export type ViewEntry = { round: number; cut: number[] };

const viewEntry = struct<ViewEntry>({ round: natural, cut: counts });

/** Parses a view entry. Returns null if it is invalid: another member wrote it, so it may contain anything. */
export function viewIn(said: string): ViewEntry | null {
  try {
    const entry: unknown = JSON.parse(said);
    return problem(viewEntry, entry, "view") === null ? (entry as ViewEntry) : null;
  } catch {
    return null;
  }
}

/** Returns the fields of the state for a node that is not in a view. */
export const nowhere = (): Pick<
  State,
  "roster" | "view" | "isChanging" | "promised" | "answers" | "filling" | "isProposed" | "tries"
> => ({
  roster: { revision: 0, members: [] },
  view: { number: 0, members: [] },
  isChanging: false,
  promised: null,
  answers: {},
  filling: null,
  isProposed: false,
  tries: 0,
});

/** Whether the node is in a view. */
export const isInView = ({ view }: State): boolean => view.number > 0;

/** Whether the round belongs to the latest group change, and that change is still in progress. */
export const isCurrent = ({ isChanging, roster }: State, round: number): boolean =>
  isChanging && round === roster.revision;

/** Returns the lowest member. Valid only for a node that follows the group. */
export const coordinatorOf = ({ roster }: State): NodeId => roster.members[0]?.node as NodeId;

/** Whether the node coordinates the current view change. */
export const isCoordinating = (state: State, { self }: { readonly self: NodeId }): boolean =>
  state.isChanging && coordinatorOf(state) === self;

/** Returns the answers in this round, with the members that gave them. */
export const answersOf = ({ roster, answers }: State): readonly (Promised & { node: NodeId })[] =>
  roster.members.flatMap(({ node }) => {
    const promised = answers[node];
    return promised?.round === roster.revision ? [{ node, ...promised }] : [];
  });

/**
 * Returns the members that are delaying the coordinator. If only the coordinator itself lacks messages, returns the
 * members that should have sent them.
 */
export function lateIn(state: State, self: NodeId): NodeId[] {
  const { roster, filling } = state;
  if (filling === null) {
    const answered = answersOf(state).map(({ node }) => node);
    return roster.members.flatMap(({ node }) => (answered.includes(node) ? [] : [node]));
  }
  const awaited = filling.awaited.filter((node) => node !== self);
  return awaited.length > 0 || filling.awaited.length === 0 ? awaited : filling.holders;
}

/**
 * Computes the previous view's cut, a holder of each sender's messages up to the cut, and the members that lack some of
 * them. A member counts its received messages when it answers, and delivers no more until the next view. A cut that is
 * at least every survivor's count therefore includes all messages that any survivor has delivered.
 */
export function nextCut(answers: readonly (Promised & { node: NodeId })[]) {
  const survivors = answers.flatMap(({ node, members, received }) =>
    received === null ? [] : [{ node, members, received }],
  );
  const senders = survivors[0]?.members ?? [];
  const cut = senders.map((_, place) => Math.max(...survivors.map(({ received }) => received[place] ?? 0)));
  const holders = senders.map((sender, place) => {
    const having = survivors.filter(({ received }) => received[place] === cut[place]).map(({ node }) => node);
    return having.includes(sender) ? sender : (having[0] as NodeId);
  });
  const lacking = survivors.flatMap(({ node, received }) =>
    cut.some((count, place) => (received[place] ?? 0) < count) ? [node] : [],
  );
  return { cut, holders, lacking };
}
