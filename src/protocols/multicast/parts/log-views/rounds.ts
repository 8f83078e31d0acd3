/** The steps that take a group's members from one view on the log to the next. */
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

/**
 * The text of a log entry. When a member receives its own entry with this text, it has applied all earlier log entries.
 */
export const CAUGHT_UP = "caught up";

/** A member that has not answered after this many timeouts in a round is expelled. */
const MOST_TRIES = 2;

/** Creates the functions that take a member from one view to the next. */
export function rounds({ group: name, setting, roundMs, gatherMs }: LogViewsOptions) {
  const ask = (operation: GroupOperation, ctx: Ctx): void => ctx.emit({ type: "asked", operation });

  /** Requests a session. For a non-member, leaving a group has no effect except that it creates a session. */
  const askForSession = (ctx: Ctx): void => ask({ type: "leaveGroup", name }, ctx);

  /** Enters as a new member. */
  function enter(state: State, ctx: Ctx): void {
    ctx.cancelTimer("enter");
    if (state.session === null) return askForSession(ctx);
    state.membership = "entering";
    state.wait += 1;
    ask({ type: "enterGroup", name, wait: state.wait, setting }, ctx);
  }

  /** Stops following the group. This node's deliveries in its last view may differ from those at other members. */
  function dropOut(state: State, ctx: Ctx): void {
    const wasInView = isInView(state);
    Object.assign(state, { membership: "outside", ...nowhere() });
    for (const timer of ["round", "expel"] as const) ctx.cancelTimer(timer);
    if (wasInView) ctx.emit({ type: "ejected" });
  }

  /** Starts a round after the group has changed. In the round, the members agree on the previous view's messages. */
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

  /**
   * Records a promise. It may arrive before this node has applied the group change, because its sender may be faster.
   */
  function notePromise(state: State, from: NodeId, promised: Promised, ctx: Ctx): void {
    if (promised.round < Math.max(state.roster.revision, state.answers[from]?.round ?? 0)) return;
    state.answers[from] = promised;
    conclude(state, ctx);
  }

  /** Computes the cut once all the group's members have promised. */
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

  /** Installs the next view. Every node that follows the log does so at the same log entry. */
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

  /**
   * Catches up once the log has a leader again. Any group changes in the meantime come before this member's own log
   * entry.
   */
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

  /**
   * Schedules the expulsion of suspected members. The lowest unsuspected member goes first, and the others follow in
   * turn, in case the lowest does not share the suspicion.
   */
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

  /**
   * Resends messages that may have been lost. The coordinator expels members that have not answered after two timeouts.
   */
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
