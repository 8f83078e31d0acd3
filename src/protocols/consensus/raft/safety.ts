/** Safety (§5.4): the rules for which nodes may be elected and which entries are committed. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { charsOf, entryAt, lastIndex, lastTerm, termAt } from "./log.ts";
import { agreedIndex } from "./membership-changes.ts";
import type { Configuration, Leader, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Returns whether the candidate's log is at least as up to date as this one (§5.4.1). */
export function isUpToDate(log: Log, candidate: { lastIndex: number; lastTerm: number }): boolean {
  const term = lastTerm(log);
  return candidate.lastTerm > term || (candidate.lastTerm === term && candidate.lastIndex >= lastIndex(log));
}

/**
 * Returns the leader's commit index (§5.4.2). Only entries of its own term are committed by counting replicas, and all
 * earlier entries are committed with them. An older entry can still be replaced even if a majority has it (figure 8),
 * so counting its replicas is never enough to commit it.
 */
export function commitIndexOf(state: State, leader: Leader, self: NodeId): number {
  const matchOf = (node: NodeId): number => (node === self ? leader.persisted : (leader.followers[node]?.match ?? 0));
  const agreed = agreedIndex(state.configuration, matchOf);
  const isOwn = agreed > state.commitIndex && termAt(state.log, agreed) === state.term;
  return isOwn ? agreed : state.commitIndex;
}

/** Commits entries and emits them immediately and in order, so the commit index is also the paper's lastApplied. */
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

/**
 * Reports the members of a committed configuration, from the log or a snapshot. A joint configuration is not reported,
 * because another configuration follows it.
 */
export function tellMembers({ voters, learners, outgoing }: Configuration, ctx: Ctx): void {
  if (outgoing === null) ctx.emit({ type: "reconfigured", voters, learners });
}

/** Answers the reads whose index has been reached. */
export function tellReadable(state: State, ctx: Ctx): void {
  if (!state.reads.some(({ index }) => index <= state.commitIndex)) return;
  for (const { read, index } of state.reads) if (index <= state.commitIndex) ctx.emit({ type: "readable", read });
  state.reads = state.reads.filter(({ index }) => index > state.commitIndex);
}
