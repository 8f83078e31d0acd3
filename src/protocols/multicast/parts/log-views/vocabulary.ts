/** The vocabulary of views on the log: state, messages and options, and what can be read from a state. */
import type { PerNode } from "../../../../core/per-node.ts";
import type { NodeId } from "../../../../core/protocol.ts";
import { list, natural, problem, type Shape, struct, text } from "../../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive } from "../../../options.ts";
import { type GroupUpdate, MAX_GROUP_MEMBERS } from "../../../service/coordination-service/group-updates.ts";
import type { GroupOperation, SessionId } from "../../../service/coordination-service/operations.ts";

/** A node in one of its times in the group: it is another member after it has entered again. */
export interface GroupMember {
  node: NodeId;
  session: SessionId;
  wait: number;
}

/** What a member holds of the view before, for the round that follows a change of the group. */
export interface Promised {
  round: number;
  /** The members of the view that it is in; empty where it is in none. */
  members: NodeId[];
  /** How many messages of each of these it has received without a gap; null where it is in no view. */
  received: number[] | null;
}

/** Of the coordinator: who has yet to receive what it lacks, and who has it. */
export interface Filling {
  cut: number[];
  holders: NodeId[];
  awaited: NodeId[];
}

export type LogViews = {
  state: {
    /** `entering`: it has asked to enter, and ignores the group until the log has that. `inside`: it follows the group from there on. */
    membership: "outside" | "entering" | "inside" | "left";
    /** Of this run of the node; null while it has none. */
    session: SessionId | null;
    /** Numbers the times at which it has entered in this run. */
    wait: number;
    /** Who is in the group, ascending by node, and since which revision. 0: this node does not follow it. */
    roster: { revision: number; members: GroupMember[] };
    /** The last view that was installed here; number 0: none since it entered. */
    view: { number: number; members: NodeId[] };
    /** The group has changed since the last view. */
    isChanging: boolean;
    /** What it has promised in this round; null before. */
    promised: number[] | null;
    /** Of the coordinator. */
    answers: PerNode<Promised>;
    filling: Filling | null;
    isProposed: boolean;
    /** How often in this round its timer has run out. */
    tries: number;
    suspected: NodeId[];
    /** How often in a row it was expelled before it came to be in a view. */
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
    /** From what carries the messages, in answer to `flush` and `fill`. */
    | { type: "flushed"; round: number; received: number[] }
    | { type: "filled"; round: number };
  event:
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    /** `cut` is empty for a node that was not in the view before. */
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
    setting: option(text(4_096), "", "how the group is used: members that enter it with another setting are refused"),
    roundMs: positive(500, "a member that has not answered after two of these is expelled"),
    gatherMs: positive(20, "how long suspicions gather before members are expelled"),
    backOffMs: positive(50, "before an expelled node enters again, doubled each time up to `maxBackOffMs`"),
    maxBackOffMs: positive(5_000, "the longest wait before an expelled node enters again"),
    stallMs: positive(1_000, "how long the log may have no leader before sends wait"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type LogViewsOptions = OptionsOf<typeof logViewsOptions>;

export type State = LogViews["state"];

export const counts: Shape<number[]> = list(natural, MAX_GROUP_MEMBERS);

/** What the coordinator puts to the log: the view that follows the change at revision `round`. */
export type ViewEntry = { round: number; cut: number[] };

const viewEntry = struct<ViewEntry>({ round: natural, cut: counts });

/** An entry comes from another member, so it may hold anything. */
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

/** Of the round that follows the last change of the group. */
export const isCurrent = ({ isChanging, roster }: State, round: number): boolean =>
  isChanging && round === roster.revision;

/** The lowest member; only of a node that follows the group. */
export const coordinatorOf = ({ roster }: State): NodeId => roster.members[0]?.node as NodeId;

export const isCoordinating = (state: State, { self }: { readonly self: NodeId }): boolean =>
  state.isChanging && coordinatorOf(state) === self;

/** Of this round, by member. */
export const answersOf = ({ roster, answers }: State): readonly (Promised & { node: NodeId })[] =>
  roster.members.flatMap(({ node }) => {
    const promised = answers[node];
    return promised?.round === roster.revision ? [{ node, ...promised }] : [];
  });

/** Who keeps the coordinator waiting; where that is the coordinator itself, those that should have sent it what it lacks. */
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
 * What belongs to the view before, who has all of each sender's part of it, and who lacks some. A member counts what it has received
 * when it answers and delivers no more until the next view. So a cut that is no less than what any survivor has counted leaves out
 * nothing that a survivor has delivered.
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
