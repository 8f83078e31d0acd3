/**
 * Two-phase commit: a coordinator asks all participants to vote, and only if all vote yes the transaction commits.
 * Gray, "Notes on Data Base Operating Systems", 1978; presumed abort and recovery: Mohan & Lindsay, "Efficient Commit
 * Protocols for the Tree of Processes Model", PODC 1983; asking each other: Bernstein, Hadzilacos & Goodman, 1987, §7.4.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, that crashed nodes come back and links are reliable.
 * Safety    atomicity: no two nodes decide differently about a transaction. It commits only if everybody voted yes.
 * Liveness  every transaction is decided everywhere. While its coordinator is down, participants that voted yes are in
 *           doubt and wait: they block.
 * Cost      3(N − 1) messages until everybody knows, 4(N − 1) with the acknowledgements, for a commit. Journalled before the
 *           next message: once by the coordinator, twice by each participant. An abort needs no acknowledgement.
 *
 *     coordinator   voteRequest ──▶ all   ◀── vote    committed, decision ──▶ all   ◀── acknowledgement    ended
 *     participant                   prepared                         finished
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { coordinator, reserve } from "./coordinator.ts";
import { participant } from "./participant.ts";
import { declarations } from "./properties.ts";
import {
  type Ctx,
  isBefore,
  isSame,
  shapes,
  type Transaction,
  type TwoPhaseCommit,
  type TwoPhaseCommitOptions,
  twoPhaseCommitOptions,
} from "./vocabulary.ts";

/** More than so many do not wait. */
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
            ctx.send(from, { type: "vote", transaction, vote: "no" }); // Somebody in doubt had asked before.
          return; // A copy, or late.
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
        if (part === undefined || isBefore(part.transaction, transaction)) return; // It has not voted: then it is an abort.
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

/** Only the coordinator of a transaction asks for votes on it. */
const isForged = (from: NodeId, { coordinator }: Transaction): boolean => from !== coordinator;

/** There is no such coordinator. */
const isOfStranger = ({ coordinator }: Transaction, { self, peers }: Ctx): boolean =>
  coordinator !== self && !peers.includes(coordinator);
