/** Learning: what a quorum's histories of one round have in common is chosen. Each node learns it in an order of its own. */
import type { NodeId } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import { isEarlier, isSameRound, isStranger, nodesOf } from "../parts/ballots.ts";
import { common, contains, type History } from "./histories.ts";
import { isCheckpoint } from "./interference.ts";
import type { Ctx, Settings } from "./options.ts";
import { isFast, type State, type Vote } from "./vocabulary.ts";

const isOld = (known: Vote | undefined, { round, history, closed }: Vote): boolean =>
  known !== undefined &&
  (isEarlier(round, known.round) ||
    (isSameRound(round, known.round) &&
      (history.length < known.history.length || (history.length === known.history.length && !closed))));

/** Phase 2b arrives at a learner. */
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
