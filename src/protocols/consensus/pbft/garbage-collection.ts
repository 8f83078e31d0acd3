/** Garbage collection (§4.3): 2f + 1 checkpoints that agree make a state stable; what led to it is forgotten, and the window moves on. */
import { nodesIn } from "../../../core/per-node.ts";
import { clone } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import { chunkAt } from "../family/chunks.ts";
import { MAX_SNAPSHOT_BYTES } from "../family/replicated-log.ts";
import {
  batchOf,
  checkpointShape,
  commitShape,
  digestOfState,
  isOfReplica,
  journal,
  prepareShape,
  slotsOf,
  wantedOf,
} from "./certificates.ts";
import { execute, noteProgress } from "./normal-case-operation.ts";
import { eased, isWaiting, ownViewChange, watchProgress } from "./view-changes.ts";
import {
  type Checkpoint,
  type Ctx,
  type Goal,
  INDICES,
  isReplica,
  others,
  type Pbft,
  type PbftOptions,
  quorum,
  type State,
} from "./vocabulary.ts";

/** Of each replica, so many checkpoints are known: those of a window, and what is beyond it. */
const MAX_CHECKPOINTS = 8;

/** The state machine is asked for its snapshot just where the batch ends. */
export function takeCheckpoint(state: State, ctx: Ctx): void {
  const { executed: sequence } = state;
  state.snapshots = state.snapshots.filter((snapshot) => snapshot.sequence !== sequence);
  state.snapshots.push({ sequence, digest: "", executed: clone(state.last), text: "" });
  ctx.emit({ type: "checkpoint", index: sequence * INDICES });
}

/** The state machine has handed it in. */
export function compact(state: State, index: number, text: string, ctx: Ctx): void {
  const snapshot = state.snapshots.find(({ sequence }) => sequence * INDICES === index);
  if (snapshot === undefined || snapshot.digest !== "") return; // It was not asked for.
  snapshot.text = text;
  snapshot.digest = digestOfState(snapshot.executed, text);
  const { sequence, digest } = snapshot;
  const own = sign(ctx, checkpointShape, { sequence, digest });
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "checkpoint", checkpoint: own });
  note(state, own, ctx);
}

export function receiveCheckpoint(state: State, checkpoint: Signed<Checkpoint>, options: PbftOptions, ctx: Ctx): void {
  const { by, value } = checkpoint;
  if (value.sequence <= state.stable.sequence || value.sequence % options.checkpointEvery !== 0) return;
  if (state.checkpoints[by]?.some((known) => known.value.sequence === value.sequence)) return;
  if (isOfReplica(state, checkpointShape, checkpoint, ctx)) note(state, checkpoint, ctx);
}

function note(state: State, checkpoint: Signed<Checkpoint>, ctx: Ctx): void {
  const { by, value } = checkpoint;
  const known = (state.checkpoints[by] ?? []).filter((each) => each.value.sequence !== value.sequence);
  const all = [...known, checkpoint].sort((a, b) => a.value.sequence - b.value.sequence);
  state.checkpoints[by] = all.slice(-MAX_CHECKPOINTS);
  const proof = nodesIn(state.checkpoints).flatMap((node) =>
    (state.checkpoints[node] ?? []).filter(
      (each) => each.value.sequence === value.sequence && each.value.digest === value.digest,
    ),
  );
  if (proof.length >= quorum(state)) prove(state, proof.slice(0, quorum(state)), ctx);
}

/** The checkpoint is right. Where this replica has come to the same, it is stable here; otherwise it has to catch up. */
export function prove(state: State, proof: Signed<Checkpoint>[], ctx: Ctx): void {
  const { sequence, digest } = (proof[0] as Signed<Checkpoint>).value;
  if (sequence <= state.stable.sequence) return;
  const own = state.snapshots.find((snapshot) => snapshot.sequence === sequence && snapshot.digest === digest);
  if (own === undefined) return awaitState(state, proof);
  state.stable = { ...own, proof };
  if (!state.isChanging) state.failures = eased(state.failures);
  forgetUpTo(state, sequence);
  journal(state, ctx);
}

/** It may come there by itself yet: only when its status timer runs out, it fetches the state. */
function awaitState(state: State, proof: Signed<Checkpoint>[]): void {
  const { sequence, digest } = (proof[0] as Signed<Checkpoint>).value;
  if (sequence <= (state.goal?.sequence ?? 0)) return;
  state.goal = { sequence, digest, proof, source: 0, executed: {}, text: "" };
}

/** What the stable checkpoint stands for. */
function forgetUpTo(state: State, sequence: number): void {
  for (const at of nodesIn(state.slots)) if (at <= sequence) delete state.slots[at];
  state.snapshots = state.snapshots.filter((snapshot) => snapshot.sequence > sequence);
  for (const node of nodesIn(state.checkpoints)) {
    const later = (state.checkpoints[node] ?? []).filter(({ value }) => value.sequence > sequence);
    if (later.length === 0) delete state.checkpoints[node];
    else state.checkpoints[node] = later;
  }
  if (state.goal !== null && state.goal.sequence <= sequence) state.goal = null;
}

// State transfer: who has fallen behind a stable checkpoint fetches the state that 2f + 1 vouch for, from one of them, piece by piece.
// What it gets it checks against the digest that they have signed; if that is wrong, or nothing comes, it asks the next.

type Piece = Extract<Pbft["message"], { type: "state" }>;

/** From the next one of those that vouch for it, from the beginning. */
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

/** At a replica that has it. One that has gone on since shows where it is. */
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

export function receiveState(state: State, from: NodeId, piece: Piece, options: PbftOptions, ctx: Ctx): void {
  const { goal } = state;
  if (goal === null || piece.sequence !== goal.sequence || from !== sourceOf(goal, ctx)) return;
  const length = goal.text.length + piece.text.length;
  if (piece.position !== goal.text.length || length > MAX_SNAPSHOT_BYTES) return;
  if (!piece.isLast && piece.text === "") return;
  goal.text += piece.text;
  goal.executed = piece.executed;
  if (!piece.isLast) return ctx.send(from, { type: "fetch", sequence: goal.sequence, position: goal.text.length });
  if (digestOfState(goal.executed, goal.text) !== goal.digest) return fetchState(state, ctx); // Not what they have signed.
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
    ctx.emit({ type: "installed", index: sequence * INDICES, snapshot: text });
  }
  journal(state, ctx);
  noteProgress(state, options, ctx);
  execute(state, options, ctx);
}

// What was lost is sent again: a replica that waits for something and comes no further tells the others where it stands, and they
// send it what they have beyond that. Nothing else repeats by itself. (The thesis, Castro 2001, §5.2.)

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
