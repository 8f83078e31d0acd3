/** What a node of views remembers, takes over and says when a view is decided. */
import type { Context } from "../../../core/protocol.ts";
import { FIRST_ROUND, type GroupView, isGranted, isInside, nextRound, nodesOf, type Views } from "./vocabulary.ts";

type State = Views["state"];
type Ctx = Context<Views>;

/**
 * After a restart the lowest node could not tell whether it has used the first round. So its journal says from the beginning that
 * it has promised a later one, and only a node that has not been started before can use the first.
 */
export function keep({ incarnation, promised, accepted, view }: State, ctx: Ctx): void {
  const isLowest = ctx.peers.every((peer) => peer > ctx.self);
  const later = isLowest ? nextRound(FIRST_ROUND, 0, ctx.peers.length + 1) : promised;
  ctx.compact([{ type: "register", incarnation, promised: Math.max(promised, later), accepted, view }]);
}

/** Phase 2b of Paxos, up to the answer. */
export function accept(state: State, round: number, view: GroupView, ctx: Ctx): void {
  state.promised = round;
  state.accepted = { round, view };
  keep(state, ctx);
}

/** From now on the node is another member, if it comes to be one: what was meant for its last life does not concern it. */
export function beginLife(state: State, ctx: Ctx): void {
  state.incarnation += 1;
  keep(state, ctx);
}

/** One by one: where `broadcast` is a datagram it may get lost, and a round would wait for it in vain. */
export function tellAll(message: Views["message"], ctx: Ctx): void {
  for (const peer of ctx.peers) ctx.send(peer, message);
}

export const wishOf = ({ incarnation, wants, view }: State) =>
  ({ type: "wish", base: view.number, incarnation, wants }) as const;

export const wish = (state: State, ctx: Ctx): void => tellAll(wishOf(state), ctx);

/** The view is decided, and so is every one before it. */
export function adopt(state: State, view: GroupView, ctx: Ctx): void {
  const wasInside = isInside(state, ctx.self);
  const before = state.view.number;
  state.view = view;
  state.accepted = null;
  state.isBlocked = false;
  state.phase = { is: "idle" };
  state.late = [];
  state.attempts = 0;
  // A node that is still not content says so again.
  state.wishes = Object.fromEntries(Object.entries(state.wishes).filter(([, { base }]) => base >= view.number));
  ctx.cancelTimer("change");
  resume(state, ctx);
  if (isInside(state, ctx.self)) {
    // Not journalled before the node promises something for the next view: those that have accepted this one remember it.
    const cut = wasInside && view.number === before + 1 ? view.cut : [];
    ctx.emit({ type: "installed", view: view.number, members: nodesOf(view), cut });
  } else if (wasInside) {
    beginLife(state, ctx);
    ctx.emit({ type: "ejected" });
    if (!state.wants) sayLeft(ctx);
  } else keep(state, ctx);
  if (!isGranted(view, ctx.self, state)) wish(state, ctx);
}

/** A step later, so that `ejected` has gone through all the layers above before. */
export function sayLeft(ctx: Ctx): void {
  ctx.setTimer("left", 0);
}

export function stall(state: State, ctx: Ctx): void {
  if (state.isStalled) return;
  state.isStalled = true;
  ctx.emit({ type: "stalled" });
}

export function resume(state: State, ctx: Ctx): void {
  if (!state.isStalled) return;
  state.isStalled = false;
  ctx.emit({ type: "resumed" });
}
