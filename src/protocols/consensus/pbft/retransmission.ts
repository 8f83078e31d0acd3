/**
 * What was lost is sent again: a replica that waits for something and comes no further tells the others where it stands, and they
 * send it what they have beyond that. Nothing else repeats by itself. (The thesis, Castro 2001, §5.2.)
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { sign } from "../../../core/signatures.ts";
import { commitShape, prepareShape } from "./certificates.ts";
import type { PbftOptions } from "./options.ts";
import { batchOf, slotsOf, wantedOf } from "./slots.ts";
import { fetchState, sendProof } from "./state-transfer.ts";
import { isWaiting, watchProgress } from "./time-outs.ts";
import { ownViewChange } from "./view-changes.ts";
import { isReplica, others, type Pbft } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;
type Status = Extract<Pbft["message"], { type: "status" }>;

/** What one status is answered with at most: so many sequence numbers. */
const MAX_RESENT = 8;
/** Digests in one status. */
export const MAX_WANTED = 16;

/** The status timer has run out. */
export function askAround(state: State, options: PbftOptions, ctx: Ctx): void {
  const isStuck = state.watched === state.executed;
  state.watched = null;
  if (isStuck && isWaiting(state)) {
    tellStatus(state, ctx);
    if (state.goal !== null && state.goal.sequence > state.executed) fetchState(state, ctx);
  }
  if (state.goal !== null && state.goal.sequence <= state.executed) state.goal = null; // It has come there by itself.
  watchProgress(state, options, ctx);
}

export function tellStatus(state: State, ctx: Ctx): void {
  for (const replica of others(state, ctx)) ctx.send(replica, statusOf(state));
}

function statusOf(state: State): Status {
  const { view, isChanging, stable, executed } = state;
  const wanted = slotsOf(state)
    .flatMap(([, slot]) => wantedOf(slot))
    .slice(0, MAX_WANTED);
  return { type: "status", view, isChanging, stable: stable.sequence, executed, wanted };
}

export function receiveStatus(state: State, from: NodeId, status: Status, ctx: Ctx): void {
  if (!isReplica(state, ctx.self) || !isReplica(state, from)) return;
  if (status.stable < state.stable.sequence) sendProof(state, from, ctx);
  sendView(state, from, status, ctx);
  const missed = slotsOf(state).filter(([sequence]) => sequence > status.executed);
  for (const [sequence] of missed.slice(0, MAX_RESENT)) sendSlot(state, from, sequence, status, ctx);
  // This replica is the one that has missed something.
  if (status.view > state.view || (status.view === state.view && state.isChanging && !status.isChanging))
    if (!status.isChanging) ctx.send(from, statusOf(state));
}

/** What shows that a view has begun, or that this replica has given one up. */
function sendView(state: State, to: NodeId, status: Status, ctx: Ctx): void {
  const isBehind = status.view < state.view || (status.view === state.view && status.isChanging);
  if (!isBehind) return;
  if (state.isChanging) ctx.send(to, { type: "viewChange", viewChange: ownViewChange(state, ctx) });
  else if (state.newView !== null) ctx.send(to, { type: "newView", ...state.newView });
}

function sendSlot(state: State, to: NodeId, sequence: number, status: Status, ctx: Ctx): void {
  const slot = state.slots[sequence];
  if (slot === undefined) return;
  const { prePrepare, prepares, commits } = slot;
  for (const digest of status.wanted) {
    const batch = batchOf(slot, digest);
    if (batch !== undefined) ctx.send(to, { type: "batch", sequence, requests: batch.requests });
  }
  if (prePrepare !== null && !state.isChanging) {
    const batch = batchOf(slot, prePrepare.value.digest);
    if (batch !== undefined) ctx.send(to, { type: "prePrepare", prePrepare, requests: batch.requests });
  }
  const [prepare, commit] = [prepares[ctx.self], commits[ctx.self]];
  if (prepare !== undefined) ctx.send(to, { type: "prepare", prepare });
  if (commit !== undefined) ctx.send(to, { type: "commit", commit });
}

/** What this replica has signed before a crash, it signs again: its journal says what that was. */
export function recall(state: State, ctx: Ctx): void {
  for (const [, slot] of slotsOf(state)) {
    const { prePrepare, prepared } = slot;
    if (prePrepare !== null && prePrepare.by !== ctx.self)
      slot.prepares[ctx.self] = sign(ctx, prepareShape, prePrepare.value);
    if (prepared !== null) slot.commits[ctx.self] = sign(ctx, commitShape, prepared.prePrepare.value);
  }
}
