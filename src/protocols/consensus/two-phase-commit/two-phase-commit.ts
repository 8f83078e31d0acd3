/**
 * Two-phase commit: a coordinator asks all participants to vote, and the transaction commits only if all vote yes.
 * Gray, "Notes on Data Base Operating Systems", 1978; presumed abort and recovery: Mohan & Lindsay, "Efficient Commit
 * Protocols for the Tree of Processes Model", PODC 1983; cooperative termination: Bernstein, Hadzilacos & Goodman,
 * 1987, §7.4.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, crashed nodes recover and links are reliable.
 * Safety    atomicity: no two nodes decide differently about a transaction. A transaction commits only if all nodes
 *           have voted yes.
 * Liveness  every transaction is decided at every node. While its coordinator is down, participants that have voted yes
 *           are in doubt and block.
 * Cost      3(N − 1) messages until all nodes know of a commit, 4(N − 1) with the acknowledgements. The coordinator
 *           waits for one journal write and each participant for two before sending the next message. An abort needs no
 *           acknowledgement.
 *
 *     coordinator   voteRequest ──▶ all   ◀── vote    committed, decision ──▶ all   ◀── acknowledgement    ended
 *     participant                   prepared                         finished
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import {
  type Ctx,
  type Decision,
  declarations,
  isBefore,
  isSame,
  type Part,
  type State,
  shapes,
  type Transaction,
  type TwoPhaseCommit,
  type TwoPhaseCommitOptions,
  twoPhaseCommitOptions,
} from "./vocabulary.ts";

// The coordinator's steps: it requests votes, then either commits, or aborts and forgets the transaction.

/** The number of transaction numbers that one journal record reserves. */
const RESERVED_AT_ONCE = 100;

function coordinator({ votesMs, acknowledgementsMs }: TwoPhaseCommitOptions) {
  /**
   * Begins phase 1 of the next transaction. The coordinator's own yes needs no record, because its commit record
   * implies it.
   */
  function beginNext(state: State, ctx: Ctx): void {
    if (state.coordinator.phase !== "idle" || state.wanted === 0) return;
    state.wanted -= 1;
    const transaction = { coordinator: ctx.self, number: nextNumber(state, ctx) };
    ctx.emit({ type: "voted", transaction, vote: state.isWilling ? "yes" : "no" });
    if (!state.isWilling) {
      ctx.emit({ type: "decided", transaction, value: "abort" }); // No other node knows of the transaction.
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

  /**
   * Begins phase 2. Once the record is durable, the transaction is committed, and all participants eventually learn the
   * decision, no matter which nodes crash.
   */
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

  /**
   * Aborts a transaction. With presumed abort, the coordinator journals nothing and forgets the transaction. It answers
   * "abort" to inquiries about unknown transactions.
   */
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

/**
 * Restores the reserved numbers. The coordinator does not know which of them it used before the crash, so it skips them
 * all.
 */
function reserve(state: State, upTo: number): void {
  state.number = upTo;
  state.reserved = upTo;
}

// The participant's steps. Until it has voted, it may abort on its own. Once it is in doubt, it can only ask.

/** A participant compacts its journal after this many transactions from a coordinator. */
const SUMMARY_AFTER = 256;

function participant({ decisionMs, isCooperative }: TwoPhaseCommitOptions) {
  /** Records the participant's decision on a transaction. */
  function finish(state: State, transaction: Transaction, decision: Decision, ctx: Ctx): void {
    state.parts[transaction.coordinator] = { transaction, status: decision };
    if (transaction.number % SUMMARY_AFTER === 0) ctx.compact([summaryOf(state)]);
    else ctx.persist({ type: "finished", transaction, decision });
    ctx.emit({ type: "decided", transaction, value: decision });
    if (inDoubt(state).length === 0) ctx.cancelTimer("decision");
  }

  /**
   * Aborts the coordinator's previous transaction if this participant is still in doubt about it. A coordinator begins
   * its next transaction only after the previous one was aborted or acknowledged by all participants. So it was
   * aborted.
   */
  function abortBefore(state: State, transaction: Transaction, ctx: Ctx): void {
    const part = state.parts[transaction.coordinator];
    if (part?.status === "in doubt" && isBefore(part.transaction, transaction))
      finish(state, part.transaction, "abort", ctx);
  }

  /**
   * Votes no on a transaction. Before it has voted, a participant may abort on its own. If its vote is requested later,
   * it answers no.
   */
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

  /** Returns the answer to a node in doubt. Null if this node does not know the decision. */
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
    return "abort"; // The asking node is in doubt about an older transaction. See `abortBefore`.
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

/** The maximum number of waiting transactions. */
const MAX_WANTED = 1_000;

/** Creates two-phase commit. @throws UsageError `bad-option` if an option is unknown or out of range. */
export function twoPhaseCommit(given?: Partial<TwoPhaseCommitOptions>): Protocol<TwoPhaseCommit> {
  const options = twoPhaseCommitOptions.settle(given);
  const { beginNext, commit, tellCommit, end, abort } = coordinator(options);
  const { finish, abortBefore, voteNo, ask, answer } = participant(options);

  return {
    name: "two-phase-commit",
    init: () => ({ number: 0, reserved: 0, wanted: 0, coordinator: { phase: "idle" }, isWilling: true, parts: {} }),
    start(state, ctx) {
      tellCommit(state, ctx);
      ask(state, ctx);
    },
    receive: {
      voteRequest(state, from, { transaction }, ctx) {
        if (isForged(from, transaction)) return;
        abortBefore(state, transaction, ctx);
        const part = state.parts[from];
        if (part !== undefined && !isBefore(part.transaction, transaction)) {
          if (isSame(part.transaction, transaction) && part.status === "abort")
            ctx.send(from, { type: "vote", transaction, vote: "no" }); // Aborted already, since an inquiry came first.
          return; // Duplicate or late.
        }
        if (!state.isWilling) {
          voteNo(state, transaction, ctx);
          return ctx.send(from, { type: "vote", transaction, vote: "no" });
        }
        state.parts[from] = { transaction, status: "in doubt" };
        ctx.persist({ type: "prepared", transaction });
        ctx.emit({ type: "voted", transaction, vote: "yes" });
        ctx.send(from, { type: "vote", transaction, vote: "yes" });
        ctx.setTimer("decision", options.decisionMs);
      },
      vote(state, from, { transaction, vote }, ctx) {
        const { coordinator } = state;
        if (coordinator.phase !== "voting" || !isSame(coordinator.transaction, transaction)) return; // Already decided.
        if (vote === "no") return abort(state, transaction, from, ctx);
        coordinator.missing = coordinator.missing.filter((node) => node !== from);
        if (coordinator.missing.length === 0) commit(state, transaction, ctx);
      },
      decision(state, from, { transaction, decision }, ctx) {
        const part = state.parts[transaction.coordinator];
        if (part === undefined || isBefore(part.transaction, transaction)) return; // Not voted yet, so it is an abort.
        if (isSame(part.transaction, transaction) && part.status === "in doubt")
          finish(state, transaction, decision, ctx);
        if (decision === "commit" && from === transaction.coordinator)
          ctx.send(from, { type: "acknowledgement", transaction });
      },
      acknowledgement(state, from, { transaction }, ctx) {
        const { coordinator } = state;
        if (coordinator.phase !== "committed" || !isSame(coordinator.transaction, transaction)) return; // A duplicate.
        coordinator.missing = coordinator.missing.filter((node) => node !== from);
        if (coordinator.missing.length === 0) end(state, ctx);
      },
      inquiry(state, from, { transaction }, ctx) {
        if (isOfStranger(transaction, ctx)) return;
        const decision = answer(state, transaction, ctx);
        if (decision !== null) ctx.send(from, { type: "decision", transaction, decision });
      },
    },
    timeout: {
      votes(state, ctx) {
        if (state.coordinator.phase === "voting") abort(state, state.coordinator.transaction, null, ctx);
      },
      acknowledgements: tellCommit,
      decision: ask,
    },
    command: {
      propose(state, { transactions }, ctx) {
        state.wanted = Math.min(state.wanted + transactions, MAX_WANTED);
        beginNext(state, ctx);
      },
      refuse(state) {
        state.isWilling = false;
      },
      agree(state) {
        state.isWilling = true;
      },
    },
    replay: {
      reserved: (state, { upTo }) => reserve(state, upTo),
      prepared(state, { transaction }) {
        state.parts[transaction.coordinator] = { transaction, status: "in doubt" };
      },
      finished(state, { transaction, decision }) {
        state.parts[transaction.coordinator] = { transaction, status: decision };
      },
      committed(state, { transaction, participants }) {
        state.coordinator = { phase: "committed", transaction, missing: participants };
      },
      ended(state) {
        state.coordinator = { phase: "idle" };
      },
      summary(state, { upTo, parts, committed }) {
        reserve(state, upTo);
        state.parts = parts;
        if (committed !== null) state.coordinator = { phase: "committed", ...committed };
      },
    },
    shapes,
    ...declarations,
  };
}

/** Returns whether the sender is not the coordinator. Only the coordinator may request votes on its transactions. */
const isForged = (from: NodeId, { coordinator }: Transaction): boolean => from !== coordinator;

/** Returns whether the coordinator is an unknown node. */
const isOfStranger = ({ coordinator }: Transaction, { self, peers }: Ctx): boolean =>
  coordinator !== self && !peers.includes(coordinator);
