/** Whether a node leads, follows or stands for election, and to whom it is bound. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { promise } from "./decisions.ts";
import type { Settings } from "./options.ts";
import type { Ballot, Leader, MultiPaxos, State } from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;

/** Promises nobody else until then: so long a leader that has its confirmation may count on it. */
export function bind(state: State, { boundsMs }: Settings, ctx: Ctx): void {
  state.isBound = true;
  ctx.cancelTimer("election");
  ctx.setTimer("bound", boundsMs);
}

/** Hears from who leads with this ballot, or one above it. */
export function follow(state: State, leader: NodeId, ballot: Ballot, settings: Settings, ctx: Ctx): void {
  if (state.role.is === "follower" && state.leader === leader) return;
  leave(state, ctx);
  bind(state, settings, ctx);
  see(state, leader, ballot.round, ctx);
  for (const command of state.waiting.splice(0)) ctx.send(leader, { type: "forward", command });
}

/** No longer a candidate, or a leader. */
export function leave(state: State, ctx: Ctx): void {
  if (state.role.is === "follower") return;
  for (const timer of ["election", "heartbeat", "leaseEven", "leaseOdd"] as const) ctx.cancelTimer(timer);
  state.role = { is: "follower" };
}

/** Makes known who leads, where that is news. */
export function see(state: State, leader: NodeId | null, term: number, ctx: Ctx): void {
  if (state.leader === leader) return;
  state.leader = leader;
  ctx.emit({ type: "led", leader, term });
}

/**
 * A leader lets go of its lease and asks another to lead: whoever is bound to this ballot may promise it another. Should
 * nobody take over, this node stands again when it would have had to anyway.
 */
export function handOver(state: State, { ballot }: Leader, to: NodeId, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  see(state, null, state.promised.round, ctx);
  bind(state, settings, ctx);
  ctx.send(to, { type: "takeOver", ballot });
}

/** Neither leads nor stands any longer, and knows nobody who does; stands again if nobody is heard of. */
export function stepDown(state: State, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  see(state, null, state.promised.round, ctx);
  ctx.setTimer("election", settings.backOff);
}

/** Phase 1b, at a node that may have stood itself. */
export function yieldTo(state: State, ballot: Ballot, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  promise(state, ballot, ctx);
  if (state.leader !== ballot.node) see(state, null, ballot.round, ctx);
  bind(state, settings, ctx);
}
