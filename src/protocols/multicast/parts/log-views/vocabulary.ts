/** The vocabulary of views on the log: state, messages and options, and functions of the state. */
import type { PerNode } from "../../../../core/per-node.ts";
import type { NodeId } from "../../../../core/protocol.ts";
import { list, natural, problem, type Shape, struct, text } from "../../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive } from "../../../options.ts";
import { type GroupUpdate, MAX_GROUP_MEMBERS } from "../../../service/coordination-service/group-updates.ts";
import type { GroupOperation, SessionId } from "../../../service/coordination-service/operations.ts";

/** A node in one of its memberships. If it enters again, it is another member. */
export interface GroupMember {
  node: NodeId;
  session: SessionId;
  wait: number;
}

/** The messages of the previous view that a member holds, for the round after a change of the group. */
export interface Promised {
  round: number;
  /** The members of its current view; empty if it is in none. */
  members: NodeId[];
  /** The number of each member's messages that it has received without a gap. Null if it is in no view. */
  received: number[] | null;
}

/** At the coordinator: the members that lack messages, and the members that have them. */
export interface Filling {
  cut: number[];
  holders: NodeId[];
  awaited: NodeId[];
}

export type LogViews = {
  state: {
    /**
     * `entering`: it has requested to enter and ignores the group until that entry. `inside`: it follows the group from
     * there on.
     */
    membership: "outside" | "entering" | "inside" | "left";
    /** The session of this run of the node. Null while it has none. */
    session: SessionId | null;
    /** Counts the entries into the group in this run. */
    wait: number;
    /** The members of the group, ascending by node, and the revision of the last change. 0: this node does not follow it. */
    roster: { revision: number; members: GroupMember[] };
    /** The last installed view. Number 0: none since it entered. */
    view: { number: number; members: NodeId[] };
    /** The group has changed since the last view. */
    isChanging: boolean;
    /** Its promise in this round. Null before. */
    promised: number[] | null;
    /** At the coordinator. */
    answers: PerNode<Promised>;
    filling: Filling | null;
    isProposed: boolean;
    /** How many times the timer has expired in this round. */
    tries: number;
    suspected: NodeId[];
    /** How many times in a row it was expelled before it was in a view. */
    attempts: number;
    /** Has reported that the log has no leader. */
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
    /** From the carrier of the messages, in reply to `flush` and `fill`. */
    | { type: "flushed"; round: number; received: number[] }
    | { type: "filled"; round: number };
  event:
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** `cut` is empty for a node that was not in the previous view. */
    | { type: "installed"; view: number; members: NodeId[]; cut: number[] }
    | { type: "ejected" }
    | { type: "left" }
    | { type: "stalled" }
    | { type: "resumed" }
    /** To the session. */
    | { type: "asked"; operation: GroupOperation };
};

export const logViewsOptions = optionTable(
  "views",
  {
    group: option(text(256), "group", "the name of the group in the service"),
    setting: option(text(4_096), "", "how the group is used; members that join with another setting are rejected"),
    roundMs: positive(500, "a member that has not answered after two of these is expelled"),
    gatherMs: positive(20, "how long suspicions gather before members are expelled"),
    backOffMs: positive(50, "the wait before an expelled node rejoins, doubled each time up to `maxBackOffMs`"),
    maxBackOffMs: positive(5_000, "the longest wait before an expelled node rejoins"),
    stallMs: positive(1_000, "how long the log may be without a leader before sends wait"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type LogViewsOptions = OptionsOf<typeof logViewsOptions>;

export type State = LogViews["state"];

export const counts: Shape<number[]> = list(natural, MAX_GROUP_MEMBERS);

/** The log entry of the coordinator: the view that follows the change at revision `round`. */
export type ViewEntry = { round: number; cut: number[] };

const viewEntry = struct<ViewEntry>({ round: natural, cut: counts });

/** An entry comes from another member, so it may contain anything. */
export function viewIn(said: string): ViewEntry | null {
  try {
    const entry: unknown = JSON.parse(said);
    return problem(viewEntry, entry, "view") === null ? (entry as ViewEntry) : null;
  } catch {
    return null;
  }
}

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

export const isInView = ({ view }: State): boolean => view.number > 0;

/** Whether the round follows the last change of the group. */
export const isCurrent = ({ isChanging, roster }: State, round: number): boolean =>
  isChanging && round === roster.revision;

/** The lowest member. Valid only for a node that follows the group. */
export const coordinatorOf = ({ roster }: State): NodeId => roster.members[0]?.node as NodeId;

export const isCoordinating = (state: State, { self }: { readonly self: NodeId }): boolean =>
  state.isChanging && coordinatorOf(state) === self;

/** The answers of this round, by member. */
export const answersOf = ({ roster, answers }: State): readonly (Promised & { node: NodeId })[] =>
  roster.members.flatMap(({ node }) => {
    const promised = answers[node];
    return promised?.round === roster.revision ? [{ node, ...promised }] : [];
  });

/** The members that delay the coordinator. If the coordinator itself lacks messages: the members that should have sent them. */
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
 * The cut of the previous view, a holder of each sender's messages up to it, and the members that lack some. A member
 * counts its received messages when it answers, and delivers no more until the next view. So a cut that is at least every
 * survivor's count includes all messages that a survivor has delivered.
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
