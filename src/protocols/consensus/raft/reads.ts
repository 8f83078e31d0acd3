/**
 * Reads (§8, thesis §6.4). A read is not appended to the log. The leader records its commit index, then begins a round
 * of heartbeats to confirm that it still leads. The requesting node answers once it has applied the log up to that
 * index. With `leaseReads`, the leader needs no round until its lease ends, as long as clocks stay within the margin.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { beginRound, isConfirmed, takeLease } from "./heartbeats.ts";
import type { RaftOptions } from "./options.ts";
import { tellReadable } from "./safety.ts";
import type { Leader, Raft, Read } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/**
 * Returns an upper bound for the index of everything committed so far. A leader that has not committed an entry of its
 * own term does not know which earlier entries are committed, but none is beyond its own first entry. The read waits
 * for that entry.
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
  if (role.asking.length + role.next.length >= options.maxWaiting) return; // The client retries.
  role.next.push(asked);
  askNext(state, role, options, ctx);
}

/** Begins a round for the waiting reads. A round that began before a read arrived cannot confirm it. */
function askNext(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  if (role.next.length === 0 || !isConfirmed(state, role, ctx)) return;
  beginRound(state, role, options, ctx);
  role.asking = role.next;
  role.next = [];
  noteConfirmed(state, role, options, ctx); // A single voter is a quorum by itself.
}

/** Serves the reads of the round if a quorum has answered it. Call this whenever that may be the case. */
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

/** Handles the read index at the requesting node, which answers once it has applied the log up to that index. */
export function noteIndex(state: State, read: number, index: number, options: RaftOptions, ctx: Ctx): void {
  if (state.reads.length >= options.maxWaiting) state.reads.shift();
  state.reads.push({ read, index });
  tellReadable(state, ctx);
}
