/** How a node of epoch-bully comes to lead, goes on leading, and follows. */
import type { Context } from "../../../core/protocol.ts";
import { type EpochBullyOptions, timing, VOTE_TRIPS } from "./epoch-bully-options.ts";
import { certify, leave, promise, wait } from "./epoch-bully-steps.ts";
import { type EpochBully, isAboveLeader, isConfirmed, leaderOf, mayLead } from "./epoch-bully-words.ts";
import { leaseTimer } from "./lease.ts";

type State = EpochBully["state"];
type Ctx = Context<EpochBully>;

/** Waits grow to this power of two at most. */
const MOST_PATIENCE = 3;

export function campaign(options: EpochBullyOptions) {
  const { leaseMs, renewMs, answerMs, preVote, takesOver } = options;
  const { boundsMs, backOff } = timing(options);

  /** Gives an election up in time for so many round trips. */
  function giveTime(state: State, trips: number, ctx: Ctx): void {
    ctx.setTimer("answer", Math.min(leaseMs, trips * answerMs * 2 ** state.patience));
  }

  /** The pre-vote: bully's question to everybody, of which nothing remains where it is asked. */
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

  /** A majority backs this node: it may go on to ask for votes for an epoch above `highest`, once the leader has made way. */
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
    renew(state, ctx);
  }

  /**
   * A round that a majority has confirmed is followed by the next. One that it has not is sent again, and what it will
   * be worth still counts from the first time.
   */
  function renew(state: State, ctx: Ctx): void {
    const { phase, promised } = state;
    if (phase.is !== "leading") return;
    if (isConfirmed(state)) {
      phase.round += 1;
      phase.confirms = [];
      ctx.setTimer(leaseTimer(phase.round), leaseMs);
    }
    ctx.setTimer("renew", renewMs);
    ctx.broadcast({ type: "coordinator", epoch: promised.epoch, round: phase.round, rank: state.rank });
    certify(state, ctx);
  }

  function bind(state: State, ctx: Ctx): void {
    state.isBound = true;
    ctx.setTimer("bound", boundsMs);
  }

  /** Whoever outranks the leader that it follows calls an election soon, and takes over if a majority would have it. */
  function considerTakeover(state: State, ctx: Ctx): void {
    if (takesOver && isAboveLeader(state, ctx.self)) ctx.setTimer("call", backOff);
  }

  /** On `coordinator` of an epoch that this node may follow. */
  function follow(state: State, { epoch, leader, rank }: NonNullable<State["term"]>, ctx: Ctx): void {
    const isKnown = leaderOf(state, ctx.self) === leader && state.term?.epoch === epoch;
    const isAsBefore = isKnown && state.term?.rank === rank;
    const isNews = state.term?.epoch !== epoch || state.term.leader !== leader;
    if (!isKnown) {
      leave(state, ctx); // Otherwise it may be about to displace the leader.
      state.patience = 0;
    }
    promise(state, { epoch, to: leader }, ctx);
    bind(state, ctx);
    state.term = { epoch, leader, rank };
    if (isNews) {
      state.insists = false;
      ctx.emit({ type: "elected", leader, epoch });
    }
    if (isAsBefore) return;
    ctx.cancelTimer("call");
    considerTakeover(state, ctx);
  }

  function expire(state: State, ctx: Ctx): void {
    if (mayLead(state)) wait(state, ctx, backOff);
  }

  return {
    startElection,
    concludeIfAnswered,
    conclude,
    becomeLeaderIfElected,
    requestVotes,
    renew,
    bind,
    follow,
    expire,
    considerTakeover,
  };
}
