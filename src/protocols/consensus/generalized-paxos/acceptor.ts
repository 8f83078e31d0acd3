/** The acceptor: promises, takes the coordinator's histories, and in fast rounds appends what proposers send. It journals before it speaks. */
import type { Command } from "../family/replicated-log.ts";
import { type Ballot, isEarlier, isSameBallot, isSameRound, type Round, raise } from "../parts/ballots.ts";
import { contains, type History } from "./histories.ts";
import { isCheckpoint } from "./interference.ts";
import { hear, keep } from "./learner.ts";
import type { Ctx, Settings } from "./options.ts";
import { FAST, isFast, type State, type Vote } from "./vocabulary.ts";

/** Phase 1b. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot }); // Also a second time: it may follow a ballot that it has promised to nobody.
  ctx.send(ballot.node, { type: "promise", ballot, era: state.era, vote: state.vote });
}

/** Phase 2b. What it had voted for and the new history lacks is to be appended again. */
function cast(state: State, vote: Vote, ctx: Ctx, settings: Settings): void {
  const before = state.vote?.history ?? [];
  raise(state, vote.round);
  state.vote = vote;
  state.pending = state.pending.filter((command) => !contains(vote.history, command));
  for (const command of before) keep(state, command);
  ctx.persist({ type: "voted", era: state.era, ...vote });
  ctx.broadcast({ type: "accepted", era: state.era, ...vote });
  hear(state, ctx.self, state.era, { ...vote, history: [...vote.history] }, ctx, settings);
}

/** On phase 2a. In a classic round the coordinator's history grows; in a fast one it is the beginning. */
export function mayAccept({ vote }: State, round: Round, history: History): boolean {
  if (vote === null || isEarlier(vote.round, round)) return true;
  return isSameRound(vote.round, round) && !isFast(round) && history.length > vote.history.length;
}

export function accept(state: State, round: Round, history: History, ctx: Ctx, settings: Settings): void {
  cast(state, { round, history: [...history], begun: history.length, closed: false }, ctx, settings);
}

/** The vote that the acceptor may append to; null if there is none in the fast round of its ballot. */
function openVote(state: State): Vote | null {
  const { vote, promised, open, era } = state;
  if (vote !== null && isSameBallot(vote.round, promised)) return isFast(vote.round) && !vote.closed ? vote : null;
  const isOpen = open !== null && era >= open;
  return isOpen ? { round: { ...promised, step: FAST }, history: [], begun: 0, closed: false } : null;
}

/**
 * Phase 2b of a fast round: append what has been proposed. A command that interferes with one which this acceptor has appended, and which
 * is not learnt yet, may stand before it elsewhere: a collision. So the acceptor takes it and closes the round: its vote then says as
 * much as a promise for the next one, and the coordinator need not ask for that.
 */
export function append(state: State, ctx: Ctx, settings: Settings): void {
  const before = openVote(state);
  if (before === null) return;
  const vote: Vote = { ...before, history: [...before.history] };
  for (const command of state.pending) {
    if (vote.closed || isFull(vote, command, settings)) break;
    const own = vote.history.slice(vote.begun);
    vote.closed = own.some((each) => !contains(state.learnt, each) && settings.interferes(each, command));
    vote.history.push(command);
  }
  if (vote.history.length > before.history.length) cast(state, vote, ctx, settings);
}

/** Nothing comes after a checkpoint; and where none comes, histories are bounded all the same. */
function isFull({ history }: Vote, command: Command, { checkpointEvery }: Settings): boolean {
  if (history.some(isCheckpoint)) return true;
  return history.length >= 2 * checkpointEvery && !isCheckpoint(command);
}
