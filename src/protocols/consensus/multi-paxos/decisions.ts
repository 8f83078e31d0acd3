/** The acceptor's journal and the learner: promises, accepted proposals, decisions, and their compaction. */

import type { Context, NodeId } from "../../../core/protocol.ts";
import { MAX_SNAPSHOT_BYTES, type Members, snapshotOf } from "../family/replicated-log.ts";
import {
  type Ballot,
  configurationAt,
  isAuxiliary,
  isBelow,
  isSame,
  type Leader,
  type MultiPaxos,
  type Proposal,
  type Settings,
  type SlotProposal,
  type Snapshot,
  type State,
} from "./vocabulary.ts";

// Splits texts that are too long for one message or record into fragments.

/**
 * The maximum length of a fragment in UTF-16 code units. Each takes at most three bytes. Several fragments fit in a
 * frame.
 */
const FRAGMENT_CHARS = 65_536;
/** The maximum size of a fragment in bytes of UTF-8. */
export const MAX_FRAGMENT_BYTES = 3 * FRAGMENT_CHARS;

/** Returns the fragment at an offset. It never splits a surrogate pair, because half a pair cannot be encoded. */
function fragmentAt(text: string, offset: number): string {
  const end = offset + FRAGMENT_CHARS;
  const last = text.charCodeAt(end - 1);
  const isTorn = end < text.length && last >= 0xd8_00 && last < 0xdc_00;
  return text.slice(offset, isTorn ? end - 1 : end);
}

function fragments(text: string): string[] {
  const found: string[] = [];
  for (let offset = 0; offset < text.length; offset += (found.at(-1) as string).length)
    found.push(fragmentAt(text, offset));
  return found;
}

/** Returns as many of the first items as fit in a fragment, but at least one. */
export function batch<T>(items: readonly T[], chars: (item: T) => number): T[] {
  let sum = 0;
  const end = items.findIndex((item, at) => {
    sum += chars(item);
    return at > 0 && sum > FRAGMENT_CHARS;
  });
  return end === -1 ? [...items] : items.slice(0, end);
}

/** Promises a ballot. The promise is durable before the answer is sent. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  if (isSame(state.promised, ballot)) return;
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot });
}

/** Accepts a proposal. This includes a promise, so one record is enough. */
export function accept(state: State, slot: number, proposal: Proposal, ctx: Ctx): void {
  raise(state, proposal.ballot);
  state.log[slot] = proposal;
  ctx.persist({ type: "accepted", slot, ...proposal, decided: state.decided });
}

/** Learns a decision from another node. It replaces any proposal that this node accepted for the slot. */
function learn(state: State, slot: number, proposal: Proposal, ctx: Ctx): void {
  state.log[slot] = proposal;
  ctx.persist({ type: "accepted", slot, ...proposal, decided: slot });
}

/** Raises the promised ballot. It never decreases. */
export function raise(state: State, ballot: Ballot): void {
  state.round = Math.max(state.round, ballot.round);
  if (isBelow(state.promised, ballot)) state.promised = ballot;
}

/** Marks slots up to `decided` as decided, as far as their values are known here. */
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
 * Handles the leader's notice of decided slots. A ballot has only one proposal per slot, so a value accepted in the
 * leader's ballot is the decided one. A value accepted in an earlier ballot may differ from it.
 */
export function hear(state: State, ballot: Ballot, decided: number, settings: Settings, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return; // An auxiliary keeps its slots until it receives `forget`.
  const before = state.decided;
  const isKnown = (slot: number): boolean => state.log[slot] !== undefined && isSame(state.log[slot].ballot, ballot);
  while (state.decided < decided && isKnown(state.decided + 1)) decideUpTo(state, state.decided + 1, settings);
  tell(state, before, ctx);
}

/** Passes the slots decided after `after` to the state machine, and serves the reads that waited for them. */
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

/** Passes the snapshot to the state machine, and reports the members in effect after it. */
export function tellSnapshot(state: State, { index, text }: Snapshot, ctx: Ctx): void {
  ctx.emit({ type: "installed", index, snapshot: snapshotOf(text) });
  tellMembers(configurationAt(state, index + 1), ctx);
}

/** Answers reads whose index has been decided at this node. */
export function serveReads(state: State, ctx: Ctx): void {
  for (const { read, index } of state.reads) if (index <= state.decided) ctx.emit({ type: "readable", read });
  state.reads = state.reads.filter(({ index }) => index > state.decided);
}

/**
 * Replaces all slots up to the index with the state machine's snapshot. Slots more than `keep` below it are dropped.
 */
export function cut(state: State, index: number, text: string, settings: Settings, ctx: Ctx): void {
  if (index > state.decided || index <= (state.snapshot?.index ?? 0)) return; // Not yet decided, or not newer.
  const configurations = state.configurations.filter(({ from }) => from <= index + settings.window);
  const inEffect = configurationAt(state, index + 1);
  state.snapshot = { index, text, configurations: configurations.filter(({ from }) => from >= inEffect.from) };
  state.configurations = state.configurations.filter(({ from }) => from >= inEffect.from);
  forgetUpTo(state, index - settings.keep);
  rewrite(state, ctx);
}

/** Installs a snapshot from a node that is ahead of this one. */
function install(state: State, snapshot: Snapshot, ctx: Ctx): void {
  state.snapshot = snapshot;
  state.configurations = [...snapshot.configurations];
  state.decided = snapshot.index;
  forgetUpTo(state, snapshot.index);
  rewrite(state, ctx);
  tellSnapshot(state, snapshot, ctx);
  serveReads(state, ctx);
}

/** Drops the slots up to the index at an auxiliary, because all main nodes know them. */
export function forget(state: State, index: number, ctx: Ctx): void {
  state.decided = index;
  forgetUpTo(state, index);
  rewrite(state, ctx);
}

function forgetUpTo(state: State, index: number): void {
  for (const slot of Object.keys(state.log).map(Number)) if (slot <= index) delete state.log[slot];
}

/** Replaces the journal with the snapshot, the promise, and all proposals in the log, accepted or decided. */
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

// Catching up: a node that has missed decisions requests them, one fragment at a time. It receives slots from the log,
// or the snapshot if the log no longer has them.

type Message<K extends MultiPaxos["message"]["type"]> = Extract<MultiPaxos["message"], { type: K }>;

/** Returns an upper bound on the length of the proposal in a message. */
export const charsOf = ({ value }: SlotProposal): number =>
  64 +
  (value.type === "command" ? value.command.operation.length : 0) +
  (value.type === "members" ? 16 * (value.voters.length + value.learners.length) : 0);

/** Requests decided entries, or the next chunk of a snapshot. */
export function askToCatchUp(state: State, from: NodeId, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return;
  const { decided, incoming } = state;
  const { index, text } = incoming ?? { index: 0, text: "" };
  ctx.send(from, { type: "catchUp", decided, index, offset: text.length });
}

/** Sends decided entries, or a chunk of the snapshot that replaces them. */
export function answerCatchUp(
  state: State,
  to: NodeId,
  { decided, index, offset }: Message<"catchUp">,
  ctx: Ctx,
): void {
  if (decided >= state.decided) return; // The node is not behind this one.
  if (state.log[decided + 1] !== undefined) return sendEntries(state, to, decided, ctx);
  const { snapshot } = state;
  if (snapshot === null || snapshot.index <= decided) return; // This is an auxiliary that has dropped the slot.
  const at = index === snapshot.index && offset <= snapshot.text.length ? offset : 0;
  const text = fragmentAt(snapshot.text, at);
  const isLast = at + text.length === snapshot.text.length;
  const { configurations } = snapshot;
  ctx.send(to, { type: "chunk", index: snapshot.index, offset: at, text, isLast, configurations });
}

function sendEntries(state: State, to: NodeId, after: number, ctx: Ctx): void {
  const decided: SlotProposal[] = [];
  for (let slot = after + 1; slot <= state.decided && decided.length < MAX_ENTRIES; slot++) {
    const proposal = state.log[slot];
    if (proposal === undefined) break;
    decided.push({ slot, ...proposal });
  }
  ctx.send(to, { type: "learn", decided: state.decided, entries: batch(decided, charsOf) });
}

/** The maximum number of entries in one message. */
export const MAX_ENTRIES = 512;

/** Learns the next slots from the entries in a message. Skips known slots and those after a gap. */
export function takeEntries(state: State, from: NodeId, message: Message<"learn">, settings: Settings, ctx: Ctx): void {
  const before = state.decided;
  for (const { slot, ballot, value } of message.entries) {
    if (slot !== state.decided + 1) continue;
    learn(state, slot, { ballot, value }, ctx);
    decideUpTo(state, slot, settings);
  }
  tell(state, before, ctx);
  const isNews = state.decided > before || message.entries.length === 0; // Otherwise late or duplicated.
  if (isNews && state.decided < message.decided) askToCatchUp(state, from, ctx);
}

/** Receives a chunk of a snapshot. Installs the snapshot once the last chunk has arrived. */
export function takeChunk(state: State, from: NodeId, message: Message<"chunk">, ctx: Ctx): void {
  const { index, offset, text, isLast, configurations } = message;
  if (index <= state.decided || configurations.length === 0) return; // Already known.
  const before = offset === 0 ? "" : state.incoming?.index === index ? state.incoming.text : null;
  // Not the next chunk.
  if (before === null || before.length !== offset || offset + text.length > MAX_SNAPSHOT_BYTES) return;
  state.incoming = { index, text: before + text };
  if (!isLast) return askToCatchUp(state, from, ctx);
  const whole = state.incoming.text;
  state.incoming = null;
  install(state, { index, text: whole, configurations }, ctx);
}

// The role of a node (leader, follower or candidate), and the leader that it is bound to.

export type Ctx = Context<MultiPaxos>;

/** Binds this node: it promises to no other node until the timer expires. The leader's lease relies on that. */
export function bind(state: State, { boundsMs }: Settings, ctx: Ctx): void {
  state.isBound = true;
  ctx.cancelTimer("election");
  ctx.setTimer("bound", boundsMs);
}

/** Follows the leader of this ballot. */
export function follow(state: State, leader: NodeId, ballot: Ballot, settings: Settings, ctx: Ctx): void {
  if (state.role.is === "follower" && state.leader === leader) return;
  leave(state, ctx);
  bind(state, settings, ctx);
  see(state, leader, ballot.round, ctx);
  for (const command of state.waiting.splice(0)) ctx.send(leader, { type: "forward", command });
}

/** Ends a candidacy or leadership. */
export function leave(state: State, ctx: Ctx): void {
  if (state.role.is === "follower") return;
  for (const timer of ["election", "heartbeat", "leaseEven", "leaseOdd"] as const) ctx.cancelTimer(timer);
  state.role = { is: "follower" };
}

/** Reports the leader if it has changed. */
export function see(state: State, leader: NodeId | null, term: number, ctx: Ctx): void {
  if (state.leader === leader) return;
  state.leader = leader;
  ctx.emit({ type: "led", leader, term });
}

/**
 * Gives up the leader's lease and asks another node to lead. Nodes bound to this ballot may promise to that node. If no
 * node takes over, this node becomes a candidate again once its own bound expires.
 */
export function handOver(state: State, { ballot }: Leader, to: NodeId, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  see(state, null, state.promised.round, ctx);
  bind(state, settings, ctx);
  ctx.send(to, { type: "takeOver", ballot });
}

/**
 * Ends a candidacy or leadership without a known successor. The node becomes a candidate again if no leader sends
 * anything.
 */
export function stepDown(state: State, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  see(state, null, state.promised.round, ctx);
  ctx.setTimer("election", settings.backOff);
}

/** Performs phase 1b at a node that may itself be a candidate or leader. */
export function yieldTo(state: State, ballot: Ballot, settings: Settings, ctx: Ctx): void {
  leave(state, ctx);
  promise(state, ballot, ctx);
  if (state.leader !== ballot.node) see(state, null, ballot.round, ctx);
  bind(state, settings, ctx);
}
