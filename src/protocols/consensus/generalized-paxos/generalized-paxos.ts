/**
 * Generalized Paxos: nodes agree on a history of commands in which only those that interfere have an order. Commands that commute are
 * learnt two message delays after they were proposed, whatever is proposed beside them; those that interfere may collide, and then the
 * coordinator orders them.
 * Lamport, "Generalized Consensus and Paxos", MSR-TR-2005-33; histories as in its section on command histories.
 *
 * Assumes   crash-recovery nodes with a journal; the same options at all nodes, and a relation of interference that is true of the
 *           state machine; for liveness, a classic quorum alive, reliable links and a bound on delay in the end. Fast rounds need a
 *           fast quorum: N ≥ 4 for one that stands a crash.
 * Safety    agreement: all nodes learn interfering commands in the same order, and the same commands up to each checkpoint.
 *           Integrity: what is learnt was proposed.
 * Liveness  a command that a client proposes again and again is learnt in the end.
 * Cost      a command: N − 1 propose and N(N − 1) accepted, 2 delays. A collision: N − 1 accept and N(N − 1) accepted more, 2 delays
 *           more. One journal record of each acceptor for each vote. A checkpoint costs what a command does.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type Command, logCommandShapes } from "../family/replicated-log.ts";
import {
  adopt,
  type Ballot,
  firstBallot,
  isEarlier,
  isImpostor,
  isSameBallot,
  isSameRound,
  isStale,
  isStranger,
  nodesOf,
  noteHigher,
  type Round,
  raise,
  restore,
  roles,
  stepDown,
} from "../parts/ballots.ts";
import {
  campaign,
  compact,
  emitAll,
  install,
  learnTaught,
  notePromise,
  proceed,
  replayFinished,
  replaySnapshot,
  teach,
  unhang,
} from "./coordinator.ts";
import {
  agreement,
  type Ctx,
  checkpoints,
  common,
  contains,
  FAST,
  type GeneralizedPaxos,
  type GeneralizedPaxosOptions,
  type History,
  isCheckpoint,
  isFast,
  messageShapes,
  recordShapes,
  type Settings,
  type State,
  settled,
  type Vote,
} from "./vocabulary.ts";

// The acceptor: promises, takes the coordinator's histories, and in fast rounds appends what proposers send. It journals before it speaks.

/** Phase 1b. */
function promise(state: State, ballot: Ballot, ctx: Ctx): void {
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
function mayAccept({ vote }: State, round: Round, history: History): boolean {
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

// Learning: what a quorum's histories of one round have in common is chosen. Each node learns it in an order of its own.

const isOld = (known: Vote | undefined, { round, history, closed }: Vote): boolean =>
  known !== undefined &&
  (isEarlier(round, known.round) ||
    (isSameRound(round, known.round) &&
      (history.length < known.history.length || (history.length === known.history.length && !closed))));

/** Phase 2b arrives at a learner. */
function hear(state: State, from: NodeId, era: number, vote: Vote, ctx: Ctx, settings: Settings): void {
  if (era !== state.era || isStranger(from, ctx) || isOld(state.heard[from], vote)) return;
  state.heard[from] = vote;
  const { classic, fast } = settings.quorumsOf(nodesOf(ctx));
  const quorum = isFast(vote.round) ? fast : classic;
  const ofRound = Object.values(state.heard).filter(({ round }) => isSameRound(round, vote.round));
  if (ofRound.length >= quorum) {
    const histories = ofRound.map(({ history }) => history);
    learn(state, common(histories, quorum, settings.interferes), ctx);
  }
}

/** These are chosen, in an order that is right for those that interfere. A checkpoint comes last and ends the era. */
export function learn(state: State, commands: History, ctx: Ctx): void {
  for (const command of commands) {
    if (contains(state.learnt, command)) continue;
    const isNew = !isDone(state, command);
    note(state, command);
    if (!isCheckpoint(command)) {
      if (isNew) ctx.emit({ type: "decided", index: state.base + state.learnt.length, command });
      continue;
    }
    ctx.persist({ type: "finished", commands: state.learnt });
    finishEra(state);
    return;
  }
}

function note(state: State, { client, sequence, operation }: Command): void {
  state.learnt.push({ client, sequence, operation });
  if (sequence > 0) state.latest[client] = Math.max(sequence, state.latest[client] ?? 0);
}

/** Whether this client's command is learnt, in this era or before: it has one under way at a time. */
export const isDone = ({ latest }: Pick<State, "latest">, { client, sequence }: Command): boolean =>
  sequence > 0 && sequence <= (latest[client] ?? 0);

/** After a checkpoint all nodes have learnt the same, and histories begin anew. What was not chosen is appended in the next era. */
export function finishEra(state: State): void {
  const left = [...(state.vote?.history ?? []), ...state.pending];
  state.finished.push({ commands: state.learnt });
  state.base += state.learnt.length;
  state.era += 1;
  state.learnt = [];
  state.vote = null;
  state.heard = {};
  state.pending = [];
  for (const command of left) keep(state, command);
}

export function keep(state: State, command: Command): void {
  const isKnown = contains(state.pending, command) || contains(state.vote?.history ?? [], command);
  const isOver = isCheckpoint(command) ? command.operation !== checkpointOf(state.era) : isDone(state, command);
  if (!isKnown && !isOver && !contains(state.learnt, command)) state.pending.push(command);
}

/** Those of earlier eras mean nothing any more. */
export const checkpointOf = (era: number): string => `checkpoint ${era}`;

export function relearn(state: State, commands: History): void {
  for (const command of commands) if (!contains(state.learnt, command)) note(state, command);
}

/** How many places this node has learnt. */
export const progress = ({ base, learnt }: State): number => base + learnt.length;

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

export function generalizedPaxos(given?: Partial<GeneralizedPaxosOptions>): Protocol<GeneralizedPaxos> {
  const settings = settled(given);
  return {
    name: "generalized-paxos",
    init(self, peers) {
      settings.quorumsOf(peers.length + 1); // Refused before the run where they need not meet.
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
      "a relation of interference that is true of the state machine",
      "for liveness: a classic quorum alive, reliable links",
    ],
    properties: [agreement(settings.interferes), checkpoints],
    costs: [{ when: "one command that collides with none", messages: (nodes) => (nodes - 1) * (nodes + 1) }],
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
      ctx.send(from, { type: "accepted", era, ...vote }); // It was lost.
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

/** Heartbeats, refusals, and help for nodes that have fallen behind. */
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
