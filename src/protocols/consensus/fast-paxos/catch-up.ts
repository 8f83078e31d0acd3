/** Nodes that have been away are told what was chosen: from the log, or by a snapshot if that has been cut. */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { votesOf } from "./acceptor.ts";
import { advance, learn } from "./learner.ts";
import type { Ctx } from "./options.ts";
import { BATCH, type FastPaxos, type State, type Value } from "./vocabulary.ts";

/** Where the log that is kept begins. */
const baseOf = ({ snapshot }: State): number => snapshot?.index ?? 0;

export function teach(state: State, to: NodeId, from: number, ctx: Ctx): void {
  const base = baseOf(state);
  if (state.snapshot !== null && from <= base) ctx.send(to, { type: "snapshot", ...state.snapshot });
  const first = Math.max(from, base + 1);
  if (first > state.upTo) return;
  ctx.send(to, { type: "chosen", from: first, values: state.log.slice(first - base - 1, first - base - 1 + BATCH) });
}

export function learnAll(state: State, teacher: NodeId, first: number, values: readonly Value[], ctx: Ctx): void {
  if (first > state.upTo + 1) return; // There is a gap: what is between is lost, or still to come.
  for (const [at, value] of values.entries()) learn(state, first + at, value, ctx);
  if (values.length === BATCH) ctx.send(teacher, { type: "catchUp", from: state.upTo + 1 });
}

export function install(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
  if (index <= state.upTo) return;
  state.upTo = index;
  state.snapshot = { index, snapshot };
  state.log = [];
  for (const byInstance of [state.votes, state.learnt, state.chosen])
    for (const instance of Object.keys(byInstance).map(Number)) if (instance <= index) delete byInstance[instance];
  ctx.compact(journalOf(state));
  ctx.emit({ type: "installed", index, snapshot });
  advance(state, ctx);
}

/** The snapshot stands for all up to its index: the log forgets that. */
export function compact(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
  const base = baseOf(state);
  if (index <= base || index > state.upTo) return;
  state.log.splice(0, index - base);
  state.snapshot = { index, snapshot };
  ctx.compact(journalOf(state));
}

function journalOf(state: State): FastPaxos["record"][] {
  const { snapshot, promised, log, chosen } = state;
  const base = baseOf(state);
  return [
    ...(snapshot === null ? [] : [{ type: "snapshot" as const, ...snapshot }]),
    { type: "promised", ballot: promised },
    ...log.map((value, at) => ({ type: "chosen" as const, instance: base + 1 + at, value })),
    ...Object.entries(chosen).map(([instance, value]) => ({
      type: "chosen" as const,
      instance: Number(instance),
      value,
    })),
    ...votesOf(state).map((cast) => ({ type: "voted" as const, ...cast })),
  ];
}

/** What a node knows when it starts again. */
export function emitAll(state: State, ctx: Ctx): void {
  if (state.leader !== null) ctx.emit({ type: "led", leader: state.leader, term: state.promised.count });
  if (state.snapshot !== null) ctx.emit({ type: "installed", ...state.snapshot });
  const base = baseOf(state);
  state.log.forEach((command, at) => {
    if (command !== null) ctx.emit({ type: "decided", index: base + 1 + at, command });
  });
}
