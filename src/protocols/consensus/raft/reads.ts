/**
 * Reads (§8, thesis §6.4): they are not appended. The leader notes its commit index, makes sure by a round of heartbeats
 * that begins later that it still led then, and whoever asked answers when it has been told so much. With `leaseReads` it is
 * sure without a round as long as its lease lasts, if clocks keep to the margin.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import { beginRound, isConfirmed } from "./heartbeats.ts";
import type { RaftOptions } from "./options.ts";
import { tellReadable } from "./safety.ts";
import type { Leader, Raft, Read } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/**
 * At the leader. Before it has committed an entry of its term it does not know how far others have committed; but no further than to
 * that entry, so whoever asked waits for it.
 */
export function readAtLeader(
  state: State,
  role: Leader,
  node: NodeId,
  read: number,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const asked: Read = { node, read, index: Math.max(state.commitIndex, role.firstIndex) };
  if (role.leaseRound !== null) return answer(state, [asked], options, ctx);
  if (role.asking.length + role.next.length >= options.maxWaiting) return; // It is asked again.
  role.next.push(asked);
  askNext(state, role, options, ctx);
}

/** A round that has begun already is worth nothing to a read that came later. */
function askNext(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  if (role.next.length === 0 || !isConfirmed(state, role, ctx)) return;
  beginRound(state, role, options, ctx);
  role.asking = role.next;
  role.next = [];
  noteConfirmed(state, role, options, ctx); // A quorum of one needs no answer.
}

/** Called when a round may have been answered by a quorum. */
export function noteConfirmed(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  if (!isConfirmed(state, role, ctx)) return;
  if (role.mayLease && role.leaseRound !== role.round && role.round > 0) {
    ctx.cancelTimer(leaseTimer(role.round - 1)); // The certainty of this round takes the place of that of the one before.
    role.leaseRound = role.round;
  }
  const { asking } = role;
  role.asking = [];
  answer(state, asking, options, ctx);
  askNext(state, role, options, ctx);
}

function answer(state: State, reads: readonly Read[], options: RaftOptions, ctx: Ctx): void {
  for (const { node, read, index } of reads) {
    if (node === ctx.self) noteIndex(state, read, index, options, ctx);
    else ctx.send(node, { type: "readIndex", read, index });
  }
}

/** At the node that was asked: it answers when it has been told all up to the index. */
export function noteIndex(state: State, read: number, index: number, options: RaftOptions, ctx: Ctx): void {
  if (state.reads.length >= options.maxWaiting) state.reads.shift();
  state.reads.push({ read, index });
  tellReadable(state, ctx);
}

/** The timer of a round has run out; it is of no account if a later round has been answered. */
export function endLease(role: Leader, isOf: (round: number) => boolean): void {
  if (role.leaseRound !== null && isOf(role.leaseRound)) role.leaseRound = null;
}
