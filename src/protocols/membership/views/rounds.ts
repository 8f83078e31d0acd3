/** Rounds: how a node prepares and proposes the next view, and gets its members the messages that they lack. */
import { entriesIn, type PerNode } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { exclude, include } from "../../node-set.ts";
import {
  type Ctx,
  FIRST_ROUND,
  type GroupView,
  isChangeDue,
  isEmpty,
  isEverybodyHeard,
  isGranted,
  isInside,
  memberOf,
  nextRound,
  nodesOf,
  type Promised,
  present,
  type State,
  type Views,
  type ViewsOptions,
  whoseRound,
} from "./vocabulary.ts";

// Journal records, decided views, and notifications about views.

/**
 * Journals the state. After a restart, the lowest node does not know whether it has used the first round. Its journal
 * therefore contains a promise for a later round from the start, and only a node that has never been started before can
 * use the first round.
 */
export function keep({ incarnation, promised, accepted, view }: State, ctx: Ctx): void {
  const isLowest = ctx.peers.every((peer) => peer > ctx.self);
  const later = isLowest ? nextRound(FIRST_ROUND, 0, ctx.peers.length + 1) : promised;
  ctx.compact([{ type: "register", incarnation, promised: Math.max(promised, later), accepted, view }]);
}

/** Accepts a view: phase 2b of Paxos, without the answer. */
export function accept(state: State, round: number, view: GroupView, ctx: Ctx): void {
  state.promised = round;
  state.accepted = { round, view };
  keep(state, ctx);
}

/**
 * Begins a new incarnation. If the node joins from now on, it is a different member. Messages for its previous
 * incarnation no longer apply.
 */
export function beginLife(state: State, ctx: Ctx): void {
  state.incarnation += 1;
  keep(state, ctx);
}

/**
 * Sends to each peer separately. A `broadcast` may be a single datagram; if it were lost, a round would wait in vain.
 */
export function tellAll(message: Views["message"], ctx: Ctx): void {
  for (const peer of ctx.peers) ctx.send(peer, message);
}

export const wishOf = ({ incarnation, wants, view }: State) =>
  ({ type: "wish", base: view.number, incarnation, wants }) as const;

export const wish = (state: State, ctx: Ctx): void => tellAll(wishOf(state), ctx);

/** Adopts a decided view. All earlier views have been decided too. */
export function adopt(state: State, view: GroupView, ctx: Ctx): void {
  const wasInside = isInside(state, ctx.self);
  const before = state.view.number;
  state.view = view;
  state.accepted = null;
  state.isBlocked = false;
  state.phase = { is: "idle" };
  state.late = [];
  state.attempts = 0;
  // A node whose request has still not been granted repeats it.
  state.wishes = Object.fromEntries(Object.entries(state.wishes).filter(([, { base }]) => base >= view.number));
  ctx.cancelTimer("change");
  resume(state, ctx);
  if (isInside(state, ctx.self)) {
    // The view is journaled before the node makes a promise for the next one. Until then, the acceptors of this view
    // remember it.
    const cut = wasInside && view.number === before + 1 ? view.cut : [];
    ctx.emit({ type: "installed", view: view.number, members: nodesOf(view), cut });
  } else if (wasInside) {
    beginLife(state, ctx);
    ctx.emit({ type: "ejected" });
    if (!state.wants) sayLeft(ctx);
  } else keep(state, ctx);
  if (!isGranted(view, ctx.self, state)) wish(state, ctx);
}

/** Emits `left` one step later, after `ejected` has passed through all layers above. */
export function sayLeft(ctx: Ctx): void {
  ctx.setTimer("left", 0);
}

/** Emits `stalled`, unless it has already been emitted. */
export function stall(state: State, ctx: Ctx): void {
  if (state.isStalled) return;
  state.isStalled = true;
  ctx.emit({ type: "stalled" });
}

/** Emits `resumed` after `stalled`. */
export function resume(state: State, ctx: Ctx): void {
  if (!state.isStalled) return;
  state.isStalled = false;
  ctx.emit({ type: "resumed" });
}

/** The phase of a round that this node has started. */
type Round = Extract<State["phase"], { round: number }>;

/** The maximum number of times that a wait is doubled. */
const MOST_DOUBLINGS = 10;

const everybody = (ctx: Ctx): NodeId[] => [...ctx.peers, ctx.self].sort((a, b) => a - b);
const quorum = (ctx: Ctx): number => majority(ctx.peers.length + 1);

/** Whether the unsuspected nodes form a majority. */
export const trusts = ({ suspected }: State, ctx: Ctx): boolean =>
  ctx.peers.length + 1 - suspected.length >= quorum(ctx);
const hasQuorum = (promises: object, ctx: Ctx): boolean => Object.keys(promises).length >= quorum(ctx);

/**
 * Returns the other nodes that cannot obtain missing messages. If there are none, returns the holders that should have
 * sent the messages to this node.
 */
function blamed({ awaited, holders }: { awaited: NodeId[]; holders: NodeId[] }, ctx: Ctx): NodeId[] {
  const others = (nodes: NodeId[]): NodeId[] => nodes.filter((node) => node !== ctx.self);
  return others(awaited).length > 0 ? others(awaited) : [...new Set(others(holders))].sort((a, b) => a - b);
}

/** Whether other nodes are waiting for the node to obtain or to provide messages. */
const countsOn = ({ awaited, holders }: { awaited: NodeId[]; holders: NodeId[] }, node: NodeId): boolean =>
  awaited.includes(node) || holders.includes(node);

/** Returns the message for the round's current step, and a function that checks whether a node has answered it. */
function question({ view }: State, phase: Round): { message: Views["message"]; isAnswered: (node: NodeId) => boolean } {
  const { round } = phase;
  switch (phase.is) {
    case "preparing": {
      const { promises } = phase;
      return { message: { type: "prepare", view, round }, isAnswered: (node) => promises[node] !== undefined };
    }
    case "filling": {
      const { awaited, holders } = phase;
      const message = { type: "fill", round, cut: phase.view.cut, holders, base: view.number } as const;
      return { message, isAnswered: (node) => !awaited.includes(node) };
    }
    case "proposing": {
      const { acceptors } = phase;
      return { message: { type: "propose", round, view: phase.view }, isAnswered: (node) => acceptors.includes(node) };
    }
  }
}

/**
 * After this many failed rounds in a row, a node ignores answers from suspected nodes when it decides whether it is in
 * doubt.
 */
const MOST_DOUBTS = 4;

/**
 * Whether the unsuspected nodes do not form a majority, or a suspected node has answered. A suspected node that has
 * answered has either crashed since, or will soon be restored, for example when a partition heals. The next round will
 * show which. Without this check, a returning minority would exclude the majority.
 */
function isInDoubt(state: State, promises: object, ctx: Ctx): boolean {
  const answers = (node: NodeId): boolean => Object.hasOwn(promises, node);
  return !trusts(state, ctx) || (state.attempts < MOST_DOUBTS && state.suspected.some(answers));
}

/**
 * Sends `prepare` to a node that has appeared while this node is preparing a round. The round waits for the node's
 * answer.
 */
export function invite(state: State, node: NodeId, ctx: Ctx): void {
  const { phase } = state;
  if (phase.is !== "preparing") return;
  const { message, isAnswered } = question(state, phase);
  if (!isAnswered(node)) ctx.send(node, message);
}

function rest(state: State, ctx: Ctx): void {
  state.phase = { is: "idle" };
  state.attempts = 0;
  ctx.cancelTimer("change");
  if (trusts(state, ctx)) resume(state, ctx);
}

/** Creates the functions that run a round's steps. */
export function rounds(options: ViewsOptions) {
  const { gatherMs, firstGatherMs, roundMs, backOffMs, maxBackOffMs } = options;

  /** Ensures that a pending change happens. The lowest node goes first, and the others give it time. */
  function consider(state: State, ctx: Ctx): void {
    if (state.phase.is === "idle" && isChangeDue(state, ctx.self)) wait(state, ctx);
    else if (state.phase.is === "due" && !isChangeDue(state, ctx.self)) rest(state, ctx);
  }

  /** Runs after an event that may make this node the one that goes first. */
  function hasten(state: State, ctx: Ctx): void {
    if (state.phase.is === "due" && isChangeDue(state, ctx.self)) state.phase = { is: "idle" };
    consider(state, ctx);
  }

  function wait(state: State, ctx: Ctx): void {
    state.phase = { is: "due" };
    const { attempts, view } = state;
    const turn = present(state, ctx.self).indexOf(ctx.self);
    const first = !isEmpty(view) ? gatherMs : isEverybodyHeard(state, ctx) ? 0 : firstGatherMs;
    const atLeast =
      attempts === 0 ? first : Math.min(maxBackOffMs, backOffMs * 2 ** Math.min(attempts, MOST_DOUBLINGS));
    const atMost = turn === 0 && attempts === 0 ? atLeast : 2 * atLeast;
    ctx.setTimer("change", [turn * roundMs + atLeast, turn * roundMs + atMost]);
  }

  /** Ends this node's own round because another node's round is in progress, and gives that round time. */
  function yieldTo(state: State, ctx: Ctx): void {
    state.phase = { is: "due" };
    ctx.setTimer("change", [2 * roundMs, 3 * roundMs]);
  }

  /**
   * Handles a node that has appeared, possibly in a new incarnation. An earlier incarnation's promises and messages are
   * lost.
   */
  function renew(state: State, node: NodeId, incarnation: number, ctx: Ctx): void {
    const { phase, view } = state;
    const isOfAnEarlier = (life: { incarnation: number } | undefined) =>
      life !== undefined && life.incarnation < incarnation;
    if (phase.is === "filling" && countsOn(phase, node) && isOfAnEarlier(memberOf(view, node)))
      return prepare(state, ctx);
    if (phase.is === "preparing" && isOfAnEarlier(phase.promises[node])) delete phase.promises[node];
    invite(state, node, ctx);
  }

  function fail(state: State, ctx: Ctx): void {
    state.attempts += 1;
    state.phase = { is: "idle" };
    consider(state, ctx);
  }

  /** Starts the next step of this node's round. Returns the step's message to the other nodes. */
  function step(state: State, phase: Round, ctx: Ctx): Views["message"] {
    state.phase = phase;
    ctx.setTimer("change", roundMs / 2);
    return question(state, phase).message;
  }

  /**
   * Starts phase 1a. The node is also an acceptor. It promises first, so that its journal prevents it from reusing the
   * round.
   */
  function prepare(state: State, ctx: Ctx): void {
    const everyone = everybody(ctx);
    const round = nextRound(state.promised, everyone.indexOf(ctx.self), everyone.length);
    const message = step(state, { is: "preparing", round, isRepeated: false, promises: {} }, ctx);
    state.promised = round;
    keep(state, ctx);
    tellAll(message, ctx);
    fallSilent(state, ctx);
  }

  /** Proposes the first view without phase 1, if this node may do so. */
  function begin(state: State, ctx: Ctx): void {
    const view = firstView(state, ctx);
    if (view !== null) propose(state, FIRST_ROUND, view, ctx);
  }

  /** Performs phase 1b. A member first blocks, then promises once it has counted its messages in the current view. */
  function fallSilent(state: State, ctx: Ctx): void {
    if (!isInside(state, ctx.self)) return promise(state, null, ctx);
    state.isBlocked = true;
    ctx.emit({ type: "flush", round: state.promised });
  }

  function promise(state: State, received: number[] | null, ctx: Ctx): void {
    const { promised: round, accepted, incarnation, wants, view } = state;
    const answer = { accepted, incarnation, wants, received };
    const coordinator = whoseRound(round, everybody(ctx));
    if (coordinator === ctx.self) notePromise(state, ctx.self, round, answer, ctx);
    else ctx.send(coordinator, { type: "promise", base: view.number, round, ...answer });
  }

  function notePromise(state: State, from: NodeId, round: number, promised: Promised, ctx: Ctx): void {
    const { phase } = state;
    // The promise is for an earlier attempt, or is no longer needed.
    if (phase.is !== "preparing" || phase.round !== round) return;
    if (promised.incarnation < (state.wishes[from]?.incarnation ?? 0)) return; // A promise from an earlier incarnation.
    phase.promises[from] = promised;
    if (hasQuorum(phase.promises, ctx)) resume(state, ctx);
    concludeIfAnswered(state, ctx);
  }

  /**
   * Concludes phase 1 once all answers have arrived. The round waits for all nodes that are known to be present, except
   * nodes that were late in an earlier round.
   */
  function concludeIfAnswered(state: State, ctx: Ctx): void {
    const { phase, late } = state;
    if (phase.is !== "preparing" || !hasQuorum(phase.promises, ctx)) return;
    const isAwaited = (node: NodeId): boolean => phase.promises[node] === undefined && !late.includes(node);
    if (!present(state, ctx.self).some(isAwaited)) conclude(state, ctx);
  }

  /** Starts phase 2a. If a value has been accepted, it is proposed again; its members already hold its cut. */
  function conclude(state: State, ctx: Ctx): void {
    const { phase } = state;
    if (phase.is !== "preparing") return;
    const { round, promises } = phase;
    const accepted = Object.values(promises).flatMap((promised) => promised.accepted ?? []);
    const highest = accepted.sort((a, b) => b.round - a.round)[0];
    if (highest !== undefined) return propose(state, round, highest.view, ctx);
    if (isInDoubt(state, promises, ctx)) return fail(state, ctx);
    const { view, holders, lacking } = nextView(state, promises);
    if (lacking.length === 0) return propose(state, round, view, ctx);
    const message = step(state, { is: "filling", round, isRepeated: false, view, awaited: lacking, holders }, ctx);
    for (const node of lacking)
      if (node === ctx.self) ctx.emit({ type: "fill", round, cut: view.cut, holders });
      else ctx.send(node, message);
  }

  /** Confirms that this node holds the whole cut. */
  function confirm(state: State, round: number, ctx: Ctx): void {
    const coordinator = whoseRound(round, everybody(ctx));
    if (coordinator === ctx.self) noteFilled(state, ctx.self, round, ctx);
    else ctx.send(coordinator, { type: "filled", base: state.view.number, round });
  }

  function noteFilled(state: State, from: NodeId, round: number, ctx: Ctx): void {
    const { phase } = state;
    if (phase.is !== "filling" || phase.round !== round) return; // The message belongs to an earlier attempt.
    exclude(phase.awaited, from);
    if (phase.awaited.length === 0) propose(state, round, phase.view, ctx);
  }

  function propose(state: State, round: number, view: GroupView, ctx: Ctx): void {
    tellAll(step(state, { is: "proposing", round, isRepeated: false, view, acceptors: [] }, ctx), ctx);
    accept(state, round, view, ctx);
    noteAccept(state, ctx.self, round, ctx);
  }

  function noteAccept(state: State, from: NodeId, round: number, ctx: Ctx): void {
    const { phase } = state;
    // The acceptance is for an earlier attempt, or is no longer needed.
    if (phase.is !== "proposing" || phase.round !== round) return;
    include(phase.acceptors, from);
    if (phase.acceptors.length < quorum(ctx)) return;
    tellAll({ type: "decided", view: phase.view }, ctx);
    adopt(state, phase.view, ctx);
    consider(state, ctx);
  }

  /**
   * Runs when half of the time for a step in this node's round is over, and resends messages. At the end of that time,
   * gives up.
   */
  function takeTooLong(state: State, ctx: Ctx): void {
    const { phase, suspected } = state;
    if (phase.is === "idle" || phase.is === "due" || phase.isRepeated) return giveUp(state, ctx);
    phase.isRepeated = true;
    ctx.setTimer("change", roundMs / 2);
    const { message, isAnswered } = question(state, phase);
    for (const peer of ctx.peers) if (!suspected.includes(peer) && !isAnswered(peer)) ctx.send(peer, message);
  }

  /** Gives up a round because a step has taken too long. The next round leaves out the nodes that caused the delay. */
  function giveUp(state: State, ctx: Ctx): void {
    const { phase } = state;
    state.late = [];
    if (phase.is === "preparing" && hasQuorum(phase.promises, ctx)) {
      state.late = present(state, ctx.self).filter((node) => phase.promises[node] === undefined);
      return conclude(state, ctx);
    }
    if (phase.is === "filling") state.late = blamed(phase, ctx);
    else stall(state, ctx);
    fail(state, ctx);
  }

  /** Continues a round without a node that was needed but has crashed. */
  function doWithout(state: State, node: NodeId, ctx: Ctx): void {
    const { phase } = state;
    if (phase.is === "preparing") concludeIfAnswered(state, ctx);
    if (phase.is !== "filling" || !countsOn(phase, node)) return;
    include(state.late, node);
    prepare(state, ctx);
  }

  return {
    ...{ consider, hasten, yieldTo, renew, begin, prepare, fallSilent, promise, notePromise },
    ...{ confirm, noteFilled, noteAccept, takeTooLong, doWithout },
  };
}

/**
 * Returns the first view if this node may propose it at once. No promises are needed, because nothing can have been
 * accepted in a lower round: all nodes have reported whether they want to join, and hold no messages. The lowest node
 * does this at most once per view, and never after a restart.
 */
function firstView(state: State, ctx: Ctx): GroupView | null {
  const { view, promised, accepted, suspected, wishes, incarnation, wants } = state;
  const isUnused = promised === FIRST_ROUND && accepted === null;
  const isMine = whoseRound(FIRST_ROUND, everybody(ctx)) === ctx.self;
  const isComplete = suspected.length === 0 && ctx.peers.every((peer) => wishes[peer]?.base === view.number);
  if (!isEmpty(view) || !isUnused || !isMine || !isComplete || !isChangeDue(state, ctx.self)) return null;
  const lives = Object.entries({ ...wishes, [ctx.self]: { incarnation, wants } });
  const promises = lives.map(([node, life]) => [node, { ...life, accepted: null, received: null }]);
  return nextView(state, Object.fromEntries(promises)).view;
}

/**
 * Computes the surviving members, the current view's cut, a holder of each member's messages up to the cut, and the
 * members that lack some of them.
 *
 * A surviving node's promise counts all its deliveries, and the node delivers no more until the next view. The cut is
 * at least every survivor's count, so it includes all their deliveries. Leaving nodes count too, so that their last
 * messages belong to their last view. Nodes that were late, or that are still suspected although they have answered,
 * are left out and do not count. If the cut included messages that only such a node holds, all nodes would wait for it;
 * and if the view included the node, the view would have to change again at once. Messages that only such a node has
 * delivered are lost with it.
 */
function nextView(
  { view: { number, members }, late, suspected }: State,
  promises: Readonly<PerNode<Promised>>,
): { view: GroupView; holders: NodeId[]; lacking: NodeId[] } {
  const answered = entriesIn(promises)
    .map(([node, promised]) => ({ node, ...promised }))
    .filter(({ node }) => !late.includes(node) && !suspected.includes(node));
  const going = answered.filter(({ wants }) => wants);
  const counted = answered.flatMap(({ node, received }) => (received === null ? [] : [{ node, received }]));
  const cut = members.map((_, k) => Math.max(0, ...counted.map(({ received }) => received[k] ?? 0)));
  const holders = members.map(({ node }, k) => {
    const having = counted.filter(({ received }) => received[k] === cut[k]).map((each) => each.node);
    return having.includes(node) ? node : (having[0] ?? node);
  });
  const lacking = going.filter(({ received }) => received?.some((count, k) => count < (cut[k] ?? 0)) === true);
  return {
    view: { number: number + 1, members: going.map(({ node, incarnation }) => ({ node, incarnation })), cut },
    holders,
    lacking: lacking.map(({ node }) => node),
  };
}
