/** How the members of a group go from one view on the log to the next. */
import type { Context, NodeId } from "../../../../core/protocol.ts";
import type { GroupOperation } from "../../../service/coordination-service/operations.ts";
import {
  answersOf,
  coordinatorOf,
  type Filling,
  type GroupMember,
  isCoordinating,
  isInView,
  type LogViews,
  type LogViewsOptions,
  lateIn,
  nextCut,
  nowhere,
  type Promised,
  type State,
  type ViewEntry,
} from "./vocabulary.ts";

export type Ctx = Context<LogViews>;

/** When a member receives its own entry with this text, it has applied everything that the log had before. */
export const CAUGHT_UP = "caught up";

/** How many times a member may miss a timeout before it is expelled. */
const MOST_TRIES = 2;

export function rounds({ group: name, setting, roundMs, gatherMs }: LogViewsOptions) {
  const ask = (operation: GroupOperation, ctx: Ctx): void => ctx.emit({ type: "asked", operation });

  /** Leaving a group has no effect for a non-member, but it creates a session. */
  const askForSession = (ctx: Ctx): void => ask({ type: "leaveGroup", name }, ctx);

  /** Enters as a new member. */
  function enter(state: State, ctx: Ctx): void {
    ctx.cancelTimer("enter");
    if (state.session === null) return askForSession(ctx);
    state.membership = "entering";
    state.wait += 1;
    ask({ type: "enterGroup", name, wait: state.wait, setting }, ctx);
  }

  /** Stops following the group. Its deliveries in the last view may differ from the other members' deliveries. */
  function dropOut(state: State, ctx: Ctx): void {
    const wasInView = isInView(state);
    Object.assign(state, { membership: "outside", ...nowhere() });
    for (const timer of ["round", "expel"] as const) ctx.cancelTimer(timer);
    if (wasInView) ctx.emit({ type: "ejected" });
  }

  /** The group has changed: its members agree on the messages of the previous view. */
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

  /** Keeps a promise that arrives before this node has applied the change: its sender was faster. */
  function notePromise(state: State, from: NodeId, promised: Promised, ctx: Ctx): void {
    if (promised.round < Math.max(state.roster.revision, state.answers[from]?.round ?? 0)) return;
    state.answers[from] = promised;
    conclude(state, ctx);
  }

  /** All members of the group have promised: the cut is known. */
  function conclude(state: State, ctx: Ctx): void {
    if (!isCoordinating(state, ctx) || state.filling !== null || state.isProposed) return;
    const answers = answersOf(state);
    if (answers.length < state.roster.members.length) return;
    const { cut, holders, lacking } = nextCut(answers);
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

  /** Every node that follows the log installs or ignores the view at the same entry. */
  function install(state: State, number: number, { cut }: ViewEntry, ctx: Ctx): void {
    const members = state.roster.members.map(({ node }) => node);
    const wasInView = isInView(state);
    state.view = { number, members };
    Object.assign(state, {
      isChanging: false,
      promised: null,
      answers: {},
      filling: null,
      isProposed: false,
      attempts: 0,
    });
    ctx.cancelTimer("round");
    resume(state, ctx);
    ctx.emit({ type: "installed", view: number, members: [...members], cut: wasInView ? cut : [] });
  }

  /** The log has a leader again. Group changes in the meantime precede this member's own entry. */
  function catchUp(state: State, ctx: Ctx): void {
    const { membership, session, wait, isStalled } = state;
    if (!isStalled || membership !== "inside" || session === null) return; // Its next view ends the stall.
    ask({ type: "say", name, wait, number: 0, to: null, text: CAUGHT_UP }, ctx);
  }

  function resume(state: State, ctx: Ctx): void {
    if (!state.isStalled) return;
    state.isStalled = false;
    ctx.emit({ type: "resumed" });
  }

  /** The lowest unsuspected member goes first. The others follow if it does not share the suspicion. */
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

  /** Repeats messages that may have been lost. Expels members after two missed timeouts. */
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
    ...{ askForSession, ask, enter, dropOut, beginRound, promise, notePromise, proposeIfFilled },
    ...{ install, considerSuspects, expel, pursue, catchUp, resume },
  };
}
