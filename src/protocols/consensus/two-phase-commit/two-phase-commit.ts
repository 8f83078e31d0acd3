/**
 * Two-phase commit: a coordinator asks all participants to vote, and the transaction commits only if all vote yes.
 * Gray, "Notes on Data Base Operating Systems", 1978; presumed abort and recovery: Mohan & Lindsay, "Efficient Commit
 * Protocols for the Tree of Processes Model", PODC 1983; cooperative termination: Bernstein, Hadzilacos & Goodman,
 * 1987, §7.4.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, crashed nodes recover and links are reliable.
 * Safety    atomicity: no two nodes decide differently about a transaction. It commits only if all nodes voted yes.
 * Liveness  every transaction is decided at every node. While its coordinator is down, participants that voted yes are
 *           in doubt and wait: they block.
 * Cost      3(N − 1) messages until all nodes know of a commit, 4(N − 1) with the acknowledgements. Journalled before
 *           the next message: once by the coordinator, twice by each participant. An abort needs no acknowledgement.
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

// The coordinator's steps: it requests votes, and either commits, or aborts and forgets.

/** How many transaction numbers are journalled at once. */
const RESERVED_AT_ONCE = 100;

function coordinator({ votesMs, acknowledgementsMs }: TwoPhaseCommitOptions) {
  /** Phase 1. The coordinator's own yes needs no record: its commit will be one. */
  function beginNext(state: State, ctx: Ctx): void {
    if (state.coordinator.phase !== "idle" || state.wanted === 0) return;
    state.wanted -= 1;
    const transaction = { coordinator: ctx.self, number: nextNumber(state, ctx) };
    ctx.emit({ type: "voted", transaction, vote: state.isWilling ? "yes" : "no" });
    if (!state.isWilling) {
      ctx.emit({ type: "decided", transaction, value: "abort" }); // No other node knows of it.
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

  /** Phase 2: the record is the commit. No matter which nodes crash from here on, all participants will learn it. */
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
   * Presumed abort: the coordinator journals nothing and forgets. It answers "abort" to inquiries about transactions
   * that it does not remember.
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

/** The coordinator does not know which of these numbers it used before the crash. */
function reserve(state: State, upTo: number): void {
  state.number = upTo;
  state.reserved = upTo;
}

// The participant's steps: before it has voted it may abort on its own; in doubt it can only ask.

/** How many transactions of a coordinator pass before a participant compacts its journal. */
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
   * A coordinator begins its next transaction once the last one was aborted, or acknowledged by all participants. So a
   * participant that is still in doubt about the last one knows that it was aborted.
   */
  function abortBefore(state: State, transaction: Transaction, ctx: Ctx): void {
    const part = state.parts[transaction.coordinator];
    if (part?.status === "in doubt" && isBefore(part.transaction, transaction))
      finish(state, part.transaction, "abort", ctx);
  }

  /** Before voting the participant may abort on its own. If a vote is requested later, it has voted no. */
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

  /** @returns the answer to a node in doubt; null if this node does not know. */
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
    return "abort"; // The asking node is in doubt about an older one: see `abortBefore`.
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

/** The most transactions that may wait. */
const MAX_WANTED = 1_000;

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
            ctx.send(from, { type: "vote", transaction, vote: "no" }); // An inquiry came first.
          return; // A duplicate, or late.
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
        if (coordinator.phase !== "voting" || !isSame(coordinator.transaction, transaction)) return; // Late: decided.
        if (vote === "no") return abort(state, transaction, from, ctx);
        coordinator.missing = coordinator.missing.filter((node) => node !== from);
        if (coordinator.missing.length === 0) commit(state, transaction, ctx);
      },
      decision(state, from, { transaction, decision }, ctx) {
        const part = state.parts[transaction.coordinator];
        if (part === undefined || isBefore(part.transaction, transaction)) return; // It has not voted, so this is an abort.
        if (isSame(part.transaction, transaction) && part.status === "in doubt")
          finish(state, transaction, decision, ctx);
        if (decision === "commit" && from === transaction.coordinator)
          ctx.send(from, { type: "acknowledgement", transaction });
      },
      acknowledgement(state, from, { transaction }, ctx) {
        const { coordinator } = state;
        if (coordinator.phase !== "committed" || !isSame(coordinator.transaction, transaction)) return; // One too many.
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

/** Only the coordinator of a transaction requests votes on it. */
const isForged = (from: NodeId, { coordinator }: Transaction): boolean => from !== coordinator;

/** Whether the coordinator is not one of the nodes. */
const isOfStranger = ({ coordinator }: Transaction, { self, peers }: Ctx): boolean =>
  coordinator !== self && !peers.includes(coordinator);
