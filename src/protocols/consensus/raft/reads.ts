/**
 * Reads (§8, thesis §6.4): they are not appended. The leader notes its commit index, makes sure by a round of heartbeats
 * that begins later that it still led then, and whoever asked answers when it has been told so much. With `leaseReads` it is
 * sure without a round as long as its lease lasts, if clocks keep to the margin.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { beginRound, isConfirmed, takeLease } from "./heartbeats.ts";
import type { RaftOptions } from "./options.ts";
import { tellReadable } from "./safety.ts";
import type { Leader, Raft, Read } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/**
 * All that was committed before has an index no higher than this. Before a leader has committed an entry of its own term it does not know
 * how far others have committed, but no further than to that entry, so the read waits for it.
 */
export const readIndexOf = (commitIndex: number, { firstIndex }: Leader): number => Math.max(commitIndex, firstIndex);

/** At the leader. */
export function readAtLeader(
  state: State,
  role: Leader,
  node: NodeId,
  read: number,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const asked: Read = { node, read, index: readIndexOf(state.commitIndex, role) };
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
  takeLease(role, ctx);
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
