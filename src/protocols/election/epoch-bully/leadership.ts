/** What promises and leases bind a node of epoch-bully to: how it votes, leads for as long as its lease is renewed, and gives up. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import type { EpochBullyOptions } from "./options.ts";
import { type EpochBully, isConfirmed, isSame, type Pledge } from "./vocabulary.ts";

type State = EpochBully["state"];
type Ctx = Context<EpochBully>;

/** Durable before the vote leaves. */
export function promise(state: State, to: Pledge, ctx: Ctx): void {
  if (isSame(state.promised, to)) return;
  state.promised = to;
  ctx.compact([{ type: "promised", ...to }]);
}

/** The node that the promise was made to has given it back. */
export function release(state: State, released: Pledge | null, ctx: Ctx): void {
  if (released === null || (state.released !== null && released.epoch < state.released.epoch)) return;
  state.released = released;
  if (!state.isBound || !isSame(state.promised, released)) return;
  state.isBound = false;
  ctx.cancelTimer("bound");
}

/**
 * A round that a majority has confirmed is followed by the next. One that it has not is sent again, and what it will
 * be worth still counts from the first time.
 */
export function renew(state: State, { leaseMs, renewMs }: EpochBullyOptions, ctx: Ctx): void {
  const { phase, promised } = state;
  if (phase.is !== "leading") return;
  if (isConfirmed(state)) {
    phase.round += 1;
    phase.confirms = [];
    ctx.setTimer(leaseTimer(phase.round), leaseMs);
  }
  ctx.setTimer("renew", renewMs);
  ctx.broadcast({ type: "coordinator", epoch: promised.epoch, round: phase.round, rank: state.rank });
  certify(state, ctx);
}

/** The certainty of this round takes the place of that of the round before. */
export function certify(state: State, ctx: Ctx): void {
  const { phase, promised } = state;
  if (phase.is !== "leading" || !isConfirmed(state)) return;
  ctx.cancelTimer(leaseTimer(phase.round - 1));
  ctx.emit({ type: "confirmed", epoch: promised.epoch }, leaseTimer(phase.round));
}

/** Neither leads nor will lead the epoch that it has promised itself, and says so: nodes that it has bound are free. */
export function giveUp(state: State, successor: NodeId | null, ctx: Ctx): void {
  const { epoch } = state.promised;
  if (state.phase.is === "leading") ctx.emit({ type: "deposed", epoch });
  state.phase = { is: "following" };
  state.released = { ...state.promised };
  for (const timer of ["answer", "renew", "leaseEven", "leaseOdd"] as const) ctx.cancelTimer(timer);
  ctx.broadcast({ type: "resign", epoch, successor });
}
