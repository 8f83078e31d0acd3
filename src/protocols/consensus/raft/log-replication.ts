/**
 * Log replication (§5.3): the leader brings the other nodes' logs up to date, in batches and with several messages in
 * flight.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import { nameSuccessor } from "./leadership-transfer.ts";
import { append, batchFrom, charsOf, firstOfTerm, lastIndex, lastOfTerm, take, termAt, truncate } from "./log.ts";
import { sendChunk } from "./log-compaction.ts";
import { endOfChange, hasRemovedItself, membersOf } from "./membership-changes.ts";
import type { RaftOptions } from "./options.ts";
import { commit, commitIndexOf } from "./safety.ts";
import { becomeFollower } from "./server-states.ts";
import type { Entry, Follower, Leader, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;
type AppendEntries = Extract<Raft["message"], { type: "appendEntries" }>;
type Rejected = Extract<Raft["message"], { type: "rejected" }>;

/**
 * Appends a command at the leader, or drops it if a limit on uncommitted entries has been reached. During a leadership
 * transfer, commands wait.
 */
export function propose(state: State, command: Command, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader") return;
  const length = command.operation.length;
  const isFull =
    lastIndex(state.log) - state.commitIndex >= options.maxUncommitted ||
    role.uncommittedChars + length > options.maxUncommittedChars;
  if (isFull) state.dropped += 1;
  else if (role.transfer !== null) wait(state, command, options);
  else appendOwn(state, role, { type: "command", term: state.term, command }, options, ctx);
}

/** Keeps a command until a leader is known. A command beyond the limit is dropped, and its client retries. */
export function wait(state: State, command: Command, { maxWaiting }: RaftOptions): void {
  if (state.waiting.length >= maxWaiting) state.dropped += 1;
  else state.waiting.push(command);
}

/**
 * Appends an entry at the leader. The leader sends it before it journals it, so that its disk and the followers' disks
 * write in parallel (thesis §10.2.1). It counts itself immediately, because the driver holds back all later effects
 * until the record is durable, so no node acts on an entry that is not durable.
 */
export function appendOwn(state: State, role: Leader, entry: Entry, options: RaftOptions, ctx: Ctx): void {
  take(state, [entry]);
  role.uncommittedChars += charsOf(entry);
  if (entry.type === "configuration") meetMembers(state, role, lastIndex(state.log), ctx.self); // It goes to new members, too.
  replicateToAll(state, role, options, ctx);
  ctx.persist({ type: "appended", entries: [entry] });
  role.persisted = lastIndex(state.log);
  commitAgreed(state, options, ctx);
}

/**
 * Replaces the followers with the members of the latest configuration and the future voters. The leader sends new nodes
 * the entries starting at `next`.
 */
export function meetMembers(state: State, role: Leader, next: number, self: NodeId): void {
  const known = role.followers;
  role.followers = {};
  for (const node of [...membersOf(state.configuration), ...(role.catchUp?.newcomers ?? [])])
    if (node !== self) role.followers[node] = known[node] ?? newFollower(next);
}

const newFollower = (next: number): Follower => ({
  next,
  match: 0,
  sending: { is: "probing", isAwaiting: false },
  isOverdue: false,
  isActive: true,
  hasAnswered: true,
});

function replicateToAll(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  for (const node of ctx.peers) {
    const follower = role.followers[node];
    if (follower !== undefined) replicate(state, node, follower, options, ctx);
  }
}

/** Sends the entries that the follower is missing, as far as its window allows. */
export function replicate(state: State, to: NodeId, follower: Follower, options: RaftOptions, ctx: Ctx): void {
  const { log } = state;
  if (follower.sending.is === "snapshot") return; // The answer to a chunk triggers the next one.
  if (follower.next <= log.offset) return sendChunk(state, to, follower, ctx);
  while (follower.next <= lastIndex(log) && isOpen(follower, options)) {
    const entries = batchFrom(log, follower.next, options.maxBatchEntries, options.maxBatchChars);
    sendEntries(state, to, follower, entries, ctx);
  }
}

const isOpen = ({ sending }: Follower, { maxInFlight }: RaftOptions): boolean =>
  sending.is === "probing" ? !sending.isAwaiting : sending.is === "pipelining" && sending.inFlight.length < maxInFlight;

function sendEntries(state: State, to: NodeId, follower: Follower, entries: Entry[], ctx: Ctx): void {
  const { term, log, commitIndex } = state;
  const previousIndex = follower.next - 1;
  const previousTerm = termAt(log, previousIndex) as number;
  ctx.send(to, { type: "appendEntries", term, previousIndex, previousTerm, entries, commitIndex });
  const { sending } = follower;
  if (sending.is === "probing") sending.isAwaiting = true;
  if (sending.is !== "pipelining") return;
  follower.next += entries.length;
  sending.inFlight.push(follower.next - 1);
}

/** Appends entries from the leader, or reports where the logs diverge. */
export function receiveEntries(state: State, from: NodeId, message: AppendEntries, ctx: Ctx): void {
  const { log, term } = state;
  const { previousIndex, previousTerm, entries } = message;
  const found = termAt(log, previousIndex);
  if (previousIndex >= log.offset && found !== previousTerm) {
    const conflictIndex = found === null ? lastIndex(log) + 1 : firstOfTerm(log, previousIndex);
    return ctx.send(from, { type: "rejected", term, previousIndex, conflictTerm: found, conflictIndex });
  }
  const matchIndex = previousIndex + entries.length;
  if (wouldEraseCommitted(state, previousIndex, entries) || !entries.every(isSensible)) return;
  const known = entries.filter(({ term: its }, at) => has(log, previousIndex + 1 + at, its)).length;
  if (known < entries.length) {
    const last = previousIndex + known;
    if (lastIndex(log) > last) truncate(state, last, ctx);
    append(state, entries.slice(known), ctx);
  }
  commit(state, Math.min(message.commitIndex, matchIndex), ctx);
  ctx.send(from, { type: "appended", term, matchIndex });
}

/**
 * Returns whether the log has this entry, or a snapshot has replaced it. A log has no gaps, so the known entries come
 * first.
 */
const has = (log: Log, index: number, term: number): boolean => index <= log.offset || termAt(log, index) === term;

/**
 * Returns whether these entries would replace a committed one. No correct leader sends such entries, because its log
 * contains every committed entry.
 */
const wouldEraseCommitted = ({ log, commitIndex }: State, previousIndex: number, entries: readonly Entry[]): boolean =>
  entries.some((entry, at) => {
    const index = previousIndex + 1 + at;
    return index > log.offset && index <= commitIndex && termAt(log, index) !== entry.term;
  });

/**
 * Returns whether the entry is valid. A configuration without voters could not decide anything, and no correct leader
 * sends one.
 */
const isSensible = (entry: Entry): boolean =>
  entry.type !== "configuration" ||
  (entry.configuration.voters.length > 0 && entry.configuration.outgoing?.length !== 0);

/** Records how much of the log the follower has appended. Ignores a claim beyond the end of the leader's log. */
export function noteAppended(state: State, role: Leader, from: NodeId, matchIndex: number): void {
  const follower = role.followers[from];
  if (follower === undefined || matchIndex > lastIndex(state.log)) return;
  follower.match = Math.max(follower.match, matchIndex);
  follower.next = Math.max(follower.next, follower.match + 1);
  const { sending } = follower;
  if (sending.is === "pipelining") sending.inFlight = sending.inFlight.filter((last) => last > matchIndex);
  else if (sending.is === "probing" || matchIndex >= sending.index)
    follower.sending = { is: "pipelining", inFlight: [] };
}

/**
 * Moves back to an earlier entry after a rejection. It skips all entries of the conflicting term, because the logs
 * cannot match within that term.
 */
export function noteRejected(state: State, follower: Follower, rejected: Rejected): void {
  if (isAnswered(follower, rejected)) return;
  const { previousIndex, conflictTerm, conflictIndex } = rejected;
  const shared = conflictTerm === null ? null : lastOfTerm(state.log, conflictTerm, previousIndex);
  const next = shared === null ? conflictIndex : shared + 1;
  follower.next = Math.max(follower.match + 1, Math.min(next, previousIndex));
  follower.sending = { is: "probing", isAwaiting: false };
}

/**
 * Returns whether the rejection is outdated: the follower has appended the entries by now, or the leader no longer
 * sends them.
 */
const isAnswered = ({ match, next, sending }: Follower, { previousIndex }: Rejected): boolean =>
  previousIndex <= match ||
  sending.is === "snapshot" ||
  (sending.is === "probing" ? previousIndex !== next - 1 : previousIndex >= next);

/**
 * Resends the messages that were in flight at the last heartbeat and are still unanswered. They are considered lost.
 */
export function sendAgain(state: State, to: NodeId, follower: Follower, options: RaftOptions, ctx: Ctx): void {
  follower.isOverdue = false;
  if (follower.sending.is === "snapshot") return sendChunk(state, to, follower, ctx);
  if (follower.sending.is === "pipelining") follower.next = follower.match + 1;
  follower.sending = { is: "probing", isAwaiting: false };
  replicate(state, to, follower, options, ctx);
}

/** Returns whether the leader is waiting for an answer from the follower. */
export const isAwaited = ({ sending }: Follower): boolean =>
  sending.is === "snapshot" || (sending.is === "probing" ? sending.isAwaiting : sending.inFlight.length > 0);

/**
 * Commits the entries that a quorum has, and takes the steps that depend on them: the leader continues a configuration
 * change, and steps down if it is no longer a member.
 */
export function commitAgreed(state: State, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader") return;
  const agreed = commitIndexOf(state, role, ctx.self);
  if (agreed === state.commitIndex) return;
  const before = state.commitIndex;
  commit(state, agreed, ctx);
  if (options.tellsCommit)
    for (const node of ctx.peers) if ((role.followers[node]?.match ?? 0) > before) tellCommit(state, role, node, ctx);
  const end = endOfChange(state);
  if (end !== null) return appendOwn(state, role, end, options, ctx);
  if (!hasRemovedItself(state, ctx.self)) return;
  nameSuccessor(state, role, ctx);
  becomeFollower(state, null, options, ctx);
}

/** Sends the commit index to a follower, up to the part of its log that is known to equal the leader's. */
export function tellCommit({ term, commitIndex }: State, role: Leader, to: NodeId, ctx: Ctx): void {
  const match = role.followers[to]?.match ?? 0;
  ctx.send(to, { type: "committed", term, commitIndex: Math.min(commitIndex, match) });
}
