/**
 * The roles of a node: coordinator, acceptor and learner.
 *
 * The coordinator runs phase 1, then proposes an extension of every history that may have been chosen. This extension
 * contains all commands that the coordinator knows of, which orders the interfering ones. After that, acceptors append
 * commands independently until they collide.
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import {
  type Ballot,
  follow,
  isEarlier,
  isSameBallot,
  isSameRound,
  isStranger,
  nodesOf,
  type Round,
  raise,
  stepDown,
} from "../parts/ballots.ts";
import {
  CLASSIC,
  type Ctx,
  common,
  contains,
  FAST,
  type GeneralizedPaxos,
  type History,
  isCheckpoint,
  isFast,
  type Promised,
  provedSafe,
  type Settings,
  type Snapshot,
  type State,
  type Vote,
} from "./vocabulary.ts";

/** Performs phase 1a. The node promises first, so that its journal prevents it from reusing the ballot. */
export function campaign(state: State, ctx: Ctx, settings: Settings): void {
  stepDown(state, ctx, settings);
  state.count += 1;
  const ballot: Ballot = { count: state.count, node: ctx.self };
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot });
  state.coordinator = { is: "preparing", promises: {} };
  ctx.broadcast({ type: "prepare", ballot });
  notePromise(state, ctx.self, ballot, { era: state.era, vote: copied(state.vote) }, ctx, settings);
}

const copied = (vote: Vote | null): Vote | null => vote && { ...vote, history: [...vote.history] };

/** Handles a promise at the coordinator. */
export function notePromise(
  state: State,
  from: NodeId,
  ballot: Ballot,
  promised: Promised,
  ctx: Ctx,
  settings: Settings,
): void {
  const { coordinator } = state;
  if (!isSameBallot(ballot, state.promised) || isStranger(from, ctx)) return;
  if (coordinator.is === "preparing") coordinator.promises[from] = promised;
  else if (coordinator.is === "leading" && !coordinator.joined.includes(from)) {
    coordinator.joined.push(from);
    openFastRound(state, ctx, settings);
    if (state.vote !== null && isSameBallot(state.vote.round, ballot))
      ctx.send(from, phase2a(state, state.vote.round, state.vote.history.slice(0, state.vote.begun)));
  }
}

/**
 * Performs phase 2a for this era once a classic quorum has promised. The coordinator must first learn the eras that
 * others know to have ended.
 */
function leadIfPromised(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "preparing") return;
  const { classic, fast } = settings.quorumsOf(nodesOf(ctx));
  const promises = Object.entries(coordinator.promises);
  if (promises.length < classic) return;
  const ahead = promises.find(([, { era }]) => era > state.era);
  if (ahead !== undefined) return ctx.send(Number(ahead[0]), { type: "catchUp", era: state.era });
  const joined = promises.map(([node]) => Number(node));
  state.coordinator = { is: "leading", joined, watched: null };
  ctx.cancelTimer("patience");
  ctx.setTimer("heartbeat", settings.heartbeatMs);
  follow(state, ctx);
  const votes = promises.map(([, { era, vote }]) => (era === state.era ? vote : null));
  const isFastRound = joined.length >= fast;
  if (isFastRound) state.open = state.era + 1;
  pickAndAsk(state, { ...state.promised, step: isFastRound ? FAST : CLASSIC }, votes, ctx, settings);
}

/**
 * Proposes the safe history, followed by all other commands in the reported votes and all pending ones. Nothing may
 * follow a checkpoint.
 */
function pickAndAsk(state: State, round: Round, votes: readonly (Vote | null)[], ctx: Ctx, settings: Settings): void {
  const nodes = nodesOf(ctx);
  const safe = provedSafe(votes, nodes, settings.quorumsOf(nodes), settings.interferes);
  const known = [...votes.flatMap((vote) => vote?.history ?? []), ...state.pending];
  ask(state, round, withRest(safe, known, settings), ctx, settings);
}

function withRest(safe: History, known: readonly Command[], { checkpointEvery }: Settings): History {
  if (safe.some(isCheckpoint)) return safe;
  const rest: Command[] = [];
  for (const command of known)
    if (!isCheckpoint(command) && !contains(safe, command) && !contains(rest, command)) rest.push(command);
  const checkpoint = known.filter(isCheckpoint).slice(0, 1);
  return [...safe, ...rest.slice(0, 2 * checkpointEvery), ...checkpoint];
}

const phase2a = ({ era, open }: State, round: Round, history: History) => ({
  type: "accept" as const,
  era,
  round,
  history: [...history],
  open,
});

/**
 * Performs phase 2a. The coordinator votes first, so that its journal prevents it from proposing a different history in
 * this round.
 */
function ask(state: State, round: Round, history: History, ctx: Ctx, settings: Settings): void {
  const message = phase2a(state, round, history);
  accept(state, round, history, ctx, settings);
  ctx.broadcast(message);
}

/** Starts the fast round that follows the classic round. In the classic round, only the coordinator appends. */
function openFastRound(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator, open, vote } = state;
  if (coordinator.is !== "leading" || open !== null) return;
  if (coordinator.joined.length < settings.quorumsOf(nodesOf(ctx)).fast) return;
  state.open = state.era + 1;
  const isUnderWay = vote !== null && isSameBallot(vote.round, state.promised);
  ask(state, { ...state.promised, step: FAST }, isUnderWay ? vote.history : [], ctx, settings);
}

/**
 * Begins the next round once a quorum has closed the current one. Their votes serve as promises, so phase 1 is not
 * needed.
 */
function reopen(state: State, ctx: Ctx, settings: Settings): void {
  const { promised, vote } = state;
  const round = vote !== null && isSameBallot(vote.round, promised) ? vote.round : { ...promised, step: FAST };
  const closed = Object.values(state.heard).filter((each) => each.closed && isSameRound(each.round, round));
  if (closed.length < settings.quorumsOf(nodesOf(ctx)).classic) return;
  pickAndAsk(state, { ...promised, step: round.step + 2 }, closed, ctx, settings);
}

/** Appends pending commands at the coordinator, until enough acceptors for fast rounds have promised. */
function appendClassic(state: State, ctx: Ctx, settings: Settings): void {
  if (state.open !== null || state.pending.length === 0) return;
  const round = { ...state.promised, step: CLASSIC };
  const history = state.vote !== null && isSameRound(state.vote.round, round) ? state.vote.history : state.learnt;
  const longer = withRest(history, state.pending, settings);
  if (longer.length > history.length) ask(state, round, longer, ctx, settings);
}

/** Takes the steps that new votes or commands have made possible. Runs after each step. */
export function proceed(state: State, ctx: Ctx, settings: Settings): void {
  leadIfPromised(state, ctx, settings);
  if (state.coordinator.is === "leading") {
    checkpoint(state, ctx, settings);
    appendClassic(state, ctx, settings);
    reopen(state, ctx, settings);
  }
  append(state, ctx, settings);
  watch(state, ctx, settings);
}

/** Requests a checkpoint when the history has become long. */
function checkpoint(state: State, ctx: Ctx, { checkpointEvery }: Settings): void {
  const history = state.vote?.history ?? [];
  if (history.length < checkpointEvery || [...history, ...state.pending].some(isCheckpoint)) return;
  const command = { client: ctx.self, sequence: 0, operation: checkpointOf(state.era) };
  keep(state, command);
  ctx.broadcast({ type: "propose", command });
}

const hangs = ({ vote, pending, learnt }: State): boolean =>
  pending.length > 0 || (vote !== null && vote.history.length > learnt.length);

/**
 * Starts a timer if some commands have not been learned yet. If there has been no progress when the timer expires, the
 * coordinator begins a higher ballot.
 */
function watch(state: State, ctx: Ctx, { recoverMs }: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || coordinator.watched !== null || !hangs(state)) return;
  coordinator.watched = progress(state);
  ctx.setTimer("recover", recoverMs);
}

/** Begins a higher ballot if this coordinator's commands have made no progress. */
export function unhang(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading") return;
  const isStuck = coordinator.watched === progress(state) && hangs(state);
  coordinator.watched = null;
  if (isStuck) campaign(state, ctx, settings);
}

// Checkpoints: after a checkpoint, all nodes have learned the same commands, and histories start empty again. A
// snapshot can replace the earlier commands. Nodes that were disconnected catch up era by era.

const firstEra = ({ snapshot }: State): number => snapshot?.era ?? 1;

/** The maximum number of eras to send at a time. The receiver then requests more. */
const BATCH = 20;

/** Sends a node that has fallen behind the commands of this era and later ones, and the snapshot if it is newer. */
export function teach(state: State, to: NodeId, from: number, ctx: Ctx): void {
  const { snapshot, era, learnt } = state;
  if (snapshot !== null && from < snapshot.era) ctx.send(to, { type: "snapshot", ...snapshot });
  const first = Math.max(from, firstEra(state));
  const last = Math.min(era, first + BATCH);
  for (let of = first; of < last; of++) {
    const commands = state.finished[of - firstEra(state)]?.commands ?? [];
    ctx.send(to, { type: "learnt", era: of, commands, isOver: true });
  }
  if (last === era && learnt.length > 0) ctx.send(to, { type: "learnt", era, commands: learnt, isOver: false });
}

/**
 * Learns the commands of an era from another node. Their order is correct for interfering commands. Commands already
 * learned here keep their order.
 */
export function learnTaught(state: State, era: number, commands: History, ctx: Ctx): void {
  if (era !== state.era) return; // Already known, or after a gap.
  learn(state, commands, ctx);
}

/** Replaces the state with a snapshot of a later era. */
export function install(state: State, snapshot: Snapshot, ctx: Ctx): void {
  if (snapshot.era <= state.era) return; // `learnt` messages contain whole eras.
  const { era, base, learnt, index, latest } = snapshot;
  Object.assign(state, { era, base, learnt: [], latest: { ...latest }, vote: null, heard: {}, finished: [], snapshot });
  relearn(state, learnt);
  ctx.compact(journalOf(state));
  ctx.emit({ type: "installed", index, snapshot: snapshot.snapshot });
}

/**
 * Replaces all commands up to the index with the snapshot, which may end within an era. The commands from that era that
 * it includes are kept, since other nodes may have learned them in a different order.
 */
export function compact(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
  let [era, base] = [firstEra(state), state.snapshot?.base ?? 0];
  const latest: Snapshot["latest"] = { ...state.snapshot?.latest };
  if (index <= (state.snapshot?.index ?? 0) || index > state.base + state.learnt.length) return;
  while (era < state.era && index > base + commandsOf(state, era).length) {
    count(latest, commandsOf(state, era));
    base += commandsOf(state, era).length;
    era += 1;
  }
  const learnt = commandsOf(state, era).slice(0, index - base);
  count(latest, learnt);
  state.finished.splice(0, era - firstEra(state));
  state.snapshot = { index, snapshot, era, base, learnt, latest };
  ctx.compact(journalOf(state));
}

function count(latest: Snapshot["latest"], commands: History): void {
  for (const { client, sequence } of commands)
    if (sequence > 0) latest[client] = Math.max(sequence, latest[client] ?? 0);
}

const commandsOf = (state: State, era: number): Command[] =>
  era === state.era ? state.learnt : (state.finished[era - firstEra(state)]?.commands ?? []);

function journalOf({ snapshot, promised, finished, vote, era }: State): GeneralizedPaxos["record"][] {
  return [
    ...(snapshot === null ? [] : [{ type: "snapshot" as const, ...snapshot }]),
    { type: "promised", ballot: promised },
    ...finished.map(({ commands }) => ({ type: "finished" as const, commands })),
    ...(vote === null ? [] : [{ type: "voted" as const, era, ...vote }]),
  ];
}

/** Emits the leader, the snapshot and all later decisions again. Runs after a restart. */
export function emitAll(state: State, ctx: Ctx): void {
  const { leader, promised, snapshot } = state;
  if (leader !== null) ctx.emit({ type: "led", leader, term: promised.count });
  if (snapshot !== null) ctx.emit({ type: "installed", index: snapshot.index, snapshot: snapshot.snapshot });
  let base = snapshot?.base ?? 0;
  const latest: Snapshot["latest"] = { ...snapshot?.latest };
  for (let era = firstEra(state); era <= state.era; era++) {
    for (const [at, command] of commandsOf(state, era).entries()) {
      const index = base + at + 1;
      const isNew = index > (snapshot?.index ?? 0) && !isCheckpoint(command) && !isDone({ latest }, command);
      if (isNew) ctx.emit({ type: "decided", index, command });
      count(latest, [command]);
    }
    base += commandsOf(state, era).length;
  }
}

/** Restores the commands of a finished era from the journal, in journal order. */
export function replayFinished(state: State, commands: History): void {
  relearn(state, commands);
  finishEra(state);
}

/** Restores a snapshot from the journal. */
export function replaySnapshot(state: State, snapshot: Snapshot): void {
  state.snapshot = snapshot;
  state.era = snapshot.era;
  state.base = snapshot.base;
  state.finished = [];
  state.learnt = [];
  state.latest = { ...snapshot.latest };
  relearn(state, snapshot.learnt);
}

// The acceptor: it promises, accepts the coordinator's histories, and appends the proposers' commands in fast rounds.
// It journals before it sends.

/** Performs phase 1b. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot }); // Always, because an adopted ballot may not have been journaled.
  ctx.send(ballot.node, { type: "promise", ballot, era: state.era, vote: state.vote });
}

/** Performs phase 2b. Commands from the old vote that are not in the new history become pending again. */
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

/**
 * Returns whether the acceptor may accept in phase 2a. In a classic round, the coordinator's history grows. In a fast
 * round, it is the starting point.
 */
export function mayAccept({ vote }: State, round: Round, history: History): boolean {
  if (vote === null || isEarlier(vote.round, round)) return true;
  return isSameRound(vote.round, round) && !isFast(round) && history.length > vote.history.length;
}

/** Votes for the coordinator's history. */
export function accept(state: State, round: Round, history: History, ctx: Ctx, settings: Settings): void {
  cast(state, { round, history: [...history], begun: history.length, closed: false }, ctx, settings);
}

/** Returns the vote that the acceptor may append to. Null if it has none in a fast round of its ballot. */
function openVote(state: State): Vote | null {
  const { vote, promised, open, era } = state;
  if (vote !== null && isSameBallot(vote.round, promised)) return isFast(vote.round) && !vote.closed ? vote : null;
  const isOpen = open !== null && era >= open;
  return isOpen ? { round: { ...promised, step: FAST }, history: [], begun: 0, closed: false } : null;
}

/**
 * Performs phase 2b of a fast round: appends proposed commands. If a command interferes with one that this acceptor has
 * appended but not yet learned, other acceptors may have the two in the reverse order, which is a collision. So the
 * acceptor appends the command and closes the round. Its vote also counts as a promise for the next round, which the
 * coordinator need not request.
 */
function append(state: State, ctx: Ctx, settings: Settings): void {
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

/**
 * Returns whether the command cannot be appended. Nothing may follow a checkpoint, and the length of a history is
 * bounded even without one.
 */
function isFull({ history }: Vote, command: Command, { checkpointEvery }: Settings): boolean {
  if (history.some(isCheckpoint)) return true;
  return history.length >= 2 * checkpointEvery && !isCheckpoint(command);
}

// The learner: the part that a quorum's histories in one round have in common is chosen. Each node learns it in its own
// order.

const isOld = (known: Vote | undefined, { round, history, closed }: Vote): boolean =>
  known !== undefined &&
  (isEarlier(round, known.round) ||
    (isSameRound(round, known.round) &&
      (history.length < known.history.length || (history.length === known.history.length && !closed))));

/** Handles phase 2b at a learner. */
export function hear(state: State, from: NodeId, era: number, vote: Vote, ctx: Ctx, settings: Settings): void {
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

/**
 * Learns chosen commands, in an order that is correct for interfering ones. A checkpoint comes last and ends the era.
 */
function learn(state: State, commands: History, ctx: Ctx): void {
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

/**
 * Returns whether this client's command has been learned, in this era or an earlier one. A client has one command in
 * progress at a time.
 */
export const isDone = ({ latest }: Pick<State, "latest">, { client, sequence }: Command): boolean =>
  sequence > 0 && sequence <= (latest[client] ?? 0);

/**
 * Begins the next era after a checkpoint, with an empty history. Commands that were not chosen are appended in the next
 * era.
 */
function finishEra(state: State): void {
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

/** Adds a command to the pending ones until it is learned. */
export function keep(state: State, command: Command): void {
  const isKnown = contains(state.pending, command) || contains(state.vote?.history ?? [], command);
  const isOver = isCheckpoint(command) ? command.operation !== checkpointOf(state.era) : isDone(state, command);
  if (!isKnown && !isOver && !contains(state.learnt, command)) state.pending.push(command);
}

/** Returns the operation that marks the checkpoint of an era. A checkpoint of an earlier era has no effect. */
const checkpointOf = (era: number): string => `checkpoint ${era}`;

function relearn(state: State, commands: History): void {
  for (const command of commands) if (!contains(state.learnt, command)) note(state, command);
}

/** Returns the number of commands that this node has learned. */
export const progress = ({ base, learnt }: State): number => base + learnt.length;
