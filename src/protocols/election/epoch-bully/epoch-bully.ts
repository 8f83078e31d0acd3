/**
 * Bully with epochs: a majority votes for a leader before it leads, each vote is journalled, and every term of
 * leadership has a number that only grows. That the highest should lead stays a preference: safety does not rest on time.
 * García-Molina, IEEE ToC 1982, hardened with ballots (Lamport, "Paxos Made Simple", 2001), leases (Gray & Cheriton,
 * SOSP 1989) and a pre-vote (Ongaro, "Consensus: Bridging Theory and Practice", 2014, §9.6).
 *
 * Assumes   crash-recovery nodes with a journal. For one leader at a time: clocks whose speeds differ by no more than
 *           `drift`, nodes that are not paused. For liveness: a majority alive, reliable links and a bound on delay in the end.
 * Safety    at most one leader per epoch, under any delay, loss, duplication, reordering, partition, crash and recovery;
 *           epochs never go back; at most one leader at a time, whatever the delays.
 * Liveness  E2: in the end everybody alive follows the same leader; E1: it is the highest alive that stands and can reach
 *           a majority.
 * Cost      6(N − 1) messages for an undisturbed election: election, answer, requestVote, voteGranted, coordinator and
 *           confirm, N − 1 each; 2(N − 1) for a round of renewals.
 */
import type { Context, Protocol } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { exclude, include } from "../../node-set.ts";
import { campaign, leave, wait } from "./campaign.ts";
import { certify, giveUp, promise, release, renew } from "./leadership.ts";
import { type EpochBullyOptions, epochBullyOptions, timing } from "./options.ts";
import { declarations } from "./properties.ts";
import {
  type EpochBully,
  isAbove,
  isAboveLeader,
  isBoundAgainst,
  isConfirmed,
  isOver,
  leaderOf,
  mayLead,
  type Term,
} from "./vocabulary.ts";

export type { EpochBully, Pledge } from "./vocabulary.ts";

type State = EpochBully["state"];
type Ctx = Context<EpochBully>;

export function epochBully(given?: Partial<EpochBullyOptions>): Protocol<EpochBully> {
  const options = epochBullyOptions.settle(given);
  const ranks = new Map(options.ranks.map(({ node, rank }) => [node, rank]));
  const { boundsMs, backOff, deferenceMs } = timing(options);
  const { startElection, concludeIfAnswered, conclude, requestVotes, becomeLeaderIfElected } = campaign(options);

  /** It votes for nobody else until then. */
  function bind(state: State, ctx: Ctx): void {
    state.isBound = true;
    ctx.setTimer("bound", boundsMs);
  }

  /** On `coordinator` of an epoch that this node may follow. */
  function follow(state: State, { epoch, leader, rank }: Term, ctx: Ctx): void {
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

  /** A node that outranks the leader that it follows calls an election soon, and takes over if a majority would have it. */
  function considerTakeover(state: State, ctx: Ctx): void {
    if (options.takesOver && isAboveLeader(state, ctx.self)) ctx.setTimer("call", backOff);
  }

  function expire(state: State, ctx: Ctx): void {
    if (mayLead(state)) wait(state, ctx, backOff);
  }

  return {
    name: "epoch-bully",
    init: (self, peers) => ({
      phase: { is: "following" },
      promised: { epoch: 0, to: self },
      isBound: false,
      released: null,
      term: null,
      rank: ranks.get(self) ?? self,
      isCandidate: options.stands,
      insists: false,
      patience: 0,
      suspected: [],
      quorum: majority(peers.length + 1),
    }),
    start(state, ctx) {
      // It may have voted, or confirmed, just before it crashed.
      if (state.promised.to !== ctx.self) bind(state, ctx);
      else startElection(state, ctx);
    },
    receive: {
      election(state, from, { promised, released, rank }, ctx) {
        release(state, released, ctx);
        // The asker has promised an epoch above this one's, and cannot follow any more.
        if (state.phase.is === "leading" && promised > state.promised.epoch) giveUp(state, null, ctx);
        const boundTo = state.phase.is === "leading" ? ctx.self : state.isBound ? state.promised.to : null;
        const above = isAbove(state, ctx.self, rank, from);
        ctx.send(from, { type: "answer", promised: state.promised.epoch, boundTo, isAbove: above });
        if (boundTo !== null || state.phase.is !== "following") return;
        if (above) startElection(state, ctx);
        else wait(state, ctx, deferenceMs);
      },
      answer(state, from, { promised, boundTo, isAbove: objects }, ctx) {
        const { phase } = state;
        if (phase.is !== "preVoting") return; // Late: that pre-vote is over.
        if (objects && !state.insists) {
          state.insists = true;
          return wait(state, ctx, deferenceMs);
        }
        const wouldHaveIt =
          boundTo === null || boundTo === ctx.self || (state.isBound && boundTo === state.promised.to);
        if (wouldHaveIt) include(phase.backers, from);
        phase.promised = Math.max(phase.promised, promised);
        exclude(phase.awaited, from);
        concludeIfAnswered(state, ctx);
      },
      requestVote(state, from, { epoch, released }, ctx) {
        release(state, released, ctx);
        if (epoch <= state.promised.epoch || isBoundAgainst(state, from)) return; // The candidate gives up when it has waited.
        leave(state, ctx);
        ctx.cancelTimer("call");
        promise(state, { epoch, to: from }, ctx);
        bind(state, ctx);
        ctx.send(from, { type: "voteGranted", epoch });
      },
      voteGranted(state, from, { epoch }, ctx) {
        if (state.phase.is !== "requestingVotes" || epoch !== state.promised.epoch) return; // Of an earlier election, or one too many.
        include(state.phase.votes, from);
        becomeLeaderIfElected(state, ctx);
      },
      coordinator(state, from, { epoch, round, rank }, ctx) {
        if (isOver(state, { epoch, to: from })) return;
        follow(state, { epoch, leader: from, rank }, ctx);
        ctx.send(from, { type: "confirm", epoch, round });
      },
      confirm(state, from, { epoch, round }, ctx) {
        const { phase, promised } = state;
        if (phase.is !== "leading" || epoch !== promised.epoch || round !== phase.round) return; // Of an earlier round.
        if (isConfirmed(state)) return; // One too many.
        include(phase.confirms, from);
        certify(state, ctx);
      },
      displace(state, from, { epoch, rank }, ctx) {
        const { phase, promised } = state;
        if (phase.is !== "leading" || epoch !== promised.epoch || isAbove(state, ctx.self, rank, from)) return;
        giveUp(state, from, ctx);
        wait(state, ctx, deferenceMs);
      },
      resign(state, from, { epoch, successor }, ctx) {
        const wasBound = state.isBound;
        release(state, { epoch, to: from }, ctx);
        if (!wasBound || state.isBound) return; // It concerns others.
        const makesWay = successor === null || successor === ctx.self;
        if (state.phase.is === "displacing" && makesWay) requestVotes(state, state.phase.promised, ctx);
        else if (state.phase.is !== "preVoting") wait(state, ctx, successor === null ? backOff : deferenceMs);
      },
    },
    timeout: {
      call: startElection,
      answer(state, ctx) {
        if (state.phase.is === "preVoting") conclude(state, ctx);
        else if (state.phase.is !== "leading") wait(state, ctx, state.isBound ? boundsMs : backOff);
      },
      bound(state, ctx) {
        state.isBound = false;
        if (state.phase.is === "following") wait(state, ctx, backOff);
      },
      renew: (state, ctx) => renew(state, options, ctx),
      leaseEven: expire,
      leaseOdd: expire,
    },
    command: {
      call: (state, _command, ctx) => startElection(state, ctx),
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return; // Not one of the members.
        include(state.suspected, node);
        if (state.phase.is === "preVoting") exclude(state.phase.awaited, node);
        concludeIfAnswered(state, ctx);
      },
      restore: (state, { node }) => exclude(state.suspected, node),
      resign(state, _command, ctx) {
        state.isCandidate = false;
        ctx.cancelTimer("call");
        leave(state, ctx);
      },
      stand(state, _command, ctx) {
        state.isCandidate = true;
        if (state.isBound) considerTakeover(state, ctx);
        else startElection(state, ctx);
      },
      rank(state, { rank }, ctx) {
        state.rank = rank; // A leader's followers hear of it with the next renewal.
        considerTakeover(state, ctx);
      },
    },
    replay: {
      promised(state, { epoch, to }) {
        state.promised = { epoch, to };
      },
    },
    ...declarations(options.takesOver),
  };
}
