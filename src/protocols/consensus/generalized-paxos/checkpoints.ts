/**
 * Checkpoints: where all nodes have learnt the same, histories begin anew, snapshots can stand for what was before, and nodes that have
 * been away are told era by era.
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import type { History } from "./histories.ts";
import { isCheckpoint } from "./interference.ts";
import { finishEra, isDone, learn, relearn } from "./learner.ts";
import type { Ctx } from "./options.ts";
import type { GeneralizedPaxos, Snapshot, State } from "./vocabulary.ts";

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
