/**
 * The coordinator: phase 1, then a history that extends whatever may have been chosen, with all commands that it knows of: so those that
 * interfere get their order. Afterwards acceptors append by themselves, until they collide.
 */
import type { NodeId } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import {
  type Ballot,
  follow,
  isSameBallot,
  isSameRound,
  isStranger,
  nodesOf,
  type Round,
  raise,
  stepDown,
} from "../parts/ballots.ts";
import {
  accept,
  append,
  checkpointOf,
  finishEra,
  isDone,
  keep,
  learn,
  progress,
  relearn,
} from "./generalized-paxos.ts";
import {
  CLASSIC,
  type Ctx,
  contains,
  FAST,
  type GeneralizedPaxos,
  type History,
  isCheckpoint,
  type Promised,
  provedSafe,
  type Settings,
  type Snapshot,
  type State,
  type Vote,
} from "./vocabulary.ts";

/** Phase 1a. It promises first, so its journal keeps the ballot from being used again. */
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

/** Phase 2a for this era, once a classic quorum has promised; first it learns of the eras that others know to be over. */
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

/** What is safe, and then all that anybody has appended or proposed; after a checkpoint, nothing. */
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

/** Phase 2a. It votes first: what it has asked for in a round stands in its journal, so it cannot ask for something else. */
function ask(state: State, round: Round, history: History, ctx: Ctx, settings: Settings): void {
  const message = phase2a(state, round, history);
  accept(state, round, history, ctx, settings);
  ctx.broadcast(message);
}

/** From the classic round, in which nobody but itself appends, straight on. */
function openFastRound(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator, open, vote } = state;
  if (coordinator.is !== "leading" || open !== null) return;
  if (coordinator.joined.length < settings.quorumsOf(nodesOf(ctx)).fast) return;
  state.open = state.era + 1;
  const isUnderWay = vote !== null && isSameBallot(vote.round, state.promised);
  ask(state, { ...state.promised, step: FAST }, isUnderWay ? vote.history : [], ctx, settings);
}

/** Once a quorum has closed the round, their votes are its promises: the next one begins without phase 1. */
function reopen(state: State, ctx: Ctx, settings: Settings): void {
  const { promised, vote } = state;
  const round = vote !== null && isSameBallot(vote.round, promised) ? vote.round : { ...promised, step: FAST };
  const closed = Object.values(state.heard).filter((each) => each.closed && isSameRound(each.round, round));
  if (closed.length < settings.quorumsOf(nodesOf(ctx)).classic) return;
  pickAndAsk(state, { ...promised, step: round.step + 2 }, closed, ctx, settings);
}

/** While too few acceptors are there for fast rounds, it appends by itself. */
function appendClassic(state: State, ctx: Ctx, settings: Settings): void {
  if (state.open !== null || state.pending.length === 0) return;
  const round = { ...state.promised, step: CLASSIC };
  const history = state.vote !== null && isSameRound(state.vote.round, round) ? state.vote.history : state.learnt;
  const longer = withRest(history, state.pending, settings);
  if (longer.length > history.length) ask(state, round, longer, ctx, settings);
}

/** What may follow from whatever has been learnt or heard. */
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

/** Asks for a checkpoint where the history has become long. */
function checkpoint(state: State, ctx: Ctx, { checkpointEvery }: Settings): void {
  const history = state.vote?.history ?? [];
  if (history.length < checkpointEvery || [...history, ...state.pending].some(isCheckpoint)) return;
  const command = { client: ctx.self, sequence: 0, operation: checkpointOf(state.era) };
  keep(state, command);
  ctx.broadcast({ type: "propose", command });
}

const hangs = ({ vote, pending, learnt }: State): boolean =>
  pending.length > 0 || (vote !== null && vote.history.length > learnt.length);

/** Where commands hang, the coordinator waits a while, and then begins a higher ballot. */
function watch(state: State, ctx: Ctx, { recoverMs }: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || coordinator.watched !== null || !hangs(state)) return;
  coordinator.watched = progress(state);
  ctx.setTimer("recover", recoverMs);
}

export function unhang(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading") return;
  const isStuck = coordinator.watched === progress(state) && hangs(state);
  coordinator.watched = null;
  if (isStuck) campaign(state, ctx, settings);
}

// Checkpoints: where all nodes have learnt the same, histories begin anew, snapshots can stand for what was before, and nodes that have
// been away are told era by era.

const firstEra = ({ snapshot }: State): number => snapshot?.era ?? 1;

/** At most so many eras to one node at a time: it asks for more. */
const BATCH = 20;

/** Tells a node what it lacks from an era on. */
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

/** A taught order is right for those that interfere; what this node has learnt already stays in its own. */
export function learnTaught(state: State, era: number, commands: History, ctx: Ctx): void {
  if (era !== state.era) return; // Known, or what is between is lost.
  learn(state, commands, ctx);
}

export function install(state: State, snapshot: Snapshot, ctx: Ctx): void {
  if (snapshot.era <= state.era) return; // Eras are told whole.
  const { era, base, learnt, index, latest } = snapshot;
  Object.assign(state, { era, base, learnt: [], latest: { ...latest }, vote: null, heard: {}, finished: [], snapshot });
  relearn(state, learnt);
  ctx.compact(journalOf(state));
  ctx.emit({ type: "installed", index, snapshot: snapshot.snapshot });
}

/** The snapshot may be taken within an era: what it holds of that is kept, since other nodes may have learnt it in another order. */
export function compact(state: State, index: number, snapshot: string, ctx: Ctx): void {
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

/** What a node knows when it starts again. */
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

/** From the journal, in its order. */
export function replayFinished(state: State, commands: History): void {
  relearn(state, commands);
  finishEra(state);
}

export function replaySnapshot(state: State, snapshot: Snapshot): void {
  state.snapshot = snapshot;
  state.era = snapshot.era;
  state.base = snapshot.base;
  state.finished = [];
  state.learnt = [];
  state.latest = { ...snapshot.latest };
  relearn(state, snapshot.learnt);
}
