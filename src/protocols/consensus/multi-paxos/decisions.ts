/** The acceptor's journal and the learner: what is promised, accepted, decided and told, and what of it is forgotten. */
import type { Context } from "../../../core/protocol.ts";
import { type Members, snapshotOf } from "../family/replicated-log.ts";
import { configurationAt, isAuxiliary } from "./configurations.ts";
import { fragments } from "./fragments.ts";
import type { Settings } from "./options.ts";
import {
  type Ballot,
  isBelow,
  isSame,
  type MultiPaxos,
  type Proposal,
  type Snapshot,
  type State,
} from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;

/** Durable before the answer that depends on it. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  if (isSame(state.promised, ballot)) return;
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot });
}

/** Accepting promises as well: one record is enough. */
export function accept(state: State, slot: number, proposal: Proposal, ctx: Ctx): void {
  raise(state, proposal.ballot);
  state.log[slot] = proposal;
  ctx.persist({ type: "accepted", slot, ...proposal, decided: state.decided });
}

/** What another knows to be decided takes the place of whatever was accepted here. */
export function learn(state: State, slot: number, proposal: Proposal, ctx: Ctx): void {
  state.log[slot] = proposal;
  ctx.persist({ type: "accepted", slot, ...proposal, decided: slot });
}

/** A promise is never taken back. */
export function raise(state: State, ballot: Ballot): void {
  state.round = Math.max(state.round, ballot.round);
  if (isBelow(state.promised, ballot)) state.promised = ballot;
}

/** Slots up to here are decided, as far as they are known here. */
export function decideUpTo(state: State, decided: number, { window }: Settings): void {
  while (state.decided < decided) {
    const proposal = state.log[state.decided + 1];
    if (proposal === undefined) return;
    state.decided += 1;
    const { value } = proposal;
    if (value.type !== "members") continue;
    const { voters, learners } = value;
    state.configurations.push({ from: state.decided + window, voters, learners });
  }
}

/**
 * A leader says what is decided. What this node has accepted from it in the same ballot is what the leader means: there is one
 * proposal for a slot in a ballot. What it has accepted in an earlier one may be something else.
 */
export function hear(state: State, ballot: Ballot, decided: number, settings: Settings, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return; // Keeps what it has accepted until it is told that the main nodes have it.
  const before = state.decided;
  const isKnown = (slot: number): boolean => state.log[slot] !== undefined && isSame(state.log[slot].ballot, ballot);
  while (state.decided < decided && isKnown(state.decided + 1)) decideUpTo(state, state.decided + 1, settings);
  tell(state, before, ctx);
}

/** Tells the state machine what has been decided after this slot, and serves the reads that have waited for it. */
export function tell(state: State, after: number, ctx: Ctx): void {
  for (let slot = after + 1; slot <= state.decided; slot++) {
    const value = state.log[slot]?.value;
    if (value?.type === "command") ctx.emit({ type: "decided", index: slot, command: value.command });
    const begun = state.configurations.find(({ from }) => from === slot + 1);
    if (begun !== undefined) tellMembers(begun, ctx);
  }
  serveReads(state, ctx);
}

function tellMembers({ voters, learners }: Members, ctx: Ctx): void {
  ctx.emit({ type: "reconfigured", voters, learners });
}

/** To the state machine, and who the members are after it. */
export function tellSnapshot(state: State, { index, text }: Snapshot, ctx: Ctx): void {
  ctx.emit({ type: "installed", index, snapshot: snapshotOf(text) });
  tellMembers(configurationAt(state, index + 1), ctx);
}

export function serveReads(state: State, ctx: Ctx): void {
  for (const { read, index } of state.reads) if (index <= state.decided) ctx.emit({ type: "readable", read });
  state.reads = state.reads.filter(({ index }) => index > state.decided);
}

/** The state machine's snapshot stands for all up to the index: what is further below than `keep` is forgotten. */
export function cut(state: State, index: number, text: string, settings: Settings, ctx: Ctx): void {
  if (index > state.decided || index <= (state.snapshot?.index ?? 0)) return; // Of what is not decided, or older than the last.
  const configurations = state.configurations.filter(({ from }) => from <= index + settings.window);
  const inEffect = configurationAt(state, index + 1);
  state.snapshot = { index, text, configurations: configurations.filter(({ from }) => from >= inEffect.from) };
  state.configurations = state.configurations.filter(({ from }) => from >= inEffect.from);
  forgetUpTo(state, index - settings.keep);
  rewrite(state, ctx);
}

/** Another's snapshot, of more than this node knows. */
export function install(state: State, snapshot: Snapshot, ctx: Ctx): void {
  state.snapshot = snapshot;
  state.configurations = [...snapshot.configurations];
  state.decided = snapshot.index;
  forgetUpTo(state, snapshot.index);
  rewrite(state, ctx);
  tellSnapshot(state, snapshot, ctx);
  serveReads(state, ctx);
}

/** An auxiliary may forget what all main nodes know. */
export function forget(state: State, index: number, ctx: Ctx): void {
  state.decided = index;
  forgetUpTo(state, index);
  rewrite(state, ctx);
}

function forgetUpTo(state: State, index: number): void {
  for (const slot of Object.keys(state.log).map(Number)) if (slot <= index) delete state.log[slot];
}

/** The journal anew: the snapshot, the promise, and all that is still in the log, accepted or decided. */
function rewrite(state: State, ctx: Ctx): void {
  const { snapshot, promised, log, decided } = state;
  const accepted = Object.entries(log).map(
    ([slot, proposal]) => ({ type: "accepted", slot: Number(slot), ...proposal, decided }) as const,
  );
  const saved =
    snapshot === null
      ? [{ type: "forgotten", index: decided } as const]
      : [
          { type: "snapshot", index: snapshot.index, configurations: snapshot.configurations } as const,
          ...fragments(snapshot.text).map((text) => ({ type: "snapshotText", text }) as const),
        ];
  ctx.compact([...saved, { type: "promised", ballot: promised }, ...accepted]);
}
