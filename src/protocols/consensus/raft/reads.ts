/**
 * Reads (§8, thesis §6.4). A read is not appended to the log. The leader notes its commit index, then confirms with a
 * round of heartbeats, begun afterwards, that it still leads. The requesting node answers once it has applied the log
 * up to that index. With `leaseReads` the leader needs no round while its lease lasts, if clocks stay within the
 * margin.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { beginRound, isConfirmed, takeLease } from "./heartbeats.ts";
import type { RaftOptions } from "./options.ts";
import { tellReadable } from "./safety.ts";
import type { Leader, Raft, Read } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/**
 * An upper bound for the index of everything committed so far. A leader that has not committed an entry of its own term
 * does not know how far earlier leaders committed, but not beyond its first entry. The read waits for that
 * entry.
 */
export const readIndexOf = (commitIndex: number, { firstIndex }: Leader): number => Math.max(commitIndex, firstIndex);

/** Handles a read at the leader. */
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
  if (role.asking.length + role.next.length >= options.maxWaiting) return; // The client repeats its read.
  role.next.push(asked);
  askNext(state, role, options, ctx);
}

/** A round that began before the read arrived cannot confirm it. */
function askNext(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  if (role.next.length === 0 || !isConfirmed(state, role, ctx)) return;
  beginRound(state, role, options, ctx);
  role.asking = role.next;
  role.next = [];
  noteConfirmed(state, role, options, ctx); // A single voter is a quorum without an answer.
}

/** Called when a quorum may have answered the round. */
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

/** Handles the index at the requesting node, which answers once it has applied the log up to it. */
export function noteIndex(state: State, read: number, index: number, options: RaftOptions, ctx: Ctx): void {
  if (state.reads.length >= options.maxWaiting) state.reads.shift();
  state.reads.push({ read, index });
  tellReadable(state, ctx);
}
