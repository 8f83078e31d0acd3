/**
 * Bully with epochs: a node leads only after a majority has voted for it, each vote is journaled, and terms of
 * leadership have increasing numbers. Safety depends neither on the preference for the highest node nor on message
 * delays.
 * García-Molina, IEEE ToC 1982, hardened with ballots (Lamport, "Paxos Made Simple", 2001), leases (Gray & Cheriton,
 * SOSP 1989) and a pre-vote (Ongaro, "Consensus: Bridging Theory and Practice", 2014, §9.6).
 *
 * Assumes   crash-recovery nodes with a journal. For one leader at a time: clock speeds that differ by at most `drift`,
 *           and no process pauses. For liveness: a majority alive, and links that are eventually reliable and have
 *           bounded delay.
 * Safety    at most one leader per epoch, under any delay, loss, duplication, reordering, partition, crash and
 *           recovery; epochs never decrease; at most one leader at a time, regardless of delays.
 * Liveness  E2: eventually all alive nodes follow the same leader; E1: that leader is the highest alive candidate that
 *           can reach a majority.
 * Cost      6(N − 1) messages for an undisturbed election: N − 1 each of election, answer, requestVote, voteGranted,
 *           coordinator and confirm; 2(N − 1) for a round of renewals.
 */
import type { Duration, NodeId, Protocol, TimerOf } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { changedContext } from "../../contexts.ts";
import { leaseTimer } from "../../leases.ts";
import { exclude, include } from "../../node-set.ts";
import {
  type Ctx,
  declarations,
  type EpochBully,
  type EpochBullyOptions,
  epochBullyOptions,
  isAbove,
  isAboveLeader,
  isBoundAgainst,
  isConfirmed,
  isOver,
  isSame,
  leaderOf,
  mayLead,
  type Pledge,
  type State,
  type Term,
  timing,
  VOTE_TRIPS,
} from "./vocabulary.ts";

// Promises and leases: how a node votes, renews its lease while it leads, and gives up leadership.

/** Votes for a node. The promise is durable before the vote is sent. */
function promise(state: State, to: Pledge, ctx: Ctx): void {
  if (isSame(state.promised, to)) return;
  state.promised = to;
  ctx.compact([{ type: "promised", ...to }]);
}

/** Handles a promise that its recipient has given back. */
function release(state: State, released: Pledge | null, ctx: Ctx): void {
  if (released === null || (state.released !== null && released.epoch < state.released.epoch)) return;
  state.released = released;
  if (!state.isBound || !isSame(state.promised, released)) return;
  state.isBound = false;
  ctx.cancelTimer("bound");
}

/**
 * Starts the next round of renewals if a majority has confirmed this one. Otherwise, resends this one, whose lease
 * still counts from the time it was first sent.
 */
function renew(state: State, { leaseMs, renewMs }: EpochBullyOptions, ctx: Ctx): void {
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

/** Confirms the lease for this round, which replaces the lease for the previous round. */
function certify(state: State, ctx: Ctx): void {
  const { phase, promised } = state;
  if (phase.is !== "leading" || !isConfirmed(state)) return;
  ctx.cancelTimer(leaseTimer(phase.round - 1));
  ctx.emit({ type: "confirmed", epoch: promised.epoch }, leaseTimer(phase.round));
}

/**
 * Gives up the epoch that this node promised to itself. Notifies all peers, so that nodes bound to this node are
 * released.
 */
function giveUp(state: State, successor: NodeId | null, ctx: Ctx): void {
  const { epoch } = state.promised;
  if (state.phase.is === "leading") ctx.emit({ type: "deposed", epoch });
  state.phase = { is: "following" };
  state.released = { ...state.promised };
  for (const timer of ["answer", "renew", "leaseEven", "leaseOdd"] as const) ctx.cancelTimer(timer);
  ctx.broadcast({ type: "resign", epoch, successor });
}

// Campaigns: how a node becomes leader. It first asks whether a majority supports it, and then requests votes.

/** The maximum number of times that waits are doubled. */
const MOST_PATIENCE = 3;

function campaign(options: EpochBullyOptions) {
  const { leaseMs, answerMs, preVote } = options;
  const { boundsMs, backOff } = timing(options);

  /** Limits the election to the time that `trips` round trips take. */
  function giveTime(state: State, trips: number, ctx: Ctx): void {
    ctx.setTimer("answer", Math.min(leaseMs, trips * answerMs * 2 ** state.patience));
  }

  /** Starts the pre-vote: asks all peers for support, as in bully, without changing their state. */
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

  /**
   * Concludes the pre-vote if all awaited answers have arrived. No higher node can then object, so waiting for crashed
   * nodes is unnecessary.
   */
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

  /**
   * Proceeds with the support of a majority: requests votes for an epoch above `highest`, once the current leader, if
   * any, has made way.
   */
  function proceed(state: State, highest: number, ctx: Ctx): void {
    if (!state.isBound) return requestVotes(state, highest, ctx);
    state.phase = { is: "displacing", promised: highest };
    giveTime(state, 1, ctx);
    ctx.send(state.promised.to, { type: "displace", epoch: state.promised.epoch, rank: state.rank });
  }

  /**
   * Requests votes. This node's own promise is journaled before any request is sent, so it never requests votes for the
   * same epoch twice.
   */
  function requestVotes(state: State, highest: number, ctx: Ctx): void {
    promise(state, { epoch: Math.max(highest, state.promised.epoch) + 1, to: ctx.self }, ctx);
    state.phase = { is: "requestingVotes", votes: [] };
    state.insists = false;
    giveTime(state, VOTE_TRIPS, ctx);
    ctx.setTimer(leaseTimer(0), leaseMs); // The lease counts from now, no matter when the votes arrive.
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

/** Leaves the current election, if any. */
function leave(state: State, ctx: Ctx): void {
  if (mayLead(state)) return giveUp(state, null, ctx);
  state.phase = { is: "following" };
  ctx.cancelTimer("answer");
}

/** Lets other nodes try first. After `duration`, this node calls an election itself if one is still needed. */
function wait(state: State, ctx: Ctx, duration: number | readonly [number, number]): void {
  leave(state, ctx);
  if (state.isCandidate) ctx.setTimer("call", state.isBound ? duration : stretched(duration, state.patience));
}

function stretched(duration: number | readonly [number, number], patience: number): number | readonly [number, number] {
  const factor = 2 ** patience;
  return typeof duration === "number" ? duration * factor : [duration[0], duration[1] * factor];
}

export type { EpochBully, Pledge } from "./vocabulary.ts";

/** Creates the bully election with epochs. @throws UsageError if an option is unknown or out of range. */
export function epochBully(given?: Partial<EpochBullyOptions>): Protocol<EpochBully> {
  const options = epochBullyOptions.settle(given);
  const ranks = new Map(options.ranks.map(({ node, rank }) => [node, rank]));
  const { boundsMs, backOff, deferenceMs } = timing(options);
  const { startElection, concludeIfAnswered, conclude, requestVotes, becomeLeaderIfElected } = campaign(options);

  /** Binds this node to the one that it has promised: it votes for no other node until the timer expires. */
  function bind(state: State, ctx: Ctx): void {
    state.isBound = true;
    ctx.setTimer("bound", boundsMs);
  }

  /** Handles a `coordinator` message from a leader that this node may follow. */
  function follow(state: State, { epoch, leader, rank }: Term, ctx: Ctx): void {
    const isKnown = leaderOf(state, ctx.self) === leader && state.term?.epoch === epoch;
    const isAsBefore = isKnown && state.term?.rank === rank;
    const isNews = state.term?.epoch !== epoch || state.term.leader !== leader;
    if (!isKnown) {
      leave(state, ctx); // Otherwise it might displace the leader.
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

  /** Schedules an election if this node outranks its leader. It takes over if a majority supports it. */
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
      // The node may have voted or confirmed just before it crashed.
      if (state.promised.to !== ctx.self) bind(state, ctx);
      else startElection(state, ctx);
    },
    receive: {
      election(state, from, { promised, released, rank }, ctx) {
        release(state, released, ctx);
        // The sender has promised an epoch above this leader's, so it can no longer follow this leader.
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
        if (phase.is !== "preVoting") return; // A late answer: that pre-vote is over.
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
        if (epoch <= state.promised.epoch || isBoundAgainst(state, from)) return; // The candidate will time out.
        leave(state, ctx);
        ctx.cancelTimer("call");
        promise(state, { epoch, to: from }, ctx);
        bind(state, ctx);
        ctx.send(from, { type: "voteGranted", epoch });
      },
      voteGranted(state, from, { epoch }, ctx) {
        if (state.phase.is !== "requestingVotes" || epoch !== state.promised.epoch) return; // An obsolete vote.
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
        if (phase.is !== "leading" || epoch !== promised.epoch || round !== phase.round) return; // An earlier round.
        if (isConfirmed(state)) return; // A majority has already confirmed.
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
        if (!wasBound || state.isBound) return; // The message does not change this node's binding.
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
        if (!ctx.peers.includes(node)) return; // The node is not a member.
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
        state.rank = rank; // If this node leads, its followers receive the new rank with the next renewal.
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

// Bounded epoch-bully: every run ends, so the checker can explore all runs. A node that has to call an election
// requests votes immediately, and then neither calls another election nor renews its lease. Everything that safety
// depends on is included: votes, the journal, announcements, lease expiry and resignations. It claims only properties
// that hold no matter how inaccurate the timers are.

/** Creates bounded epoch-bully. @throws UsageError if an option is unknown or out of range. */
export function boundedEpochBully(given?: Partial<EpochBullyOptions>): Protocol<EpochBully> {
  const { start, receive, timeout, command, properties, ...rest } = epochBully({ ...given, preVote: false });
  return {
    ...rest,
    properties: properties.filter(({ name }) => name === "one leader per epoch" || name === "epochs grow"),
    start: (state, ctx) => start?.(state, calm(ctx)),
    receive: calmly(receive),
    timeout: calmly(timeout),
    command: calmly(command),
  };
}

/** Wraps the handlers so that they do not arm the recurring timers. The context is their last argument. */
function calmly<T extends object>(handlers: T): T {
  const entries = Object.entries(handlers as Record<string, (...args: unknown[]) => void>);
  return Object.fromEntries(
    entries.map(([name, handle]) => [
      name,
      (...args: unknown[]) => handle(...args.slice(0, -1), calm(args.at(-1) as Ctx)),
    ]),
  ) as T;
}

const calm = (ctx: Ctx): Ctx =>
  changedContext(ctx, {
    setTimer(timer: TimerOf<EpochBully>, duration: Duration) {
      if (timer !== "call" && timer !== "renew") ctx.setTimer(timer, duration);
    },
  });
