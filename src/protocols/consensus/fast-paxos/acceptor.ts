/** The acceptor: phases 1b and 2b. What it promises and votes for it journals before anybody hears of it. */
import { type Ballot, isEarlier, isStale, raise } from "../parts/ballots.ts";
import { hear, isOutside } from "./learner.ts";
import type { Ctx, Settings } from "./options.ts";
import type { CastVote, State } from "./vocabulary.ts";

/** Phase 1b: ignore all ballots below this one from now on, and say what it has voted for. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot }); // Also a second time: it may follow a ballot that it has promised to nobody.
  ctx.send(ballot.node, { type: "promise", ballot, upTo: state.upTo, votes: votesOf(state) });
}

export const votesOf = (state: State): CastVote[] =>
  Object.entries(state.votes).map(([instance, vote]) => ({ instance: Number(instance), ...vote }));

/** In each instance an acceptor votes once in a round, and in no round before its last. */
export const mayVote = (state: State, { instance, round }: CastVote, settings: Settings): boolean => {
  const last = state.votes[instance];
  return (
    !isOutside(state, instance, settings) &&
    !isStale(state, round) &&
    (last === undefined || isEarlier(last.round, round))
  );
};

/** Phase 2b: journal, then tell every learner. */
export function vote(state: State, { instance, round, value }: CastVote, ctx: Ctx, settings: Settings): void {
  raise(state, round);
  state.votes[instance] = { round, value };
  const cast: CastVote = { instance, round, value };
  ctx.persist({ type: "voted", ...cast });
  ctx.broadcast({ type: "accepted", ...cast });
  hear(state, ctx.self, cast, ctx, settings);
}
