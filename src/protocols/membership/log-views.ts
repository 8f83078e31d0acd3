/**
 * Views agreed through a replicated log. A group of the coordination service says who is a member; its members flush the messages of
 * the present view, and the next view is an entry of the log. Birman & Joseph, "Exploiting Virtual Synchrony in Distributed Systems",
 * SOSP 1987, for views and the flush; Schneider, ACM Computing Surveys 1990, for the log that orders them.
 *
 * Assumes   what the service assumes: crash-recovery nodes with a journal; for liveness a majority connected to a common leader,
 *           eventually no false suspicion, and a round trip shorter than `roundMs`. Links between members may lose, duplicate and
 *           reorder messages.
 * Safety    agreement: no two nodes know different views by one number. A member that goes from one view to the next holds all
 *           messages of the cut and has delivered none beyond it. No view contains a member after the log has removed it.
 * Liveness  a node that wants to be in the group is in a view eventually, and no member stays blocked.
 * Cost      a change is two entries of the log (who is in the group, and the view) and 2(N − 1) messages at most: N − 1 promises to
 *           the coordinator, and a fill and its answer for each member that lacks messages of the view before.
 *
 * One change of the view:
 *
 *     log         grouped: the members are these, at revision r
 *     members     flush: stop sending, count what has been received      ── promise(r) ──▶ coordinator (the lowest member)
 *     coordinator cut := for each sender the most that a survivor has    ── fill(r) ──▶ who lacks some ── filled(r) ──▶
 *     log         view: round r, cut. Every member that applies it delivers up to the cut and installs the view
 *
 * The group changes again before that: the entry names another round than the last change, and changes nothing. So all that follow
 * the log install the same views. A suspected member is expelled by an entry; it enters again once it has applied that entry.
 */
import type { Context, NodeId, Protocol, World } from "../../core/protocol.ts";
import type { PerNode } from "../../core/per-node.ts";
import { list, natural, nullable, problem, struct, text } from "../../core/shape.ts";
import { exclude, include } from "../node-set.ts";
import { type OptionsOf, option, optionTable, positive } from "../options.ts";
import { type GroupNotice, groupNoticeShapes, MAX_GROUP_MEMBERS } from "../service/coordination-service/group-notices.ts";
import type { GroupOperation, SessionId } from "../service/coordination-service/operations.ts";

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
interface Filling {
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
    promises: PerNode<Promised>;
    filling: Filling | null;
    isProposed: boolean;
    /** How often in this round its timer has run out. */
    tries: number;
    suspected: NodeId[];
    /** How often in a row it was expelled before it came to be in a view. */
    attempts: number;
  };
  message:
    | ({ type: "promise" } & Promised)
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    | { type: "filled"; round: number };
  timer: "round" | "expel" | "enter" | "left";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "leave" }
    | GroupNotice
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

const logViewsOptions = optionTable(
  "views",
  {
    group: option(text(256), "group", "the name of the group in the service"),
    setting: option(text(4_096), "", "how the group is used: members that enter it with another setting are refused"),
    roundMs: positive(500, "a member that has not answered after two of these is expelled"),
    gatherMs: positive(20, "how long suspicions gather before members are expelled"),
    backOffMs: positive(50, "before an expelled node enters again, doubled each time up to `maxBackOffMs`"),
    maxBackOffMs: positive(5_000, "the longest wait before an expelled node enters again"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type LogViewsOptions = OptionsOf<typeof logViewsOptions>;

/** Back-off grows to this power of two at most. */
const MOST_DOUBLINGS = 10;
const MOST_TRIES = 2;

const counts = list(natural, MAX_GROUP_MEMBERS);
const viewEntry = struct<ViewEntry>({ round: natural, cut: counts });
/** What the coordinator puts to the log: the view that follows the change at revision `round`. */
type ViewEntry = { round: number; cut: number[] };

type State = LogViews["state"];
type Ctx = Context<LogViews>;

export function logViews(given?: Partial<LogViewsOptions>): Protocol<LogViews> {
  const { group: name, setting, roundMs, gatherMs, backOffMs, maxBackOffMs } = logViewsOptions.settle(given);

  const ask = (operation: GroupOperation, ctx: Ctx): void => ctx.emit({ type: "asked", operation });

  /** Leaving a group in which it is not changes nothing, but it takes a session. */
  const askForSession = (ctx: Ctx): void => ask({ type: "leaveGroup", name }, ctx);

  /** As another member than before. */
  function enter(state: State, ctx: Ctx): void {
    ctx.cancelTimer("enter");
    if (state.session === null) return askForSession(ctx);
    state.membership = "entering";
    state.wait += 1;
    ask({ type: "enterGroup", name, wait: state.wait, setting }, ctx);
  }

  /** It follows the group no more. What it has delivered in its last view may differ from what others have. */
  function dropOut(state: State, ctx: Ctx): void {
    const wasInView = isInView(state);
    Object.assign(state, { membership: "outside", ...nowhere() });
    for (const timer of ["round", "expel"] as const) ctx.cancelTimer(timer);
    if (wasInView) ctx.emit({ type: "ejected" });
  }

  /** The group has changed: its members agree on what belongs to the view before. */
  function beginRound(state: State, ctx: Ctx): void {
    const { revision } = state.roster;
    Object.assign(state, { isChanging: true, promised: null, filling: null, isProposed: false, tries: 0 });
    ctx.setTimer("round", roundMs);
    considerSuspects(state, ctx);
    if (isInView(state)) ctx.emit({ type: "flush", round: revision });
    else promise(state, ctx);
  }

  function promise(state: State, ctx: Ctx): void {
    const { roster, view, promised: received } = state;
    const promised = { round: roster.revision, members: [...view.members], received };
    const coordinator = coordinatorOf(state);
    if (coordinator === ctx.self) notePromise(state, ctx.self, promised, ctx);
    else ctx.send(coordinator, { type: "promise", ...promised });
  }

  /** One that comes before this node has applied the change is kept: the node that sent it was quicker. */
  function notePromise(state: State, from: NodeId, promised: Promised, ctx: Ctx): void {
    if (promised.round < Math.max(state.roster.revision, state.promises[from]?.round ?? 0)) return;
    state.promises[from] = promised;
    conclude(state, ctx);
  }

  /** All members of the group have promised: the cut is known. */
  function conclude(state: State, ctx: Ctx): void {
    if (!isCoordinating(state, ctx) || state.filling !== null || state.isProposed) return;
    const promises = promisesOf(state);
    if (promises.length < state.roster.members.length) return;
    const { cut, holders, lacking } = nextCut(promises);
    state.filling = { cut, holders, awaited: lacking };
    for (const node of lacking) fill(state, node, ctx);
    proposeIfFilled(state, ctx);
  }

  function fill({ roster, filling }: State, node: NodeId, ctx: Ctx): void {
    const { cut, holders } = filling as Filling;
    const order = { round: roster.revision, cut: [...cut], holders: [...holders] };
    if (node === ctx.self) ctx.emit({ type: "fill", ...order });
    else ctx.send(node, { type: "fill", ...order });
  }

  function proposeIfFilled(state: State, ctx: Ctx): void {
    const { roster, filling, wait } = state;
    if (filling === null || filling.awaited.length > 0 || state.isProposed) return;
    state.isProposed = true;
    const entry: ViewEntry = { round: roster.revision, cut: filling.cut };
    ask({ type: "say", name, wait, number: 0, to: null, text: JSON.stringify(entry) }, ctx);
  }

  /** Everyone who follows the log installs it at the same place, or ignores it there. */
  function install(state: State, number: number, { cut }: ViewEntry, ctx: Ctx): void {
    const members = state.roster.members.map(({ node }) => node);
    const wasInView = isInView(state);
    state.view = { number, members };
    Object.assign(state, { isChanging: false, promised: null, promises: {}, filling: null, isProposed: false, attempts: 0 });
    ctx.cancelTimer("round");
    ctx.emit({ type: "installed", view: number, members: [...members], cut: wasInView ? cut : [] });
  }

  /** The lowest member that is not suspected goes first; the others follow if it does not share the suspicion. */
  function considerSuspects(state: State, ctx: Ctx): void {
    const { roster, suspected } = state;
    const isSuspected = ({ node }: GroupMember): boolean => suspected.includes(node);
    if (!roster.members.some(isSuspected)) return ctx.cancelTimer("expel");
    const turn = roster.members.filter((member) => !isSuspected(member)).findIndex(({ node }) => node === ctx.self);
    ctx.setTimer("expel", gatherMs + turn * roundMs);
  }

  function expel(state: State, nodes: readonly NodeId[], ctx: Ctx): void {
    const { roster, wait } = state;
    for (const { node, session, wait: theirs } of roster.members)
      if (node !== ctx.self && nodes.includes(node))
        ask({ type: "expelFromGroup", name, wait, session, sessionWait: theirs }, ctx);
  }

  /** What may have been lost is sent again; who has not answered twice is expelled. */
  function pursue(state: State, ctx: Ctx): void {
    state.tries += 1;
    ctx.setTimer("round", roundMs);
    if (!isCoordinating(state, ctx)) {
      if (!isInView(state) || state.promised !== null) promise(state, ctx);
      return;
    }
    const late = lateIn(state, ctx.self);
    if (state.tries >= MOST_TRIES) expel(state, late, ctx);
    else for (const node of state.filling?.awaited ?? []) fill(state, node, ctx);
  }

  return {
    name: "log-views",
    init: () => ({ membership: "outside", session: null, wait: 0, ...nowhere(), suspected: [], attempts: 0 }),
    start: (_state, ctx) => askForSession(ctx),
    receive: {
      promise(state, from, { round, members, received }, ctx) {
        const { membership } = state;
        if (membership === "outside" || membership === "left") return;
        if (received !== null && received.length !== members.length) return; // No member sends that.
        notePromise(state, from, { round, members, received }, ctx);
      },
      fill(state, from, { round, cut, holders }, ctx) {
        const isOurs = isCurrent(state, round) && from === coordinatorOf(state);
        if (isOurs && state.promised?.length === cut.length) ctx.emit({ type: "fill", round, cut, holders });
      },
      filled(state, from, { round }, ctx) {
        if (!isCurrent(state, round) || state.filling === null) return; // Of an earlier round.
        exclude(state.filling.awaited, from);
        proposeIfFilled(state, ctx);
      },
    },
    timeout: {
      round: pursue,
      expel(state, ctx) {
        expel(state, state.suspected, ctx);
        considerSuspects(state, ctx);
      },
      enter,
      left: (_state, ctx) => ctx.emit({ type: "left" }),
    },
    command: {
      suspect(state, { node }, ctx) {
        if (node === ctx.self) return;
        include(state.suspected, node);
        considerSuspects(state, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        considerSuspects(state, ctx);
      },
      leave(state, _command, ctx) {
        if (state.membership === "left") return;
        dropOut(state, ctx);
        state.membership = "left";
        ctx.cancelTimer("enter");
        ask({ type: "leaveGroup", name }, ctx);
        ctx.setTimer("left", 0); // A step later, so that all layers have been told of `ejected` before.
      },
      flushed(state, { round, received }, ctx) {
        if (!isCurrent(state, round)) return;
        state.promised = received;
        promise(state, ctx);
      },
      filled(state, { round }, ctx) {
        if (!isCurrent(state, round)) return;
        if (isCoordinating(state, ctx)) {
          if (state.filling === null) return;
          exclude(state.filling.awaited, ctx.self);
          proposeIfFilled(state, ctx);
        } else ctx.send(coordinatorOf(state), { type: "filled", round });
      },
      began(state, { session }, ctx) {
        if (session === state.session || state.membership === "left") return;
        state.session = session;
        dropOut(state, ctx);
        enter(state, ctx);
      },
      over(state, { session }, ctx) {
        if (session !== state.session || state.membership === "left") return; // Of an earlier life.
        state.session = null;
        askForSession(ctx);
      },
      restored(state, _command, ctx) {
        if (state.membership === "left") return;
        dropOut(state, ctx);
        enter(state, ctx);
      },
      notDone(state, { operation }, ctx) {
        if (state.membership === "left") return;
        if (operation.type === "leaveGroup") {
          if (state.session === null) askForSession(ctx);
        } else if (operation.type === "enterGroup") {
          if (state.membership === "entering" && operation.wait === state.wait) enter(state, ctx);
        } else if (operation.type === "expelFromGroup") considerSuspects(state, ctx);
        else if (state.isProposed && operation.wait === state.wait) {
          state.isProposed = false;
          proposeIfFilled(state, ctx);
        }
      },
      led(_state, { leader }, ctx) {
        ctx.emit({ type: leader === null ? "stalled" : "resumed" });
      },
      grouped(state, { name: of, view: revision, members }, ctx) {
        const { membership, session, wait } = state;
        if (of !== name || (membership !== "entering" && membership !== "inside")) return;
        if (!members.some((each) => each.session === session && each.wait === wait)) {
          if (membership === "entering") return;
          dropOut(state, ctx);
          state.attempts += 1;
          const doubled = backOffMs * 2 ** Math.min(state.attempts, MOST_DOUBLINGS);
          return ctx.setTimer("enter", [backOffMs, Math.min(maxBackOffMs, doubled)]);
        }
        const roster = members.map(({ member, ...rest }) => ({ node: member, session: rest.session, wait: rest.wait }));
        state.membership = "inside";
        state.roster = { revision, members: roster.sort((a, b) => a.node - b.node) };
        beginRound(state, ctx);
      },
      said(state, { name: of, from, text: said, revision }, ctx) {
        const entry = of === name && state.membership === "inside" ? viewIn(said) : null;
        if (entry !== null && isCurrent(state, entry.round) && from === coordinatorOf(state))
          install(state, revision, entry, ctx);
      },
    },
    shapes: {
      message: {
        promise: { round: natural, members: counts, received: nullable(counts) },
        fill: { round: natural, cut: counts, holders: counts },
        filled: { round: natural },
      },
      command: {
        suspect: { node: natural },
        restore: { node: natural },
        leave: {},
        ...groupNoticeShapes,
        flushed: { round: natural, received: counts },
        filled: { round: natural },
      },
    },
    source: "Birman & Joseph, SOSP 1987; Schneider, ACM Computing Surveys 1990",
    assumes: [
      "crash-recovery nodes with a journal",
      "for liveness: a majority connected to a common leader of the log, round trips below roundMs, eventually no false suspicion",
    ],
    properties: [agreement, nobodyStaysBlocked],
    costs: [],
    view: ({ membership, view, isChanging }) => ({
      role: membership === "inside" && isChanging ? "changing" : membership,
      term: view.number,
    }),
  };
}

const nowhere = (): Pick<
  State,
  "roster" | "view" | "isChanging" | "promised" | "promises" | "filling" | "isProposed" | "tries"
> => ({
  roster: { revision: 0, members: [] },
  view: { number: 0, members: [] },
  isChanging: false,
  promised: null,
  promises: {},
  filling: null,
  isProposed: false,
  tries: 0,
});

const isInView = ({ view }: State): boolean => view.number > 0;

/** Of the round that follows the last change of the group. */
const isCurrent = ({ isChanging, roster }: State, round: number): boolean => isChanging && round === roster.revision;

/** The lowest member; only of a node that follows the group. */
const coordinatorOf = ({ roster }: State): NodeId => roster.members[0]?.node as NodeId;

const isCoordinating = (state: State, { self }: Pick<Ctx, "self">): boolean =>
  state.isChanging && coordinatorOf(state) === self;

/** Of this round, by member. */
const promisesOf = ({ roster, promises }: State): readonly (Promised & { node: NodeId })[] =>
  roster.members.flatMap(({ node }) => {
    const promised = promises[node];
    return promised?.round === roster.revision ? [{ node, ...promised }] : [];
  });

/** Who keeps the coordinator waiting; where that is the coordinator itself, those that should have sent it what it lacks. */
function lateIn(state: State, self: NodeId): NodeId[] {
  const { roster, filling } = state;
  if (filling === null) {
    const answered = promisesOf(state).map(({ node }) => node);
    return roster.members.flatMap(({ node }) => (answered.includes(node) ? [] : [node]));
  }
  const awaited = filling.awaited.filter((node) => node !== self);
  return awaited.length > 0 || filling.awaited.length === 0 ? awaited : filling.holders;
}

/**
 * What belongs to the view before, who has all of each sender's part of it, and who lacks some. A member counts what it has received
 * when it promises and delivers no more until the next view. So a cut that is no less than what any survivor has counted leaves out
 * nothing that a survivor has delivered.
 */
function nextCut(promises: readonly (Promised & { node: NodeId })[]) {
  const survivors = promises.flatMap(({ node, members, received }) =>
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

/** An entry comes from another member, so it may hold anything. */
function viewIn(said: string): ViewEntry | null {
  try {
    const entry: unknown = JSON.parse(said);
    return problem(viewEntry, entry, "view") === null ? (entry as ViewEntry) : null;
  } catch {
    return null;
  }
}

const agreement = {
  name: "agreement on views",
  claim: "no two nodes know different views by one number",
  when: "always",
  holds: ({ alive, state }: World<State>): boolean => {
    const known = new Map<number, string>();
    return alive.every((node) => {
      const { number, members } = state(node).view;
      if (!known.has(number)) known.set(number, members.join());
      return known.get(number) === members.join();
    });
  },
} as const;

const nobodyStaysBlocked = {
  name: "no member stays blocked",
  claim: "a member that has stopped sending for a change of the view sends again, in the group or out of it",
  when: "leadsTo",
  given: ({ state }: World<State>, node: NodeId): boolean => state(node).isChanging,
  holds: ({ state }: World<State>, node: NodeId): boolean => !state(node).isChanging,
} as const;
