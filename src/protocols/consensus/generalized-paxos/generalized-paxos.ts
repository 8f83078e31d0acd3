/**
 * Generalized Paxos: nodes agree on a history that orders only interfering commands. Commuting commands are learned two
 * message delays after they were proposed, even with concurrent proposals. If interfering commands collide, the
 * coordinator orders them.
 * Lamport, "Generalized Consensus and Paxos", MSR-TR-2005-33; histories as in its section on command histories.
 *
 * Assumes   crash-recovery nodes with a journal; the same options at all nodes, and an interference relation that is
 *           correct for the state machine; for liveness, a classic quorum is alive, links are eventually reliable, and
 *           delays are eventually bounded. Fast rounds need a fast quorum, which tolerates a crash only if N ≥ 4.
 * Safety    agreement: all nodes learn interfering commands in the same order, and the same commands up to each
 *           checkpoint. Integrity: every learned command was proposed.
 * Liveness  a command that a client proposes repeatedly is eventually learned.
 * Cost      a command takes N − 1 propose and N(N − 1) accepted messages, and 2 message delays. A collision adds N − 1
 *           accept and N(N − 1) accepted messages, and 2 delays. Each acceptor journals one record per vote. A
 *           checkpoint costs as much as a command.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { logCommandShapes } from "../family/replicated-log.ts";
import {
  adopt,
  firstBallot,
  isImpostor,
  isSameBallot,
  isStale,
  isStranger,
  noteHigher,
  restore,
  roles,
  stepDown,
} from "../parts/ballots.ts";
import {
  accept,
  campaign,
  compact,
  emitAll,
  hear,
  install,
  isDone,
  keep,
  learnTaught,
  mayAccept,
  notePromise,
  proceed,
  progress,
  promise,
  replayFinished,
  replaySnapshot,
  teach,
  unhang,
} from "./roles.ts";
import {
  agreement,
  checkpoints,
  contains,
  type GeneralizedPaxos,
  type GeneralizedPaxosOptions,
  isCheckpoint,
  messageShapes,
  recordShapes,
  type Settings,
  type State,
  settled,
} from "./vocabulary.ts";

export type { GeneralizedPaxos, GeneralizedPaxosOptions } from "./vocabulary.ts";

function initialState(self: NodeId, peers: readonly NodeId[]): State {
  const joined = [self, ...peers].sort((a, b) => a - b);
  const ballot = firstBallot(self, peers);
  return {
    ...ballot,
    era: 1,
    base: 0,
    vote: null,
    heard: {},
    learnt: [],
    pending: [],
    latest: {},
    snapshot: null,
    finished: [],
    coordinator: self === ballot.leader ? { is: "leading", joined, watched: null } : { is: "none" },
  };
}

/** Creates Generalized Paxos. @throws UsageError `bad-option` if an option is unknown or out of range. */
export function generalizedPaxos(given?: Partial<GeneralizedPaxosOptions>): Protocol<GeneralizedPaxos> {
  const settings = settled(given);
  return {
    name: "generalized-paxos",
    init(self, peers) {
      settings.quorumsOf(peers.length + 1); // Throws if two quorums need not intersect.
      return initialState(self, peers);
    },
    start(state, ctx) {
      emitAll(state, ctx);
      if (state.coordinator.is === "leading") ctx.setTimer("heartbeat", settings.heartbeatMs);
      else stepDown(state, ctx, settings);
      if (!state.isRestored) return;
      state.isRestored = false;
      proceed(state, ctx, settings);
    },
    receive: { ...phases(settings), ...upkeep(settings) },
    timeout: {
      patience(state, ctx) {
        campaign(state, ctx, settings);
        proceed(state, ctx, settings);
      },
      heartbeat(state, ctx) {
        const { promised: ballot, open, era } = state;
        ctx.broadcast({ type: "heartbeat", ballot, open, era, learnt: progress(state) });
        ctx.setTimer("heartbeat", settings.heartbeatMs);
      },
      recover(state, ctx) {
        unhang(state, ctx, settings);
        proceed(state, ctx, settings);
      },
    },
    command: {
      propose(state, { command }, ctx) {
        if (isCheckpoint(command) || isDone(state, command)) return;
        ctx.broadcast({ type: "propose", command });
        if (state.pending.length < settings.maxPending) keep(state, command);
        if (!state.isRestored) proceed(state, ctx, settings);
      },
      compact: (state, { index, snapshot }, ctx) => compact(state, index, snapshot, ctx),
    },
    replay,
    shapes: {
      message: messageShapes,
      command: { propose: logCommandShapes.propose, compact: logCommandShapes.compact },
      record: recordShapes,
    },
    source: "Lamport, MSR-TR-2005-33",
    assumes: [
      "crash-recovery nodes with a journal",
      "an interference relation that is correct for the state machine",
      "for liveness: a classic quorum alive, reliable links",
    ],
    properties: [agreement(settings.interferes), checkpoints],
    costs: [{ when: "one command without a collision", messages: (nodes) => (nodes - 1) * (nodes + 1) }],
    view: (state) => ({
      role: roles[state.coordinator.is],
      leader: state.leader,
      term: state.promised.count,
      log: {
        decided: progress(state),
        last: state.base + Math.max(state.learnt.length, state.vote?.history.length ?? 0),
      },
    }),
  };
}

type Receive = Protocol<GeneralizedPaxos>["receive"];

const phases = (settings: Settings): Pick<Receive, "prepare" | "promise" | "propose" | "accept" | "accepted"> => ({
  prepare(state, from, { ballot }, ctx) {
    if (isImpostor(ballot, from)) return;
    if (isStale(state, ballot)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (!isSameBallot(ballot, state.promised)) stepDown(state, ctx, settings);
    promise(state, ballot, ctx);
  },
  promise(state, from, { ballot, era, vote }, ctx) {
    notePromise(state, from, ballot, { era, vote }, ctx, settings);
    proceed(state, ctx, settings);
  },
  propose(state, from, { command }, ctx) {
    if (isStranger(command.client, ctx)) return;
    if (isDone(state, command)) return teach(state, from, state.era, ctx);
    const { vote, era } = state;
    if (vote !== null && contains(vote.history, command))
      ctx.send(from, { type: "accepted", era, ...vote }); // The earlier vote may have been lost.
    else if (state.pending.length < settings.maxPending) keep(state, command);
    proceed(state, ctx, settings);
  },
  accept(state, from, { era, round, history, open }, ctx) {
    if (isImpostor(round, from)) return;
    if (isStale(state, round)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (era < state.era) return teach(state, from, era, ctx);
    adopt(state, round, ctx, settings);
    state.open ??= open;
    if (era > state.era) return ctx.send(from, { type: "catchUp", era: state.era });
    if (mayAccept(state, round, history)) accept(state, round, history, ctx, settings);
    proceed(state, ctx, settings);
  },
  accepted(state, from, { era, round, history, begun, closed }, ctx) {
    hear(state, from, era, { round, history, begun, closed }, ctx, settings);
    proceed(state, ctx, settings);
  },
});

/** Returns the handlers for heartbeats, refusals, and messages that help nodes catch up. */
const upkeep = (settings: Settings): Pick<Receive, "nack" | "heartbeat" | "catchUp" | "learnt" | "snapshot"> => ({
  nack: (state, _from, { promised }, ctx) => noteHigher(state, promised, ctx, settings),
  heartbeat(state, from, { ballot, open, era, learnt }, ctx) {
    if (isImpostor(ballot, from)) return;
    if (isStale(state, ballot)) return ctx.send(from, { type: "nack", promised: state.promised });
    if (!isSameBallot(ballot, state.promised)) {
      stepDown(state, ctx, settings);
      promise(state, ballot, ctx);
    }
    adopt(state, ballot, ctx, settings);
    state.open ??= open;
    const { mine, leaders } = state.atBeat;
    const here = progress(state);
    if (here < learnt && here === mine) ctx.send(from, { type: "catchUp", era: state.era });
    if (learnt < here && learnt === leaders) teach(state, from, era, ctx);
    state.atBeat = { mine: here, leaders: learnt };
    proceed(state, ctx, settings);
  },
  catchUp: (state, from, { era }, ctx) => teach(state, from, era, ctx),
  learnt(state, from, { era, commands, isOver }, ctx) {
    const before = state.era;
    learnTaught(state, era, commands, ctx);
    if (isOver && state.era > before && state.era % 20 === 0) ctx.send(from, { type: "catchUp", era: state.era });
    proceed(state, ctx, settings);
  },
  snapshot(state, _from, { type: _type, ...snapshot }, ctx) {
    install(state, snapshot, ctx);
    proceed(state, ctx, settings);
  },
});

const replay: Protocol<GeneralizedPaxos>["replay"] = {
  promised(state, { ballot }) {
    restore(state, ballot);
  },
  voted(state, { era, round, history, begun, closed }) {
    restore(state, round);
    if (era === state.era) state.vote = { round, history, begun, closed };
  },
  finished(state, { commands }) {
    restore(state, null);
    replayFinished(state, commands);
  },
  snapshot(state, { type: _type, ...snapshot }) {
    restore(state, null);
    replaySnapshot(state, snapshot);
  },
};
