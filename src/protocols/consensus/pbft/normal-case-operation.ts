/**
 * Normal-case operation (§4.2): request, pre-prepare, prepare, commit, and execution in the order of sequence numbers.
 */
import { entriesIn } from "../../../core/per-node.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import type { Command } from "../family/replicated-log.ts";
import {
  batchOf,
  commitShape,
  digestOf,
  eased,
  expose,
  isHad,
  isInWindow,
  isOfClient,
  isOfReplica,
  keep,
  keepBatch,
  lengthened,
  prePrepareShape,
  prepareShape,
  replyShape,
  requestShape,
  signersOf,
  slotAt,
  wantedOf,
  watchPending,
} from "./certificates.ts";
import { takeCheckpoint } from "./garbage-collection.ts";
import {
  type Assignment,
  type Ctx,
  commandOf,
  INDICES,
  isPrimary,
  isReplica,
  isSame,
  others,
  type PbftOptions,
  primaryOf,
  quorum,
  type Reply,
  type Request,
  type Slot,
  type State,
  weakQuorum,
} from "./vocabulary.ts";

// Replies to clients (§4.1): directly from the replica on the client's own node, or in a message from each replica.

/**
 * Ends the command in progress. Call this when the client's own replica has executed it, or others have confirmed it.
 */
function noteAnswered(state: State, sequence: number, ctx: Ctx): void {
  if (state.outstanding === null || state.outstanding.request.value.sequence > sequence) return;
  if (!state.outstanding.isSentAgain) state.retransmissions = eased(state.retransmissions);
  state.outstanding = null;
  ctx.cancelTimer("retransmit");
}

/** Sends a reply to a client that is not a replica, and stores it in case the client repeats its request. */
export function sendReply(state: State, { client, sequence, result, index }: Omit<Reply, "view">, ctx: Ctx): void {
  if (isReplica(state, client) || !ctx.peers.includes(client)) return;
  if (sequence < (state.replies[client]?.sequence ?? 0)) return;
  state.replies[client] = { view: state.view, client, sequence, result, index };
  answerAgain(state, client, ctx);
}

function answerAgain(state: State, client: NodeId, ctx: Ctx): void {
  const known = state.replies[client];
  if (known !== undefined)
    ctx.send(client, { type: "reply", reply: sign(ctx, replyShape, { ...known, view: state.view }) });
}

// The client (§4.1). A client on a replica's node trusts that replica, because both are correct or neither is. Any
// other client waits for f + 1 equal replies. If the answer does not arrive in time, a client sends its request to all
// replicas.

/**
 * Sends a command to the primary first, and to all replicas if it is repeated. A replica that has given up a view sends
 * it to all immediately, because others may still be in that view and need the request.
 */
export function propose(state: State, { client, sequence, operation }: Command, options: PbftOptions, ctx: Ctx): void {
  if (client !== ctx.self || sequence <= (state.last[client] ?? 0)) return; // A node signs only as itself.
  if (state.outstanding?.request.value.sequence === sequence) {
    // Otherwise the retransmission timer is running.
    if (options.retransmitMs === 0 || state.outstanding.isSentAgain) askAll(state, options, ctx);
    return;
  }
  const request = sign(ctx, requestShape, { sequence, operation });
  state.outstanding = { request, replies: {}, isSentAgain: false };
  if (options.retransmitMs > 0)
    ctx.setTimer("retransmit", lengthened(options.retransmitMs, state.retransmissions, options));
  if (state.isChanging) sendToAll(state, request, options, ctx);
  else if (isReplica(state, ctx.self)) receiveRequest(state, ctx.self, request, options, ctx);
  else ctx.send(primaryOf(state, state.view), { type: "request", request });
}

/** Sends this node's request to all replicas. */
export function askAll(state: State, options: PbftOptions, ctx: Ctx): void {
  if (state.outstanding === null) return;
  const { request, isSentAgain } = state.outstanding;
  if (!isSentAgain) state.retransmissions += 1;
  state.outstanding.isSentAgain = true;
  sendToAll(state, request, options, ctx);
}

function sendToAll(state: State, request: Signed<Request>, options: PbftOptions, ctx: Ctx): void {
  for (const replica of state.replicas)
    if (replica === ctx.self) receiveRequest(state, replica, request, options, ctx);
    else ctx.send(replica, { type: "request", request });
}

/**
 * Handles a reply at the client. The client needs f + 1 equal replies, because at least one of them is from a correct
 * replica.
 */
export function noteReply(state: State, reply: Signed<Reply>, ctx: Ctx): void {
  const { outstanding } = state;
  const { client, sequence, result, index } = reply.value;
  // A reply to an earlier request.
  if (outstanding === null || client !== ctx.self || sequence !== outstanding.request.value.sequence) return;
  if (!isOfReplica(state, replyShape, reply, ctx)) return;
  outstanding.replies[reply.by] = reply.value;
  const equal = entriesIn(outstanding.replies).filter(([, other]) => other.result === result && other.index === index);
  if (equal.length < weakQuorum(state)) return;
  // At least one of these replicas is correct and in this view or a later one. So the view exists, and the next request
  // goes to its primary.
  state.view = Math.max(state.view, Math.min(...equal.map(([, { view }]) => view)));
  state.last[client] = sequence;
  noteAnswered(state, sequence, ctx);
  ctx.emit({ type: "answered", sequence, result, index });
}

/** Handles a request at a replica. The primary orders it. A backup forwards it and waits for its execution. */
export function receiveRequest(
  state: State,
  from: NodeId,
  request: Signed<Request>,
  options: PbftOptions,
  ctx: Ctx,
): void {
  if (!isReplica(state, ctx.self)) return;
  const { by, value } = request;
  if (value.sequence <= (state.last[by] ?? 0)) {
    if (from === by) answerAgain(state, by, ctx); // The client has missed the reply.
    return;
  }
  const isNew = !state.pending.some((known) => isSameRequest(known.request, request));
  if (isNew) {
    if (!isOfClient(request, ctx)) return;
    addPending(state, request, false);
  }
  if (state.isChanging || isPrimary(state, ctx.self)) return;
  // Forward a request only once. The client sends a repeated request to all replicas, and if every backup forwarded it,
  // the primary would receive it N times.
  if (from === by && (isNew || by === ctx.self)) ctx.send(primaryOf(state, state.view), { type: "request", request });
  watchPending(state, options, ctx);
}

const isSameRequest = (a: Signed<Request>, b: Signed<Request>): boolean =>
  a.by === b.by && a.signature === b.signature && a.value.sequence === b.value.sequence;

/** Adds a pending request. A client has one request in progress at a time, so a later one replaces an earlier one. */
function addPending(state: State, request: Signed<Request>, isAssigned: boolean): void {
  const { by, value } = request;
  const known = state.pending.find((each) => each.request.by === by);
  if (known !== undefined && known.request.value.sequence > value.sequence) return;
  if (known?.request.value.sequence === value.sequence) {
    known.isAssigned ||= isAssigned;
    return;
  }
  state.pending = state.pending.filter((each) => each !== known);
  state.pending.push({ request, isAssigned });
}

/**
 * Assigns sequence numbers to batches of waiting requests, as far as the window allows. Runs at the primary after each
 * step. A batch costs the same for any number of requests, so while one is in flight, only full batches follow it
 * (Castro's thesis, 2001, §5.1.4).
 */
export function assign(state: State, options: PbftOptions, ctx: Ctx): void {
  if (state.isChanging || !isPrimary(state, ctx.self)) return;
  while (isInWindow(state, state.assigned + 1, options)) {
    const { requests, isFull } = nextBatch(state, options);
    const inFlight = state.assigned - state.executed;
    if (requests.length === 0 || inFlight >= (isFull ? options.maxInFlight : 1)) return;
    for (const waiting of state.pending) if (requests.includes(waiting.request)) waiting.isAssigned = true;
    state.assigned += 1;
    const value = { view: state.view, sequence: state.assigned, digest: digestOf(requests) };
    const prePrepare = sign(ctx, prePrepareShape, value);
    accept(state, prePrepare, requests, ctx);
    for (const replica of others(state, ctx)) ctx.send(replica, { type: "prePrepare", prePrepare, requests });
    checkPrepared(state, value.sequence, options, ctx); // A single replica needs no prepares.
  }
}

/** Returns a batch of the requests that have waited longest. */
function nextBatch(state: State, { maxBatch, maxBatchChars }: PbftOptions) {
  const requests: Signed<Request>[] = [];
  let chars = 0;
  for (const { request, isAssigned } of state.pending) {
    if (isAssigned) continue;
    chars += request.value.operation.length;
    if (requests.length > 0 && chars > maxBatchChars) return { requests, isFull: true };
    requests.push(request);
    if (requests.length === maxBatch) return { requests, isFull: true };
  }
  return { requests, isFull: false };
}

/**
 * Accepts this view's only pre-prepare for its sequence number. It is journaled before any message about it is sent.
 */
function accept(state: State, prePrepare: Signed<Assignment>, requests: Signed<Request>[], ctx: Ctx): void {
  const { sequence, digest } = prePrepare.value;
  const slot = slotAt(state, sequence);
  slot.prePrepare = prePrepare;
  keepBatch(slot, digest, requests);
  ctx.persist({ type: "batch", sequence, requests });
  ctx.persist({ type: "prePrepared", prePrepare });
  for (const request of requests)
    if (request.value.sequence > (state.last[request.by] ?? 0)) addPending(state, request, true);
}

/** Handles a pre-prepare at a backup. Any node may forward it, because the primary has signed it. */
export function receivePrePrepare(
  state: State,
  { prePrepare, requests }: { prePrepare: Signed<Assignment>; requests: Signed<Request>[] },
  options: PbftOptions,
  ctx: Ctx,
): void {
  const { by, value } = prePrepare;
  const { view, sequence, digest } = value;
  if (!isReplica(state, ctx.self) || !isInWindow(state, sequence, options)) return;
  takeBatch(state, sequence, requests, options, ctx);
  if (by !== primaryOf(state, view) && isOfReplica(state, prePrepareShape, prePrepare, ctx))
    return expose(state, prePrepare, ctx); // The signer is not the primary of the view.
  if (state.isChanging || view !== state.view || by !== primaryOf(state, view) || by === ctx.self) return;
  const known = state.slots[sequence]?.prePrepare?.value;
  if (known?.view === view) {
    // The primary has assigned the same number twice.
    if (known.digest !== digest && isOfReplica(state, prePrepareShape, prePrepare, ctx)) expose(state, prePrepare, ctx);
    return;
  }
  if (!isSound(state, prePrepare, requests, ctx)) return;
  accept(state, prePrepare, requests, ctx);
  prepare(state, value, ctx);
  checkPrepared(state, sequence, options, ctx);
  watchPending(state, options, ctx);
}

/** Returns whether the batch matches the digest that the primary signed, and clients have signed all requests. */
const isSound = (state: State, prePrepare: Signed<Assignment>, requests: Signed<Request>[], ctx: Ctx): boolean =>
  digestOf(requests) === prePrepare.value.digest &&
  isOfReplica(state, prePrepareShape, prePrepare, ctx) &&
  requests.every(
    (request) => state.pending.some((known) => isSameRequest(known.request, request)) || isOfClient(request, ctx),
  );

/** Signs a prepare for an assignment at a backup, and sends it to all other replicas. */
export function prepare(state: State, value: Assignment, ctx: Ctx): void {
  const own = sign(ctx, prepareShape, value);
  slotAt(state, value.sequence).prepares[ctx.self] = own;
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "prepare", prepare: own });
}

/** Handles a prepare. */
export function receivePrepare(state: State, vote: Signed<Assignment>, options: PbftOptions, ctx: Ctx): void {
  const { view, sequence } = vote.value;
  if (view < state.view || !isInWindow(state, sequence, options)) return; // An earlier view, or outside the window.
  if (state.slots[sequence]?.prepared?.prePrepare.value.view === view) return; // Already prepared.
  if (isHad(state.slots[sequence]?.prepares, vote) || !isOfReplica(state, prepareShape, vote, ctx)) return;
  if (vote.by === primaryOf(state, view)) return expose(state, vote, ctx); // A primary sends no prepare.
  if (keep(state, slotAt(state, sequence).prepares, vote, ctx)) checkPrepared(state, sequence, options, ctx);
}

/**
 * Sends this replica's commit once prepared(m, v, n, i) holds: it has the pre-prepare, and matching prepares from 2f
 * backups.
 */
export function checkPrepared(state: State, sequence: number, options: PbftOptions, ctx: Ctx): void {
  const slot = state.slots[sequence];
  const value = slot?.prePrepare?.value;
  if (slot === undefined || !slot.prePrepare || state.isChanging || value?.view !== state.view) return;
  if (slot.prepared !== null && isSame(slot.prepared.prePrepare.value, value)) return;
  const signers = signersOf(slot.prepares, value).slice(0, quorum(state) - 1);
  if (signers.length < quorum(state) - 1) return;
  const prepares = signers.map((node) => slot.prepares[node] as Signed<Assignment>);
  slot.prepared = { prePrepare: slot.prePrepare, prepares };
  ctx.persist({ type: "prepared", ...slot.prepared });
  const own = sign(ctx, commitShape, value);
  slot.commits[ctx.self] = own;
  for (const replica of others(state, ctx)) ctx.send(replica, { type: "commit", commit: own });
  checkCommitted(state, sequence, value, options, ctx);
}

/** Handles a commit. */
export function receiveCommit(state: State, vote: Signed<Assignment>, options: PbftOptions, ctx: Ctx): void {
  const { sequence } = vote.value;
  if (!isInWindow(state, sequence, options) || sequence <= state.executed) return;
  const slot = state.slots[sequence];
  if (slot?.committed != null || isHad(slot?.commits, vote) || !isOfReplica(state, commitShape, vote, ctx)) return;
  if (keep(state, slotAt(state, sequence).commits, vote, ctx))
    checkCommitted(state, sequence, vote.value, options, ctx);
}

/**
 * Records a batch as committed once committed(m, v, n) holds: 2f + 1 replicas are prepared. In the paper, a replica
 * counts commits only if it is itself prepared. 2f + 1 commits prove the same thing, so a replica that does not take
 * part in the view may also count them.
 */
export function checkCommitted(
  state: State,
  sequence: number,
  value: Assignment,
  options: PbftOptions,
  ctx: Ctx,
): void {
  const slot = slotAt(state, sequence);
  if (slot.committed !== null || signersOf(slot.commits, value).length < quorum(state)) return;
  slot.committed = value.digest;
  execute(state, options, ctx);
}

/** Stores a missing batch. Its digest identifies it, no matter which node sent it. */
export function takeBatch(
  state: State,
  sequence: number,
  requests: Signed<Request>[],
  options: PbftOptions,
  ctx: Ctx,
): void {
  const slot = state.slots[sequence];
  if (slot === undefined || wantedOf(slot).length === 0) return;
  const digest = digestOf(requests);
  if (!wantedOf(slot).includes(digest)) return;
  keepBatch(slot, digest, requests);
  ctx.persist({ type: "batch", sequence, requests });
  execute(state, options, ctx);
}

/** Executes batches in the order of sequence numbers, without gaps. */
export function execute(state: State, options: PbftOptions, ctx: Ctx): void {
  const before = state.executed;
  for (let batch = nextCommitted(state); batch !== undefined; batch = nextCommitted(state)) {
    state.executed += 1;
    for (const [at, request] of batch.entries()) perform(state, request, at, ctx);
    if (state.executed % options.checkpointEvery === 0) takeCheckpoint(state, ctx);
  }
  if (state.executed > before) noteProgress(state, options, ctx);
}

function nextCommitted(state: State): Signed<Request>[] | undefined {
  const slot: Slot | undefined = state.slots[state.executed + 1];
  return slot === undefined || slot.committed === null ? undefined : batchOf(slot, slot.committed)?.requests;
}

/** Executes a request. A request that was ordered twice is executed only once. */
function perform(state: State, request: Signed<Request>, at: number, ctx: Ctx): void {
  const { by, value } = request;
  if (value.sequence <= (state.last[by] ?? 0)) return;
  state.last[by] = value.sequence;
  ctx.emit({ type: "decided", index: (state.executed - 1) * INDICES + 1 + at, command: commandOf(request) });
}

/** Removes executed requests from the pending ones. */
export function noteProgress(state: State, options: PbftOptions, ctx: Ctx): void {
  state.pending = state.pending.filter(({ request }) => request.value.sequence > (state.last[request.by] ?? 0));
  noteAnswered(state, state.last[ctx.self] ?? 0, ctx);
  state.assigned = Math.max(state.assigned, state.executed);
  watchPending(state, options, ctx);
}
