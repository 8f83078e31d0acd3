/** The coordinator's steps: it asks for votes, and either commits, or aborts and forgets. */
import type { NodeId } from "../../../core/protocol.ts";
import type { Ctx, State, Transaction, TwoPhaseCommitOptions } from "./vocabulary.ts";

/** So many numbers of transactions are journalled at once. */
const RESERVED_AT_ONCE = 100;

export function coordinator({ votesMs, acknowledgementsMs }: TwoPhaseCommitOptions) {
  /** Phase 1. The coordinator's own yes needs no record: its commit will be one. */
  function beginNext(state: State, ctx: Ctx): void {
    if (state.coordinator.phase !== "idle" || state.wanted === 0) return;
    state.wanted -= 1;
    const transaction = { coordinator: ctx.self, number: nextNumber(state, ctx) };
    ctx.emit({ type: "voted", transaction, vote: state.isWilling ? "yes" : "no" });
    if (!state.isWilling) {
      ctx.emit({ type: "decided", transaction, value: "abort" }); // Nobody has heard of it.
      return beginNext(state, ctx);
    }
    state.coordinator = { phase: "voting", transaction, missing: [...ctx.peers] };
    ctx.broadcast({ type: "voteRequest", transaction });
    ctx.setTimer("votes", votesMs);
    if (ctx.peers.length === 0) commit(state, transaction, ctx);
  }

  function nextNumber(state: State, ctx: Ctx): number {
    if (state.number === state.reserved) {
      state.reserved += RESERVED_AT_ONCE;
      ctx.persist({ type: "reserved", upTo: state.reserved });
    }
    state.number += 1;
    return state.number;
  }

  /** Phase 2: the record is the commit. Whatever crashes from here on, everybody will hear of it. */
  function commit(state: State, transaction: Transaction, ctx: Ctx): void {
    ctx.cancelTimer("votes");
    ctx.persist({ type: "committed", transaction, participants: [...ctx.peers] });
    state.coordinator = { phase: "committed", transaction, missing: [...ctx.peers] };
    ctx.emit({ type: "decided", transaction, value: "commit" });
    tellCommit(state, ctx);
  }

  function tellCommit(state: State, ctx: Ctx): void {
    if (state.coordinator.phase !== "committed") return;
    const { transaction, missing } = state.coordinator;
    if (missing.length === 0) return end(state, ctx);
    for (const node of missing) ctx.send(node, { type: "decision", transaction, decision: "commit" });
    ctx.setTimer("acknowledgements", acknowledgementsMs);
  }

  function end(state: State, ctx: Ctx): void {
    ctx.cancelTimer("acknowledgements");
    ctx.persist({ type: "ended" });
    state.coordinator = { phase: "idle" };
    beginNext(state, ctx);
  }

  /** Presumed abort: it journals nothing and forgets. Who asks later for what it does not remember hears "abort". */
  function abort(state: State, transaction: Transaction, refused: NodeId | null, ctx: Ctx): void {
    ctx.cancelTimer("votes");
    state.coordinator = { phase: "idle" };
    for (const node of ctx.peers)
      if (node !== refused) ctx.send(node, { type: "decision", transaction, decision: "abort" });
    ctx.emit({ type: "decided", transaction, value: "abort" });
    beginNext(state, ctx);
  }

  return { beginNext, commit, tellCommit, end, abort };
}

/** Which of them it has used before the crash it does not know. */
export function reserve(state: State, upTo: number): void {
  state.number = upTo;
  state.reserved = upTo;
}
