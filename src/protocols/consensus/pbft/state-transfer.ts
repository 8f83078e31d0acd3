/**
 * State transfer: who has fallen behind a stable checkpoint fetches the state that 2f + 1 vouch for, from one of them, piece by piece.
 * What it gets it checks against the digest that they have signed; if that is wrong, or nothing comes, it asks the next.
 */
import { clone } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { chunkAt } from "../family/chunks.ts";
import { MAX_SNAPSHOT_BYTES, snapshotOf } from "../family/replicated-log.ts";
import { digestOfState } from "./certificates.ts";
import { forgetUpTo } from "./garbage-collection.ts";
import { execute, noteProgress } from "./normal-case-operation.ts";
import type { PbftOptions } from "./options.ts";
import { journal } from "./slots.ts";
import { type Goal, INDICES, isReplica, type Pbft } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;
type Piece = Extract<Pbft["message"], { type: "state" }>;

/** From the next one of those that vouch for it, from the beginning. */
export function fetchState(state: State, ctx: Ctx): void {
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

export function sendProof({ stable }: State, to: NodeId, ctx: Ctx): void {
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
    ctx.emit({ type: "installed", index: sequence * INDICES, snapshot: snapshotOf(text) });
  }
  journal(state, ctx);
  noteProgress(state, options, ctx);
  execute(state, options, ctx);
}
