/**
 * Log compaction (§7): a snapshot replaces the entries up to its index. Nodes that need those entries receive it in
 * chunks.
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { MAX_CHUNKS } from "../family/replicated-log.ts";
import { batchFrom, lastIndex, termAt } from "./log.ts";
import { configurationAt } from "./membership-changes.ts";
import { MAX_BATCH_ENTRIES, type RaftOptions } from "./options.ts";
import { tellMembers } from "./safety.ts";
import type { Follower, Incoming, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;
type InstallSnapshot = Extract<Raft["message"], { type: "installSnapshot" }>;
type Record = Raft["record"];

/**
 * Replaces the log up to `index` with a snapshot of the state machine. The last few entries are kept for followers that
 * are slightly behind.
 */
export function compact(state: State, index: number, chunks: Chunk[], options: RaftOptions, ctx: Ctx): void {
  const { log, commitIndex } = state;
  if (chunks.length === 0) return;
  if (index <= state.snapshot.index || index > commitIndex) return; // Already compacted, or not yet committed.
  if (isSendingSnapshot(state)) return; // The state machine takes another snapshot later.
  const { index: _at, ...configuration } = configurationAt(state, index);
  const term = termAt(log, index) as number;
  const offset = Math.max(log.offset, index - options.keptEntries);
  const offsetTerm = termAt(log, offset) as number;
  state.snapshot = { index, term, configuration, chunks };
  log.entries.splice(0, offset - log.offset);
  log.offset = offset;
  log.offsetTerm = offsetTerm;
  journal(state, options, ctx);
}

/** Returns whether a snapshot is being sent to a responsive follower. A crashed follower must not block compaction. */
const isSendingSnapshot = ({ role }: State): boolean =>
  role.is === "leader" &&
  Object.values(role.followers).some(({ sending, isActive }) => sending.is === "snapshot" && isActive);

/** Replaces the whole journal with everything that a node needs after a crash. */
function journal(state: State, options: RaftOptions, ctx: Ctx): void {
  const { term, votedFor, snapshot, log, role } = state;
  const { index, term: lastTerm, configuration, chunks } = snapshot;
  const { offset, offsetTerm } = log;
  const records: Record[] = [
    { type: "voted", term, votedFor },
    { type: "snapshot", index, term: lastTerm, configuration, offset, offsetTerm, chunks },
  ];
  for (let at = offset + 1; at <= lastIndex(log); ) {
    const entries = batchFrom(log, at, MAX_BATCH_ENTRIES, options.maxBatchChars);
    records.push({ type: "appended", entries });
    at += entries.length;
  }
  const received = role.is === "follower" ? (role.incoming?.chunks ?? []) : [];
  for (const chunk of received) records.push({ type: "received", chunk });
  state.hasReceived = received.length > 0;
  ctx.compact(records);
}

/** Sends a chunk of the snapshot. The next chunk is sent after the follower has confirmed this one. */
export function sendChunk(state: State, to: NodeId, follower: Follower, ctx: Ctx): void {
  const { index, term: lastTerm, configuration, chunks } = state.snapshot;
  const { sending } = follower;
  const received = sending.is === "snapshot" && sending.index === index ? sending.received : 0;
  follower.sending = { is: "snapshot", index, received };
  const [chunk, isLast] = [chunks[received] as Chunk, received === chunks.length - 1];
  const { term } = state;
  ctx.send(to, { type: "installSnapshot", term, index, lastTerm, configuration, part: received, chunk, isLast });
}

/** Returns the chunks received so far, including this one. Null if this chunk is not the next one. */
function received(incoming: Incoming | null, message: InstallSnapshot): Incoming | null {
  const { index, lastTerm: term, part, chunk } = message;
  const isSame = incoming?.index === index && incoming.term === term;
  if (!isSame) return part === 0 ? { index, term, chunks: [chunk] } : null;
  if (incoming.chunks.length !== part || part >= MAX_CHUNKS) return null;
  return { ...incoming, chunks: [...incoming.chunks, chunk] };
}

/** Installs a complete snapshot. The rest of the log is kept if the log contains the snapshot's last entry (§7). */
function install(state: State, message: InstallSnapshot, chunks: Chunk[], options: RaftOptions, ctx: Ctx): void {
  const { index, lastTerm: term, configuration } = message;
  const { log } = state;
  const isInLog = termAt(log, index) === term;
  const rest = isInLog ? log.entries.slice(index - log.offset) : [];
  state.snapshot = { index, term, configuration, chunks };
  state.log = { offset: index, offsetTerm: term, entries: rest };
  if (!isInLog || state.configuration.index <= index) state.configuration = { ...configuration, index };
  state.commitIndex = index;
  journal(state, options, ctx);
  tellSnapshot(state, ctx);
}

/** Passes the snapshot to the state machine, and reports the members as of its last entry. */
export function tellSnapshot({ snapshot }: State, ctx: Ctx): void {
  const { index, chunks, configuration } = snapshot;
  ctx.emit({ type: "installed", index, snapshot: chunks });
  tellMembers(configuration, ctx);
}

/**
 * Handles a chunk at a follower. If the follower has already committed the snapshot's entries, it confirms the snapshot
 * immediately.
 */
export function receiveChunk(
  state: State,
  from: NodeId,
  message: InstallSnapshot,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const { role, term } = state;
  const { index, isLast, chunk } = message;
  if (role.is !== "follower" || message.configuration.voters.length === 0) return; // No correct node sends these.
  if (index <= state.commitIndex) return ctx.send(from, { type: "appended", term, matchIndex: state.commitIndex });
  const incoming = received(role.incoming, message);
  if (isLast && incoming !== null) {
    role.incoming = null;
    install(state, message, incoming.chunks, options, ctx);
    return ctx.send(from, { type: "appended", term, matchIndex: index });
  }
  if (incoming !== null) {
    if (message.part === 0 && state.hasReceived) forgetReceived(state, role, options, ctx);
    role.incoming = incoming;
    state.hasReceived = true;
    ctx.persist({ type: "received", chunk }); // The driver can then drop it from memory.
  }
  const count = role.incoming?.index === index ? role.incoming.chunks.length : 0;
  ctx.send(from, { type: "chunkReceived", term, index, received: count });
}

/** Drops the chunks of a snapshot that the leader is no longer sending. */
function forgetReceived(state: State, role: { incoming: Incoming | null }, options: RaftOptions, ctx: Ctx): void {
  role.incoming = null;
  journal(state, options, ctx);
}

/**
 * Handles the answer to a chunk at the leader. Sends the next chunk, or the first one again if the follower has to
 * start over.
 */
export function noteChunk(
  state: State,
  from: NodeId,
  follower: Follower,
  { index, received: count }: { index: number; received: number },
  ctx: Ctx,
): void {
  const { sending } = follower;
  if (sending.is !== "snapshot" || sending.index !== index || sending.received === count) return; // Late or duplicated.
  if (count >= state.snapshot.chunks.length) return;
  sending.received = count;
  sendChunk(state, from, follower, ctx);
}
