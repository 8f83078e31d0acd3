/**
 * Garbage collection (§4.3): a checkpoint with 2f + 1 equal digests is stable. Everything before it is dropped, and the
 * window advances.
 */
import { nodesIn } from "../../../core/per-node.ts";
import { clone } from "../../../core/plain.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import { checkpointShape, digestOfState, eased, isOfReplica, journal } from "./certificates.ts";
import { type Checkpoint, type Ctx, INDICES, others, type PbftOptions, quorum, type State } from "./vocabulary.ts";

/** The maximum number of checkpoints kept per replica: one window's worth, and a few more. */
const MAX_CHECKPOINTS = 8;

/** Requests a snapshot from the state machine exactly at the end of a batch. */
export function takeCheckpoint(state: State, ctx: Ctx): void {
  const { executed: sequence } = state;
  state.snapshots = state.snapshots.filter((snapshot) => snapshot.sequence !== sequence);
  state.snapshots.push({ sequence, digest: "", executed: clone(state.last), text: "" });
  ctx.emit({ type: "checkpoint", index: sequence * INDICES });
}

/** Handles the snapshot from the state machine. */
export function compact(state: State, index: number, text: string, ctx: Ctx): void {
  const snapshot = state.snapshots.find(({ sequence }) => sequence * INDICES === index);
  if (snapshot === undefined || snapshot.digest !== "") return; // The snapshot was not requested.
  snapshot.text = text;
  snapshot.digest = digestOfState(snapshot.executed, text);
  const { sequence, digest } = snapshot;
  const own = sign(ctx, checkpointShape, { sequence, digest });
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "checkpoint", checkpoint: own });
  note(state, own, ctx);
}

/** Handles a checkpoint from a replica. */
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

/**
 * Handles a proven checkpoint. If this replica has reached the same state, the checkpoint is stable here. Otherwise the
 * replica has to catch up.
 */
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

/**
 * Records a state to catch up with. The replica may still reach it by executing batches, so it fetches the state only
 * when its status timer expires.
 */
function awaitState(state: State, proof: Signed<Checkpoint>[]): void {
  const { sequence, digest } = (proof[0] as Signed<Checkpoint>).value;
  if (sequence <= (state.goal?.sequence ?? 0)) return;
  state.goal = { sequence, digest, proof, source: 0, executed: {}, text: "" };
}

/** Drops everything that the stable checkpoint replaces. */
export function forgetUpTo(state: State, sequence: number): void {
  for (const at of nodesIn(state.slots)) if (at <= sequence) delete state.slots[at];
  state.snapshots = state.snapshots.filter((snapshot) => snapshot.sequence > sequence);
  for (const node of nodesIn(state.checkpoints)) {
    const later = (state.checkpoints[node] ?? []).filter(({ value }) => value.sequence > sequence);
    if (later.length === 0) delete state.checkpoints[node];
    else state.checkpoints[node] = later;
  }
  if (state.goal !== null && state.goal.sequence <= sequence) state.goal = null;
}
