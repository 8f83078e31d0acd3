/**
 * Fast Paxos as a replicated log: proposers send their commands directly to the acceptors. A command is chosen once a
 * fast quorum accepts it in an instance, two message delays after it was proposed.
 * Lamport, "Fast Paxos", Distributed Computing 19, 2006; the terms are the paper's.
 *
 * Assumes   crash-recovery nodes with a journal; the same options at all nodes; for liveness, a classic quorum is
 *           alive, links are eventually reliable, and delays are eventually bounded. Fast rounds need a fast quorum,
 *           which tolerates a crash only if N ≥ 4.
 * Safety    agreement: in each instance, no two nodes learn different values. Integrity: every chosen value was
 *           proposed.
 * Liveness  a command that a client proposes repeatedly is eventually decided.
 * Cost      an undisturbed command takes N − 1 propose and N(N − 1) accepted messages, since every acceptor sends to
 *           every learner, and 2 message delays. After a collision, coordinated recovery adds N − 1 accept and N(N − 1)
 *           accepted messages and 2 delays; uncoordinated recovery adds N(N − 1) accepted messages and 1 delay. Each
 *           acceptor journals one record per vote.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type Command, isSameCommand, logCommandShapes } from "../family/replicated-log.ts";
import {
  adopt,
  firstBallot,
  isEarlier,
  isImpostor,
  isSameBallot,
  isStale,
  noteHigher,
  restore,
  roles,
  stepDown,
} from "../parts/ballots.ts";
import {
  advance,
  campaign,
  compact,
  emitAll,
  hear,
  highestSeen,
  install,
  isBeyond,
  leadIfPromised,
  learnAll,
  mayVote,
  notePromise,
  pickCommand,
  promise,
  recover,
  teach,
  unhang,
  vote,
  watch,
} from "./roles.ts";
import {
  agreement,
  type Ctx,
  type FastPaxos,
  type FastPaxosOptions,
  isSameValue,
  messageShapes,
  type Proposal,
  recordShapes,
  type Settings,
  type State,
  settled,
  step,
} from "./vocabulary.ts";

// The proposer sends its command directly to the acceptors, for the next instance that it considers free. If a
// different command wins the instance, the proposer tries the next one.

function propose(state: State, command: Command, ctx: Ctx, settings: Settings): void {
  const known = state.proposals.find((mine) => isSameCommand(mine.command, command));
  if (known !== undefined) return send(state, known, ctx, settings); // Messages may have been lost.
  if (state.proposals.length >= settings.maxProposals) return; // The client retries.
  state.proposals.push({ command, instance: null });
  placeProposals(state, ctx, settings);
}

/** Assigns an instance to each command that has none or has lost its instance to a different command. */
function placeProposals(state: State, ctx: Ctx, settings: Settings): void {
  while (!state.isRestored) {
    const open = state.proposals.find((mine) => isUnplaced(state, mine));
    const instance = highestSeen(state) + 1;
    if (open === undefined || isBeyond(state, instance, settings)) return;
    open.instance = instance;
    send(state, open, ctx, settings);
  }
}

function isUnplaced({ upTo, chosen }: State, { command, instance }: Proposal): boolean {
  if (instance === null || instance <= upTo) return true;
  const value = chosen[instance];
  return value !== undefined && !isSameValue(value, command);
}

function send(state: State, { command, instance }: Proposal, ctx: Ctx, settings: Settings): void {
  if (instance === null) return;
  ctx.broadcast({ type: "propose", instance, command });
  take(state, instance, command, ctx, settings);
}

/**
 * Performs phase 2b of a fast round: votes for the first command that arrives for an instance, if the coordinator has
 * sent "any".
 */
function take(state: State, instance: number, command: Command, ctx: Ctx, settings: Settings): void {
  if (state.open === null) return pickCommand(state, command, ctx, settings);
  const cast = { instance, round: { ...state.promised, step: step.fast }, value: command };
  if (instance >= state.open && mayVote(state, cast, settings)) vote(state, cast, ctx, settings);
}

export type { FastPaxos, FastPaxosOptions } from "./vocabulary.ts";

function initialState(self: NodeId, peers: readonly NodeId[]): State {
  const joined = [self, ...peers].sort((a, b) => a - b);
  const ballot = firstBallot(self, peers);
  return {
    ...ballot,
    votes: {},
    learnt: {},
    chosen: {},
    upTo: 0,
    snapshot: null,
    log: [],
    proposals: [],
    coordinator: self === ballot.leader ? { is: "leading", next: 1, joined, watched: null } : { is: "none" },
  };
}

/**
 * Creates Fast Paxos as a replicated log. Its `init()` throws UsageError `bad-quorum` if two quorums of the given sizes
 * need not intersect.
 *
 * @throws UsageError `bad-option` if an option is unknown or out of range.
 */
export function fastPaxos(given?: Partial<FastPaxosOptions>): Protocol<FastPaxos> {
  const settings = settled(given);
  return {
    name: "fast-paxos",
    init(self, peers) {
      settings.quorumsOf(peers.length + 1); // Throws if two quorums need not intersect.
      return initialState(self, peers);
    },
    start(state, ctx) {
      emitAll(state, ctx);
      if (state.coordinator.is === "leading") ctx.setTimer("heartbeat", settings.heartbeatMs);
      else stepDown(state, ctx, settings);
      state.isRestored = false;
      placeProposals(state, ctx, settings);
    },
    receive: { ...phases(settings), ...upkeep(settings) },
    timeout: {
      patience(state, ctx) {
        campaign(state, ctx, settings);
        afterwards(state, ctx, settings);
      },
      heartbeat(state, ctx) {
        ctx.broadcast({ type: "heartbeat", ballot: state.promised, any: state.open, upTo: state.upTo });
        ctx.setTimer("heartbeat", settings.heartbeatMs);
      },
      recover(state, ctx) {
        unhang(state, ctx, settings);
        afterwards(state, ctx, settings);
      },
    },
    command: {
      propose(state, { command }, ctx) {
        propose(state, command, ctx, settings);
        afterwards(state, ctx, settings);
      },
      compact: (state, { index, snapshot }, ctx) => compact(state, index, snapshot, ctx),
    },
    replay,
    ...declarations,
  };
}

/** Takes the steps that new promises or decisions have made possible. Runs after each step. */
function afterwards(state: State, ctx: Ctx, settings: Settings): void {
  leadIfPromised(state, ctx, settings);
  placeProposals(state, ctx, settings);
  watch(state, ctx, settings);
}

type Receive = Protocol<FastPaxos>["receive"];

/** Returns the handlers for phases 1 and 2, including "any". */
const phases = (
  settings: Settings,
): Pick<Receive, "prepare" | "promise" | "propose" | "accept" | "any" | "accepted"> => ({
  prepare(state, from, { ballot }, ctx) {
    if (isImpostor(ballot, from)) return;
    if (isStale(state, ballot)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (!isSameBallot(ballot, state.promised)) stepDown(state, ctx, settings);
    promise(state, ballot, ctx);
  },
  promise(state, from, { ballot, upTo, votes }, ctx) {
    if (isImpostor(ballot, ctx.self)) return;
    notePromise(state, from, ballot, { upTo, votes }, ctx, settings);
    afterwards(state, ctx, settings);
  },
  propose(state, from, { instance, command }, ctx) {
    if (instance <= state.upTo) return teach(state, from, instance, ctx);
    const last = state.votes[instance];
    take(state, instance, command, ctx, settings);
    // This node has already voted for the command. The proposer is retrying, so the vote may have been lost.
    if (last !== undefined && last === state.votes[instance] && isSameValue(last.value, command))
      ctx.send(from, { type: "accepted", instance, ...last });
    recover(state, instance, ctx, settings);
    afterwards(state, ctx, settings);
  },
  accept(state, from, { instance, round, value }, ctx) {
    if (isImpostor(round, from)) return;
    if (isStale(state, round)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (instance <= state.upTo) return teach(state, from, instance, ctx);
    adopt(state, round, ctx, settings);
    const cast = { instance, round, value };
    if (mayVote(state, cast, settings)) vote(state, cast, ctx, settings);
    afterwards(state, ctx, settings);
  },
  any(state, from, { ballot, from: first }, ctx) {
    if (isImpostor(ballot, from) || isStale(state, ballot)) return;
    adopt(state, ballot, ctx, settings);
    state.open = first;
  },
  accepted(state, from, { instance, round, value }, ctx) {
    hear(state, from, { instance, round, value }, ctx, settings);
    recover(state, instance, ctx, settings);
    afterwards(state, ctx, settings);
  },
});

/** Returns the handlers for heartbeats, refusals, and messages that help nodes catch up. */
const upkeep = (settings: Settings): Pick<Receive, "nack" | "heartbeat" | "catchUp" | "chosen" | "snapshot"> => ({
  nack: (state, _from, { promised }, ctx) => noteHigher(state, promised, ctx, settings),
  heartbeat(state, from, { ballot, any, upTo }, ctx) {
    if (isImpostor(ballot, from)) return;
    if (isStale(state, ballot)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (!isSameBallot(ballot, state.promised)) {
      stepDown(state, ctx, settings);
      promise(state, ballot, ctx);
    }
    adopt(state, ballot, ctx, settings);
    state.open ??= any;
    const { mine, leaders } = state.atBeat;
    if (state.upTo < upTo && state.upTo === mine) ctx.send(from, { type: "catchUp", from: state.upTo + 1 });
    if (upTo < state.upTo && upTo === leaders) teach(state, from, upTo + 1, ctx);
    state.atBeat = { mine: state.upTo, leaders: upTo };
  },
  catchUp: (state, from, { from: first }, ctx) => teach(state, from, first, ctx),
  chosen(state, from, { from: first, values }, ctx) {
    learnAll(state, from, first, values, ctx);
    afterwards(state, ctx, settings);
  },
  snapshot(state, _from, { index, snapshot }, ctx) {
    install(state, index, snapshot, ctx);
    afterwards(state, ctx, settings);
  },
});

const replay: Protocol<FastPaxos>["replay"] = {
  promised(state, { ballot }) {
    restore(state, ballot);
  },
  voted(state, { instance, round, value }) {
    restore(state, round);
    const last = state.votes[instance];
    if (instance > state.upTo && (last === undefined || isEarlier(last.round, round)))
      state.votes[instance] = { round, value };
  },
  chosen(state, { instance, value }) {
    restore(state, null);
    if (instance > state.upTo) state.chosen[instance] = value;
    advance(state, null);
  },
  snapshot(state, { index, snapshot }) {
    restore(state, null);
    state.upTo = index;
    state.snapshot = { index, snapshot };
    state.log = [];
  },
};

const declarations: Pick<Protocol<FastPaxos>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: messageShapes,
    command: { propose: logCommandShapes.propose, compact: logCommandShapes.compact },
    record: recordShapes,
  },
  source: "Lamport, Distributed Computing 19, 2006",
  assumes: ["crash-recovery nodes with a journal", "for liveness: a classic quorum alive, reliable links"],
  properties: [agreement],
  costs: [{ when: "one command, no collision", messages: (nodes) => (nodes - 1) * (nodes + 1) }],
  view: (state) => ({
    role: roles[state.coordinator.is],
    leader: state.leader,
    term: state.promised.count,
    log: { decided: state.upTo, last: highestSeen(state) },
  }),
};
