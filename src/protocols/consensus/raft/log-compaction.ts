/** Log compaction (§7): what a snapshot stands for is forgotten, and who needs it is sent the snapshot, chunk by chunk. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { chunkAt } from "../family/chunks.ts";
import { MAX_SNAPSHOT_BYTES } from "../family/replicated-log.ts";
import { batchFrom, lastIndex, termAt } from "./log.ts";
import { configurationAt } from "./membership-changes.ts";
import { MAX_BATCH_ENTRIES, MAX_CHUNK_CHARS, type RaftOptions } from "./options.ts";
import { tellMembers } from "./safety.ts";
import type { Follower, Incoming, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;
type Chunk = Extract<Raft["message"], { type: "installSnapshot" }>;
type Record = Raft["record"];

/** The state machine's snapshot takes the place of the log up to `index`, but for the last entries, which others may lack. */
export function compact(state: State, index: number, text: string, options: RaftOptions, ctx: Ctx): void {
  const { log, commitIndex } = state;
  if (index <= state.snapshot.index || index > commitIndex) return; // It has a later one, or it was never told so much.
  if (isSendingSnapshot(state)) return; // A follower would have to begin again; the state machine will have another.
  const { index: _at, ...configuration } = configurationAt(state, index);
  const term = termAt(log, index) as number;
  const offset = Math.max(log.offset, index - options.keptEntries);
  const offsetTerm = termAt(log, offset) as number;
  state.snapshot = { index, term, configuration, text };
  log.entries.splice(0, offset - log.offset);
  log.offset = offset;
  log.offsetTerm = offsetTerm;
  journal(state, options, ctx);
}

/** To somebody who answers: one that is gone must not keep the log from being cut. */
const isSendingSnapshot = ({ role }: State): boolean =>
  role.is === "leader" &&
  Object.values(role.followers).some(({ sending, isActive }) => sending.is === "snapshot" && isActive);

/** All that a node has to know after a crash takes the place of all that it has journalled. */
function journal({ term, votedFor, snapshot, log }: State, options: RaftOptions, ctx: Ctx): void {
  const { index, term: lastTerm, configuration, text } = snapshot;
  const { offset, offsetTerm } = log;
  const records: Record[] = [
    { type: "voted", term, votedFor },
    { type: "snapshot", index, term: lastTerm, configuration, offset, offsetTerm },
  ];
  for (let at = 0; at < text.length; ) {
    const chunk = chunkAt(text, at, MAX_CHUNK_CHARS);
    records.push({ type: "snapshotText", text: chunk });
    at += chunk.length;
  }
  for (let at = offset + 1; at <= lastIndex(log); ) {
    const entries = batchFrom(log, at, MAX_BATCH_ENTRIES, options.maxBatchChars);
    records.push({ type: "appended", entries });
    at += entries.length;
  }
  ctx.compact(records);
}

/** One chunk at a time: the next is sent when this one has been received. */
export function sendChunk(state: State, to: NodeId, follower: Follower, options: RaftOptions, ctx: Ctx): void {
  const { index, term: lastTerm, configuration, text } = state.snapshot;
  const { sending } = follower;
  const position = sending.is === "snapshot" && sending.index === index ? sending.position : 0;
  follower.sending = { is: "snapshot", index, position };
  const chunk = chunkAt(text, position, options.maxChunkChars);
  const isLast = position + chunk.length >= text.length;
  const { term } = state;
  ctx.send(to, { type: "installSnapshot", term, index, lastTerm, configuration, position, text: chunk, isLast });
}

/** @returns what has come so far, or null if this chunk is not the next one. */
function received(incoming: Incoming | null, chunk: Chunk): Incoming | null {
  const { index, lastTerm: term, position, text } = chunk;
  const isSame = incoming?.index === index && incoming.term === term;
  if (!isSame) return position === 0 ? { index, term, text } : null;
  if (incoming.text.length !== position || position + text.length > MAX_SNAPSHOT_BYTES) return null;
  return { ...incoming, text: incoming.text + text };
}

/** The whole snapshot is there. What of the log comes after it is kept if the log has its last entry (§7). */
function install(state: State, chunk: Chunk, text: string, options: RaftOptions, ctx: Ctx): void {
  const { index, lastTerm: term, configuration } = chunk;
  const { log } = state;
  const isInLog = termAt(log, index) === term;
  const rest = isInLog ? log.entries.slice(index - log.offset) : [];
  state.snapshot = { index, term, configuration, text };
  state.log = { offset: index, offsetTerm: term, entries: rest };
  if (!isInLog || state.configuration.index <= index) state.configuration = { ...configuration, index };
  state.commitIndex = index;
  journal(state, options, ctx);
  tellSnapshot(state, ctx);
}

/** To the state machine, and who the members were at its end. */
export function tellSnapshot({ snapshot }: State, ctx: Ctx): void {
  const { index, text, configuration } = snapshot;
  ctx.emit({ type: "installed", index, snapshot: text });
  tellMembers(configuration, ctx);
}

/** At a follower. What it has already is not asked for again. */
export function receiveChunk(state: State, from: NodeId, chunk: Chunk, options: RaftOptions, ctx: Ctx): void {
  const { role, term } = state;
  const { index } = chunk;
  if (role.is !== "follower" || chunk.configuration.voters.length === 0) return; // It follows the sender, and a liar's is no snapshot.
  if (index <= state.commitIndex) return ctx.send(from, { type: "appended", term, matchIndex: state.commitIndex });
  const incoming = received(role.incoming, chunk);
  const isWhole = chunk.isLast && incoming !== null;
  role.incoming = isWhole ? null : (incoming ?? role.incoming);
  if (!isWhole) {
    const position = role.incoming?.index === index ? role.incoming.text.length : 0;
    return ctx.send(from, { type: "chunkReceived", term, index, position });
  }
  install(state, chunk, incoming.text, options, ctx);
  ctx.send(from, { type: "appended", term, matchIndex: index });
}

/** At the leader. A position other than the one that was sent last is the next, or where the follower has to begin again. */
export function noteChunk(
  state: State,
  from: NodeId,
  follower: Follower,
  { index, position }: { index: number; position: number },
  options: RaftOptions,
  ctx: Ctx,
): void {
  const { sending } = follower;
  if (sending.is !== "snapshot" || sending.index !== index || sending.position === position) return; // Late, or a copy.
  if (position >= state.snapshot.text.length) return;
  sending.position = position;
  sendChunk(state, from, follower, options, ctx);
}
