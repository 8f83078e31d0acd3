/** Safety (§5.4): who may be elected, and which entries are committed. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { charsOf, entryAt, lastIndex, lastTerm, termAt } from "./log.ts";
import { agreedIndex } from "./membership-changes.ts";
import type { Configuration, Leader, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** §5.4.1: the candidate's log is at least as up to date as this one, so what is committed is in it. */
export function isUpToDate(log: Log, candidate: { lastIndex: number; lastTerm: number }): boolean {
  const term = lastTerm(log);
  return candidate.lastTerm > term || (candidate.lastTerm === term && candidate.lastIndex >= lastIndex(log));
}

/**
 * §5.4.2: entries of the leader's own term are committed by counting, and with them all that stands before. An older
 * entry that a majority has can still be replaced (figure 8), so it is never counted alone.
 */
export function commitIndexOf(state: State, leader: Leader, self: NodeId): number {
  const matchOf = (node: NodeId): number => (node === self ? leader.persisted : (leader.followers[node]?.match ?? 0));
  const agreed = agreedIndex(state.configuration, matchOf);
  const isOwn = agreed > state.commitIndex && termAt(state.log, agreed) === state.term;
  return isOwn ? agreed : state.commitIndex;
}

/** What is committed is told at once and in order, so the paper's lastApplied is the commit index. */
export function commit(state: State, index: number, ctx: Ctx): void {
  const until = Math.min(index, lastIndex(state.log));
  while (state.commitIndex < until) {
    state.commitIndex += 1;
    const entry = entryAt(state.log, state.commitIndex);
    if (entry === undefined) continue;
    if (state.role.is === "leader") state.role.uncommittedChars -= charsOf(entry);
    if (entry.type === "command") ctx.emit({ type: "decided", index: state.commitIndex, command: entry.command });
    if (entry.type === "configuration") tellMembers(entry.configuration, ctx);
  }
  tellReadable(state, ctx);
}

/** Of a committed configuration, in the log or in a snapshot. While it is joint, there is more to come. */
export function tellMembers({ voters, learners, outgoing }: Configuration, ctx: Ctx): void {
  if (outgoing === null) ctx.emit({ type: "reconfigured", voters, learners });
}

/** What waited for the commit index to come so far. */
export function tellReadable(state: State, ctx: Ctx): void {
  if (!state.reads.some(({ index }) => index <= state.commitIndex)) return;
  for (const { read, index } of state.reads) if (index <= state.commitIndex) ctx.emit({ type: "readable", read });
  state.reads = state.reads.filter(({ index }) => index > state.commitIndex);
}
