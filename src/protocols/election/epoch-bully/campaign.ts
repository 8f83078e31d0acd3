/** How a node of epoch-bully comes to lead: it asks whether a majority would have it, and then for their votes. */
import type { Context } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import { giveUp, promise, renew } from "./leadership.ts";
import { type EpochBullyOptions, timing, VOTE_TRIPS } from "./options.ts";
import { type EpochBully, isAboveLeader, mayLead } from "./vocabulary.ts";

type State = EpochBully["state"];
type Ctx = Context<EpochBully>;

/** Waits grow to this power of two at most. */
const MOST_PATIENCE = 3;

export function campaign(options: EpochBullyOptions) {
  const { leaseMs, answerMs, preVote } = options;
  const { boundsMs, backOff } = timing(options);

  /** Gives an election up after the time of this many round trips. */
  function giveTime(state: State, trips: number, ctx: Ctx): void {
    ctx.setTimer("answer", Math.min(leaseMs, trips * answerMs * 2 ** state.patience));
  }

  /** The pre-vote: bully's question to everybody. It changes nothing where it is asked. */
  function startElection(state: State, ctx: Ctx): void {
    if (!state.isCandidate || mayLead(state) || (state.isBound && !isAboveLeader(state, ctx.self))) return;
    const { epoch } = state.promised;
    ctx.cancelTimer("call");
    if (!preVote) return proceed(state, epoch, ctx);
    const awaited = ctx.peers.filter((peer) => !state.suspected.includes(peer));
    state.phase = { is: "preVoting", awaited, backers: [], promised: epoch };
    giveTime(state, 1, ctx);
    ctx.broadcast({ type: "election", promised: epoch, released: state.released, rank: state.rank });
    concludeIfAnswered(state, ctx);
  }

  /** If nobody is awaited, nobody higher can object any more: there is no need to wait for the crashed. */
  function concludeIfAnswered(state: State, ctx: Ctx): void {
    if (state.phase.is === "preVoting" && state.phase.awaited.length === 0) conclude(state, ctx);
  }

  function conclude(state: State, ctx: Ctx): void {
    const { phase } = state;
    if (phase.is !== "preVoting") return;
    if (phase.backers.length + 1 >= state.quorum) return proceed(state, phase.promised, ctx);
    const heard = ctx.peers.length + 1 - phase.awaited.length;
    if (heard < state.quorum) state.patience = Math.min(state.patience + 1, MOST_PATIENCE);
    wait(state, ctx, state.isBound ? boundsMs : backOff);
  }

  /** A majority backs this node: it may ask for votes for an epoch above `highest`, once the leader has made way. */
  function proceed(state: State, highest: number, ctx: Ctx): void {
    if (!state.isBound) return requestVotes(state, highest, ctx);
    state.phase = { is: "displacing", promised: highest };
    giveTime(state, 1, ctx);
    ctx.send(state.promised.to, { type: "displace", epoch: state.promised.epoch, rank: state.rank });
  }

  /** Its own promise is journalled before anybody is asked, so not even after a crash can it ask for an epoch twice. */
  function requestVotes(state: State, highest: number, ctx: Ctx): void {
    promise(state, { epoch: Math.max(highest, state.promised.epoch) + 1, to: ctx.self }, ctx);
    state.phase = { is: "requestingVotes", votes: [] };
    state.insists = false;
    giveTime(state, VOTE_TRIPS, ctx);
    ctx.setTimer(leaseTimer(0), leaseMs); // From now on, whenever votes come.
    ctx.broadcast({ type: "requestVote", epoch: state.promised.epoch, released: state.released });
    becomeLeaderIfElected(state, ctx);
  }

  function becomeLeaderIfElected(state: State, ctx: Ctx): void {
    if (state.phase.is !== "requestingVotes" || state.phase.votes.length + 1 < state.quorum) return;
    const { epoch } = state.promised;
    state.phase = { is: "leading", round: 0, confirms: state.phase.votes };
    state.term = { epoch, leader: ctx.self, rank: state.rank };
    state.insists = false;
    state.patience = 0;
    ctx.cancelTimer("answer");
    ctx.emit({ type: "elected", leader: ctx.self, epoch });
    ctx.emit({ type: "confirmed", epoch }, leaseTimer(0));
    renew(state, options, ctx);
  }

  return { startElection, concludeIfAnswered, conclude, requestVotes, becomeLeaderIfElected };
}

/** Leaves the election that it is in, if it is in one. */
export function leave(state: State, ctx: Ctx): void {
  if (mayLead(state)) return giveUp(state, null, ctx);
  state.phase = { is: "following" };
  ctx.cancelTimer("answer");
}

/** Leaves it to others, and calls an election itself after this long, if it has to. */
export function wait(state: State, ctx: Ctx, duration: number | readonly [number, number]): void {
  leave(state, ctx);
  if (state.isCandidate) ctx.setTimer("call", state.isBound ? duration : stretched(duration, state.patience));
}

function stretched(duration: number | readonly [number, number], patience: number): number | readonly [number, number] {
  const factor = 2 ** patience;
  return typeof duration === "number" ? duration * factor : [duration[0], duration[1] * factor];
}
