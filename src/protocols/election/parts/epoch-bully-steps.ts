/** What a node of epoch-bully does whatever its options: it promises, gives a term up, leaves an election. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { type EpochBully, isConfirmed, isSame, mayLead, type Pledge } from "./epoch-bully-words.ts";
import { leaseTimer } from "./lease.ts";

type State = EpochBully["state"];
type Ctx = Context<EpochBully>;

/** Durable before the vote leaves. */
export function promise(state: State, to: Pledge, ctx: Ctx): void {
  if (isSame(state.promised, to)) return;
  state.promised = to;
  ctx.compact([{ type: "promised", ...to }]);
}

export function release(state: State, released: Pledge | null, ctx: Ctx): void {
  if (released === null || (state.released !== null && released.epoch < state.released.epoch)) return;
  state.released = released;
  if (!state.isBound || !isSame(state.promised, released)) return;
  state.isBound = false;
  ctx.cancelTimer("bound");
}

/** The certainty of this round takes the place of that of the round before. */
export function certify(state: State, ctx: Ctx): void {
  const { phase, promised } = state;
  if (phase.is !== "leading" || !isConfirmed(state)) return;
  ctx.cancelTimer(leaseTimer(phase.round - 1));
  ctx.emit({ type: "confirmed", epoch: promised.epoch }, leaseTimer(phase.round));
}

/** Neither leads nor will lead the epoch that it has promised itself, and says so: whoever is bound by it is free. */
export function giveUp(state: State, successor: NodeId | null, ctx: Ctx): void {
  const { epoch } = state.promised;
  if (state.phase.is === "leading") ctx.emit({ type: "deposed", epoch });
  state.phase = { is: "following" };
  state.released = { ...state.promised };
  for (const timer of ["answer", "renew", "leaseEven", "leaseOdd"] as const) ctx.cancelTimer(timer);
  ctx.broadcast({ type: "resign", epoch, successor });
}

/** Leaves the election that it is in, if it is in one. */
export function leave(state: State, ctx: Ctx): void {
  if (mayLead(state)) return giveUp(state, null, ctx);
  state.phase = { is: "following" };
  ctx.cancelTimer("answer");
}

/** Leaves it to others, and calls an election itself if it has to, after so long. */
export function wait(state: State, ctx: Ctx, duration: number | readonly [number, number]): void {
  leave(state, ctx);
  if (state.isCandidate) ctx.setTimer("call", state.isBound ? duration : stretched(duration, state.patience));
}

function stretched(duration: number | readonly [number, number], patience: number): number | readonly [number, number] {
  const factor = 2 ** patience;
  return typeof duration === "number" ? duration * factor : [duration[0], duration[1] * factor];
}
