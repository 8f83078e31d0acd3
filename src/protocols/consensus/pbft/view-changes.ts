/**
 * View changes (§4.4): backups that wait too long give up a view, and the next primary adopts everything that may have
 * been committed.
 */
import { entriesIn, nodesIn } from "../../../core/per-node.ts";
import { canonical, equal } from "../../../core/plain.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import {
  areDistinct,
  batchOf,
  isInWindow,
  isLast,
  isOfReplica,
  isPreparedBy,
  isProof,
  journal,
  keepBatch,
  NOTHING,
  prePrepareShape,
  slotAt,
  slotsOf,
  timeOutMs,
  viewChangeShape,
  watchPending,
} from "./certificates.ts";
import { prove } from "./garbage-collection.ts";
import { checkPrepared, execute, prepare } from "./normal-case-operation.ts";
import {
  type Assignment,
  type Ctx,
  isPrimary,
  isReplica,
  type NewView,
  others,
  type PbftOptions,
  primaryOf,
  quorum,
  type State,
  type ViewChange,
  weakQuorum,
} from "./vocabulary.ts";

/** Gives up the view. Runs when the timer for a request or for the new view expires. */
export function giveUp(state: State, options: PbftOptions, ctx: Ctx): void {
  if (isLast(state, options)) return;
  changeTo(state, state.view + 1, options, ctx);
}

/** Moves to a later view. From then on, this replica takes no part in earlier views. */
export function changeTo(state: State, view: number, options: PbftOptions, ctx: Ctx): void {
  state.view = view;
  state.isChanging = true;
  state.failures += 1;
  state.awaited = null;
  ctx.cancelTimer("viewChange");
  ctx.persist({ type: "view", view, isChanging: true });
  const own = ownViewChange(state, ctx);
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "viewChange", viewChange: own });
  note(state, own, options, ctx);
}

/**
 * Returns this replica's view change. It contains C and P from the paper: the stable checkpoint, and the certificates
 * prepared above it.
 */
export function ownViewChange(state: State, ctx: Ctx): Signed<ViewChange> {
  const { view, stable } = state;
  const prepared = slotsOf(state).flatMap(([, slot]) => (slot.prepared === null ? [] : [slot.prepared]));
  return sign(ctx, viewChangeShape, { view, stable: stable.sequence, proof: stable.proof, prepared });
}

/** Handles a view change. */
export function receiveViewChange(state: State, viewChange: Signed<ViewChange>, options: PbftOptions, ctx: Ctx): void {
  const { by, value } = viewChange;
  if (value.view < state.view || (value.view === state.view && !state.isChanging)) return; // That view is over or active.
  if (value.view <= (state.viewChanges[by]?.value.view ?? 0)) return;
  if (options.lastView > 0 && value.view > options.lastView) return;
  if (isSound(state, viewChange, options, ctx)) note(state, viewChange, options, ctx);
}

function isSound(state: State, viewChange: Signed<ViewChange>, { window }: PbftOptions, ctx: Ctx): boolean {
  const { view, stable, proof, prepared } = viewChange.value;
  const places = prepared.map(({ prePrepare }) => prePrepare.value);
  return (
    isOfReplica(state, viewChangeShape, viewChange, ctx) &&
    isProof(state, stable, proof, ctx) &&
    areDistinct(places.map(({ sequence }) => sequence)) &&
    places.every((at) => at.view < view && at.sequence > stable && at.sequence <= stable + window) &&
    prepared.every((certificate) => isPreparedBy(state, certificate, ctx))
  );
}

function note(state: State, viewChange: Signed<ViewChange>, options: PbftOptions, ctx: Ctx): void {
  state.viewChanges[viewChange.by] = viewChange;
  if (joinOthers(state, options, ctx)) return;
  if (!state.isChanging) return;
  const all = viewChangesTo(state, state.view);
  if (all.length < quorum(state)) return;
  if (isPrimary(state, ctx.self)) return begin(state, all.slice(0, quorum(state)), options, ctx);
  if (viewChange.value.view === state.view && all.length === quorum(state) && !isLast(state, options))
    ctx.setTimer("viewChange", timeOutMs(state, options)); // The primary can begin now, and should do so in time.
}

/**
 * Gives up this view if f + 1 replicas have, because at least one of them is correct. This replica moves to the
 * earliest of their views (§4.5.2). Those replicas may be in different views. Counting each view separately could keep
 * replicas apart forever. Returns whether this replica has moved.
 */
function joinOthers(state: State, options: PbftOptions, ctx: Ctx): boolean {
  const later = entriesIn(state.viewChanges)
    .map(([, { value }]) => value.view)
    .filter((view) => view > state.view)
    .sort((a, b) => a - b);
  const [earliest] = later;
  if (earliest === undefined || later.length < weakQuorum(state)) return false;
  changeTo(state, earliest, options, ctx);
  return true;
}

/** Returns the view changes to a view, ordered by signer so that all replicas derive the same result. */
const viewChangesTo = ({ viewChanges }: State, view: number): Signed<ViewChange>[] =>
  entriesIn(viewChanges)
    .map(([, viewChange]) => viewChange)
    .filter(({ value }) => value.view === view);

/**
 * Returns O from the paper: for each sequence number from the latest stable checkpoint to the last prepared one, the
 * digest from the latest view, or the null request.
 */
function assignmentsOf(view: number, viewChanges: readonly Signed<ViewChange>[]): Assignment[] {
  const from = Math.max(...viewChanges.map(({ value }) => value.stable));
  const prepared = viewChanges.flatMap(({ value }) => value.prepared.map(({ prePrepare }) => prePrepare.value));
  const upTo = Math.max(from, ...prepared.map(({ sequence }) => sequence));
  return Array.from({ length: upTo - from }, (_, at) => {
    const sequence = from + 1 + at;
    const [latest] = prepared.filter((each) => each.sequence === sequence).sort((a, b) => b.view - a.view);
    return { view, sequence, digest: latest?.digest ?? NOTHING };
  });
}

/** Begins the view at the new primary. */
function begin(state: State, viewChanges: Signed<ViewChange>[], options: PbftOptions, ctx: Ctx): void {
  const { view } = state;
  const prePrepares = assignmentsOf(view, viewChanges).map((value) => sign(ctx, prePrepareShape, value));
  const newView: NewView = { view, viewChanges, prePrepares };
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "newView", ...newView });
  enter(state, newView, options, ctx);
}

/** Handles a new view at a backup. Any node may send it, because all parts are signed and O follows from V. */
export function receiveNewView(state: State, newView: NewView, options: PbftOptions, ctx: Ctx): void {
  if (!isReplica(state, ctx.self)) return;
  if (newView.view < state.view || (newView.view === state.view && !state.isChanging)) return; // The view is active or over.
  if (options.lastView > 0 && newView.view > options.lastView) return;
  if (isJustified(state, newView, options, ctx)) enter(state, newView, options, ctx);
}

function isJustified(
  state: State,
  { view, viewChanges, prePrepares }: NewView,
  options: PbftOptions,
  ctx: Ctx,
): boolean {
  const assigned = prePrepares.map(({ value }) => value);
  return (
    viewChanges.length >= quorum(state) &&
    areDistinct(viewChanges.map(({ by }) => by)) &&
    viewChanges.every(
      (each) => each.value.view === view && (isVerified(state, each) || isSound(state, each, options, ctx)),
    ) &&
    canonical(assigned) === canonical(assignmentsOf(view, viewChanges)) &&
    prePrepares.every((each) => each.by === primaryOf(state, view) && isOfReplica(state, prePrepareShape, each, ctx))
  );
}

/** Returns whether this view change has already been received and verified separately. */
function isVerified({ viewChanges }: State, viewChange: Signed<ViewChange>): boolean {
  const known = viewChanges[viewChange.by];
  return known !== undefined && equal(known, viewChange);
}

function enter(state: State, newView: NewView, options: PbftOptions, ctx: Ctx): void {
  const { view, viewChanges, prePrepares } = newView;
  state.view = view;
  state.isChanging = false;
  state.newView = newView;
  state.awaited = null;
  ctx.cancelTimer("viewChange");
  for (const node of nodesIn(state.viewChanges))
    if ((state.viewChanges[node]?.value.view ?? 0) <= view) delete state.viewChanges[node];
  adopt(state, prePrepares, options);
  journal(state, ctx);
  ctx.emit({ type: "led", leader: primaryOf(state, view), term: view });
  const furthest = viewChanges.map(({ value }) => value).sort((a, b) => b.stable - a.stable)[0] as ViewChange;
  state.assigned = Math.max(state.executed, furthest.stable, ...prePrepares.map(({ value }) => value.sequence));
  if (furthest.stable > state.stable.sequence) prove(state, furthest.proof, ctx);
  takeUp(state, prePrepares, options, ctx);
}

/** Discards the assignments of earlier primaries, except those that the new primary has adopted. */
function adopt(state: State, prePrepares: readonly Signed<Assignment>[], options: PbftOptions): void {
  for (const [, slot] of slotsOf(state)) slot.prePrepare = null;
  for (const prePrepare of prePrepares) {
    const { sequence, digest } = prePrepare.value;
    if (!isInWindow(state, sequence, options)) continue; // A replica that is behind receives it again.
    const slot = slotAt(state, sequence);
    slot.prePrepare = prePrepare;
    if (digest === NOTHING) keepBatch(slot, NOTHING, []);
  }
}

/** Starts agreement on these assignments and on waiting requests. */
function takeUp(state: State, prePrepares: readonly Signed<Assignment>[], options: PbftOptions, ctx: Ctx): void {
  const isLeading = isPrimary(state, ctx.self);
  const taken = prePrepares.filter(({ value }) => isInWindow(state, value.sequence, options));
  for (const { value } of taken) if (!isLeading) prepare(state, value, ctx);
  const assigned = taken.flatMap(({ value }) => batchOf(slotAt(state, value.sequence), value.digest)?.requests ?? []);
  for (const waiting of state.pending) {
    const { by, value } = waiting.request;
    waiting.isAssigned = assigned.some((each) => each.by === by && each.value.sequence === value.sequence);
  }
  for (const { value } of taken) checkPrepared(state, value.sequence, options, ctx);
  execute(state, options, ctx);
  if (isLeading) return;
  for (const { request } of state.pending) ctx.send(primaryOf(state, state.view), { type: "request", request });
  watchPending(state, options, ctx);
}
