/** The participant's steps: while it has not voted it may abort by itself; in doubt it can only ask. */
import type { TwoPhaseCommitOptions } from "./vocabulary.ts";
import {
  type Ctx,
  type Decision,
  isBefore,
  isSame,
  type Part,
  type State,
  type Transaction,
  type TwoPhaseCommit,
} from "./vocabulary.ts";

/** After so many transactions a participant writes its journal anew. */
const SUMMARY_AFTER = 256;

export function participant({ decisionMs, isCooperative }: TwoPhaseCommitOptions) {
  /** The participant's last word on a transaction. */
  function finish(state: State, transaction: Transaction, decision: Decision, ctx: Ctx): void {
    state.parts[transaction.coordinator] = { transaction, status: decision };
    if (transaction.number % SUMMARY_AFTER === 0) ctx.compact([summaryOf(state)]);
    else ctx.persist({ type: "finished", transaction, decision });
    ctx.emit({ type: "decided", transaction, value: decision });
    if (inDoubt(state).length === 0) ctx.cancelTimer("decision");
  }

  /**
   * A coordinator goes on to its next transaction once the last one was aborted, or acknowledged by everybody. So a participant
   * that is still in doubt about the last one knows that it was aborted.
   */
  function abortBefore(state: State, transaction: Transaction, ctx: Ctx): void {
    const part = state.parts[transaction.coordinator];
    if (part?.status === "in doubt" && isBefore(part.transaction, transaction))
      finish(state, part.transaction, "abort", ctx);
  }

  /** It has not voted on it, so it may abort by itself; if it is asked to vote later, it has voted no. */
  function voteNo(state: State, transaction: Transaction, ctx: Ctx): void {
    ctx.emit({ type: "voted", transaction, vote: "no" });
    finish(state, transaction, "abort", ctx);
  }

  function ask(state: State, ctx: Ctx): void {
    const open = inDoubt(state);
    for (const { transaction } of open)
      for (const node of isCooperative ? ctx.peers : [transaction.coordinator])
        ctx.send(node, { type: "inquiry", transaction });
    if (open.length > 0) ctx.setTimer("decision", decisionMs);
  }

  /** What a node can tell one that is in doubt; null: it does not know. */
  function answer(state: State, transaction: Transaction, ctx: Ctx): Decision | null {
    const { coordinator } = state;
    if (transaction.coordinator === ctx.self) {
      if (coordinator.phase === "idle" || !isSame(coordinator.transaction, transaction)) return "abort"; // Presumed.
      return coordinator.phase === "committed" ? "commit" : null;
    }
    abortBefore(state, transaction, ctx);
    const part = state.parts[transaction.coordinator];
    if (part === undefined || isBefore(part.transaction, transaction)) voteNo(state, transaction, ctx);
    else if (isSame(part.transaction, transaction)) return part.status === "in doubt" ? null : part.status;
    return "abort"; // This node is further on, and the one that asks is in doubt: see `abortBefore`.
  }

  return { finish, abortBefore, voteNo, ask, answer };
}

const inDoubt = ({ parts }: State): Part[] => Object.values(parts).filter(({ status }) => status === "in doubt");

const summaryOf = ({ reserved, parts, coordinator }: State): TwoPhaseCommit["record"] => ({
  type: "summary",
  upTo: reserved,
  parts,
  committed:
    coordinator.phase === "committed" ? { transaction: coordinator.transaction, missing: coordinator.missing } : null,
});
