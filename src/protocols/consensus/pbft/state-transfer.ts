/**
 * State transfer and retransmission: how a replica obtains the state of a stable checkpoint, and messages that were
 * lost.
 */

import { clone } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { sign } from "../../../core/signatures.ts";
import { chunkAt } from "../family/chunks.ts";
import { MAX_SNAPSHOT_BYTES, snapshotOf } from "../family/replicated-log.ts";
import {
  batchOf,
  commitShape,
  digestOfState,
  isWaiting,
  journal,
  prepareShape,
  slotsOf,
  wantedOf,
  watchProgress,
} from "./certificates.ts";
import { forgetUpTo } from "./garbage-collection.ts";
import { execute, noteProgress } from "./normal-case-operation.ts";
import { ownViewChange } from "./view-changes.ts";
import {
  type Ctx,
  type Goal,
  INDICES,
  isReplica,
  others,
  type Pbft,
  type PbftOptions,
  type State,
} from "./vocabulary.ts";

// State transfer: a replica that is behind a stable checkpoint fetches the state in pieces from one of the 2f + 1
// replicas that signed it. It verifies the digest. If the digest differs or nothing arrives, it fetches from the next
// replica.

type Piece = Extract<Pbft["message"], { type: "state" }>;

/** Restarts the transfer from the next signer of the proof. */
function fetchState(state: State, ctx: Ctx): void {
  const { goal } = state;
  if (goal === null) return;
  goal.source += 1;
  goal.text = "";
  const source = sourceOf(goal, ctx);
  if (source !== null) ctx.send(source, { type: "fetch", sequence: goal.sequence, position: 0 });
}

function sourceOf({ proof, source }: Goal, { self }: Ctx): NodeId | null {
  const nodes = proof.map(({ by }) => by).filter((node) => node !== self);
  return nodes[source % nodes.length] ?? null;
}

/** Answers a fetch. A replica that has advanced since then sends its own checkpoint instead. */
export function sendState(
  state: State,
  from: NodeId,
  { sequence, position }: { sequence: number; position: number },
  options: PbftOptions,
  ctx: Ctx,
): void {
  const { stable } = state;
  if (!isReplica(state, from) || stable.sequence < sequence) return;
  if (stable.sequence > sequence) return sendProof(state, from, ctx);
  if (position > stable.text.length) return;
  const text = chunkAt(stable.text, position, options.maxChunkChars);
  const isLast = position + text.length >= stable.text.length;
  ctx.send(from, { type: "state", sequence, position, executed: stable.executed, text, isLast });
}

function sendProof({ stable }: State, to: NodeId, ctx: Ctx): void {
  for (const checkpoint of stable.proof) ctx.send(to, { type: "checkpoint", checkpoint });
}

/** Handles a piece of a checkpoint. */
export function receiveState(state: State, from: NodeId, piece: Piece, options: PbftOptions, ctx: Ctx): void {
  const { goal } = state;
  if (goal === null || piece.sequence !== goal.sequence || from !== sourceOf(goal, ctx)) return;
  const length = goal.text.length + piece.text.length;
  if (piece.position !== goal.text.length || length > MAX_SNAPSHOT_BYTES) return;
  if (!piece.isLast && piece.text === "") return;
  goal.text += piece.text;
  goal.executed = piece.executed;
  if (!piece.isLast) return ctx.send(from, { type: "fetch", sequence: goal.sequence, position: goal.text.length });
  if (digestOfState(goal.executed, goal.text) !== goal.digest) return fetchState(state, ctx); // The digest differs.
  install(state, goal, options, ctx);
}

function install(
  state: State,
  { sequence, digest, proof, executed, text }: Goal,
  options: PbftOptions,
  ctx: Ctx,
): void {
  state.stable = { sequence, digest, proof, executed, text };
  forgetUpTo(state, sequence);
  if (sequence > state.executed) {
    state.executed = sequence;
    state.last = clone(executed);
    ctx.emit({ type: "installed", index: sequence * INDICES, snapshot: snapshotOf(text) });
  }
  journal(state, ctx);
  noteProgress(state, options, ctx);
  execute(state, options, ctx);
}

// Retransmission: a waiting replica that makes no progress sends its status, and the others send it the messages that
// it may have missed. Replicas retransmit nothing else. (Castro's thesis, 2001, §5.2.)

type Status = Extract<Pbft["message"], { type: "status" }>;

/** The maximum number of sequence numbers in the answer to a status. */
const MAX_RESENT = 8;
/** The maximum number of digests in a status. */
export const MAX_WANTED = 16;

/** Sends this replica's status if it is making no progress. Runs when the status timer expires. */
export function askAround(state: State, options: PbftOptions, ctx: Ctx): void {
  const isStuck = state.watched === state.executed;
  state.watched = null;
  if (isStuck && isWaiting(state)) {
    tellStatus(state, ctx);
    if (state.goal !== null && state.goal.sequence > state.executed) fetchState(state, ctx);
  }
  if (state.goal !== null && state.goal.sequence <= state.executed) state.goal = null; // Already reached.
  watchProgress(state, options, ctx);
}

/** Sends this replica's status to all others. */
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

/** Sends a replica the messages that it lacks according to its status. */
export function receiveStatus(state: State, from: NodeId, status: Status, ctx: Ctx): void {
  if (!isReplica(state, ctx.self) || !isReplica(state, from)) return;
  if (status.stable < state.stable.sequence) sendProof(state, from, ctx);
  sendView(state, from, status, ctx);
  const missed = slotsOf(state).filter(([sequence]) => sequence > status.executed);
  for (const [sequence] of missed.slice(0, MAX_RESENT)) sendSlot(state, from, sequence, status, ctx);
  // The sender is ahead. Send it this replica's own status, to receive the missing messages.
  if (status.view > state.view || (status.view === state.view && state.isChanging && !status.isChanging))
    if (!status.isChanging) ctx.send(from, statusOf(state));
}

/** Sends the proof that a view has begun, or this replica's view change. */
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

/** Re-signs the votes that this replica cast before the crash. They are derived from the journal. */
export function recall(state: State, ctx: Ctx): void {
  for (const [, slot] of slotsOf(state)) {
    const { prePrepare, prepared } = slot;
    if (prePrepare !== null && prePrepare.by !== ctx.self)
      slot.prepares[ctx.self] = sign(ctx, prepareShape, prePrepare.value);
    if (prepared !== null) slot.commits[ctx.self] = sign(ctx, commitShape, prepared.prePrepare.value);
  }
}
