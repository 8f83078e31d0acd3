/**
 * The shapes of signed values, and the certificates that consist of them. A signature covers the canonical text of a
 * value, because equal values must have equal bytes (§4.6).
 */
import { entriesIn, nodesIn, type PerNode } from "../../../core/per-node.ts";
import { canonical } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, type Shape, struct, text } from "../../../core/shape.ts";
import { isGenuine, type Signed, signed } from "../../../core/signatures.ts";
import { DIGEST_CHARS, digest } from "../../digest.ts";
import { include } from "../../node-set.ts";
import { chunkAt } from "../family/chunks.ts";
import { operationShape, resultShape } from "../family/replicated-log.ts";
import {
  type Assignment,
  type Batch,
  type Certificate,
  type Checkpoint,
  type Ctx,
  isPrimary,
  isReplica,
  isSame,
  MAX_CHUNK_CHARS,
  MAX_REPLICAS,
  MAX_WINDOW,
  type Pbft,
  type PbftOptions,
  primaryOf,
  quorum,
  type Reply,
  type Request,
  type Slot,
  type State,
  type ViewChange,
  weakQuorum,
} from "./vocabulary.ts";

export const digestShape = text(DIGEST_CHARS);
const assignment = struct<Assignment>({ view: natural, sequence: natural, digest: digestShape });
export const requestShape = signed("request", struct<Request>({ sequence: natural, operation: operationShape }));
export const prePrepareShape = signed("pre-prepare", assignment);
export const prepareShape = signed("prepare", assignment);
export const commitShape = signed("commit", assignment);
export const checkpointShape = signed("checkpoint", struct<Checkpoint>({ sequence: natural, digest: digestShape }));
export const replyShape = signed(
  "reply",
  struct<Reply>({ view: natural, client: natural, sequence: natural, result: resultShape, index: natural }),
);
export const proofShape = list(checkpointShape, MAX_REPLICAS);
export const certificateFields = { prePrepare: prePrepareShape, prepares: list(prepareShape, MAX_REPLICAS) };
export const viewChangeShape = signed(
  "view-change",
  struct<ViewChange>({
    view: natural,
    stable: natural,
    proof: proofShape,
    prepared: list(struct<Certificate>(certificateFields), MAX_WINDOW),
  }),
);

/** Returns the digest of a batch. The null request of a new view (§4.4) is the empty batch. */
export const digestOf = (requests: readonly Signed<Request>[]): string => digest(canonical(requests));
/** The digest of the empty batch. */
export const NOTHING = digestOf([]);

/**
 * Returns the digest of a state. It covers each client's last executed command, so that no command is executed twice.
 */
export const digestOfState = (executed: Readonly<PerNode<number>>, text: string): string =>
  digest(canonical([executed, text]));

/** Returns whether the signer is a replica and the signature is valid. */
export const isOfReplica = <T>(state: State, shape: Shape<Signed<T>>, value: Signed<T>, ctx: Ctx): boolean =>
  isReplica(state, value.by) && isGenuine(ctx, shape, value);

/** Returns whether a client has signed the request. Clients are nodes of the cluster with known keys. */
export const isOfClient = (request: Signed<Request>, ctx: Ctx): boolean =>
  (request.by === ctx.self || ctx.peers.includes(request.by)) && isGenuine(ctx, requestShape, request);

/** Returns whether no node occurs twice. */
export const areDistinct = (nodes: readonly NodeId[]): boolean => new Set(nodes).size === nodes.length;

/** Returns whether 2f + 1 replicas have signed the checkpoint. The initial state needs no proof. */
export function isProof(state: State, sequence: number, proof: readonly Signed<Checkpoint>[], ctx: Ctx): boolean {
  if (sequence === 0) return proof.length === 0;
  const wanted = proof[0]?.value.digest;
  return (
    proof.length >= quorum(state) &&
    areDistinct(proof.map(({ by }) => by)) &&
    proof.every(({ value }) => value.sequence === sequence && value.digest === wanted) &&
    proof.every((each) => isOfReplica(state, checkpointShape, each, ctx))
  );
}

/**
 * Returns whether the certificate proves prepared(m, v, n) from §4.2: a pre-prepare from the view's primary, and
 * prepares from 2f backups for the same view, number and digest.
 */
export function isPreparedBy(state: State, { prePrepare, prepares }: Certificate, ctx: Ctx): boolean {
  const { by, value } = prePrepare;
  const slot = state.slots[value.sequence];
  return (
    by === primaryOf(state, value.view) &&
    prepares.length >= quorum(state) - 1 &&
    areDistinct([by, ...prepares.map((prepare) => prepare.by)]) &&
    prepares.every((prepare) => isSame(prepare.value, value)) &&
    (isHeld(slot?.prePrepare, prePrepare) || isOfReplica(state, prePrepareShape, prePrepare, ctx)) &&
    prepares.every(
      (prepare) => isHeld(slot?.prepares[prepare.by], prepare) || isOfReplica(state, prepareShape, prepare, ctx),
    )
  );
}

/**
 * Returns whether this replica has already verified this signature. A view change contains up to one per sequence
 * number in the window, and a new view contains 2f + 1 view changes.
 */
function isHeld(known: Signed<Assignment> | null | undefined, signed: Signed<Assignment>): boolean {
  return known?.by === signed.by && known.signature === signed.signature && isSame(known.value, signed.value);
}

// A replica's log: its slots between the watermarks, and their journal.

/** The maximum number of batches from different views to keep per sequence number. */
const MAX_BATCHES = 4;

/**
 * Returns whether a sequence number is between the watermarks (§4.2): above the stable checkpoint and within the
 * window.
 */
export const isInWindow = ({ stable }: State, sequence: number, { window }: PbftOptions): boolean =>
  sequence > stable.sequence && sequence <= stable.sequence + window;

/** Returns the slot for a sequence number, creating it if necessary. */
export function slotAt(state: State, sequence: number): Slot {
  state.slots[sequence] ??= {
    prePrepare: null,
    prepares: {},
    commits: {},
    prepared: null,
    committed: null,
    batches: [],
  };
  return state.slots[sequence];
}

/** Returns the slots, in ascending order of sequence number. */
export const slotsOf = ({ slots }: State): [sequence: number, slot: Slot][] => entriesIn(slots);

/** Returns the batch with this digest, if this replica has it. */
export const batchOf = ({ batches }: Slot, digest: string): Batch | undefined =>
  batches.find((batch) => batch.digest === digest);

/** Returns whether a batch must be kept because a certificate, a pre-prepare or commits refer to it. */
const isNamed = ({ prePrepare, prepared, committed }: Slot, digest: string): boolean =>
  [prePrepare?.value.digest, prepared?.prePrepare.value.digest, committed].includes(digest);

/** Stores a batch, unless the slot already has it. */
export function keepBatch(slot: Slot, digest: string, requests: Signed<Request>[]): void {
  if (batchOf(slot, digest) !== undefined) return;
  slot.batches.push({ digest, requests });
  while (slot.batches.length > MAX_BATCHES) {
    const at = slot.batches.findIndex((batch) => !isNamed(slot, batch.digest));
    if (at === -1) break; // Never happens: at most three are in use.
    slot.batches.splice(at, 1);
  }
}

/** Returns the digests of missing batches that the replicas have agreed on or may agree on. */
export const wantedOf = (slot: Slot): string[] =>
  [slot.prePrepare?.value.digest, slot.committed].filter(
    (digest): digest is string => typeof digest === "string" && batchOf(slot, digest) === undefined,
  );

/** Returns whether the replica already has this vote, so that its signature need not be verified again. */
export const isHad = (votes: PerNode<Signed<Assignment>> | undefined, { by, value }: Signed<Assignment>): boolean => {
  const known = votes?.[by];
  return known !== undefined && isSame(known.value, value);
};

/**
 * Stores a replica's latest vote. Two different votes in one view expose the replica as Byzantine.
 * @returns whether the vote was stored
 */
export function keep(state: State, votes: PerNode<Signed<Assignment>>, vote: Signed<Assignment>, ctx: Ctx): boolean {
  const known = votes[vote.by];
  if (known !== undefined && known.value.view === vote.value.view && known.value.digest !== vote.value.digest) {
    expose(state, vote, ctx);
    return false;
  }
  if (known !== undefined && known.value.view >= vote.value.view) return false;
  votes[vote.by] = vote;
  return true;
}

/** Reports a Byzantine replica once. */
export function expose(state: State, { by: liar, value }: Signed<Assignment>, ctx: Ctx): void {
  if (state.exposed.includes(liar)) return;
  include(state.exposed, liar);
  ctx.emit({ type: "exposed", liar, view: value.view, sequence: value.sequence });
}

/** Returns the replicas that have signed this assignment, in ascending order. */
export const signersOf = (votes: PerNode<Signed<Assignment>>, { view, digest }: Assignment): NodeId[] =>
  nodesIn(votes).filter((node) => {
    const value = votes[node]?.value;
    return value?.view === view && value.digest === digest;
  });

/** Replaces the whole journal with everything that a replica needs after a crash. */
export function journal(state: State, ctx: Ctx): void {
  const { view, isChanging, stable, newView } = state;
  const { sequence, digest, executed, proof, text } = stable;
  const records: Pbft["record"][] = [
    { type: "view", view, isChanging },
    { type: "stable", sequence, digest, executed, proof },
  ];
  for (let at = 0; at < text.length; ) {
    const chunk = chunkAt(text, at, MAX_CHUNK_CHARS);
    records.push({ type: "stableText", text: chunk });
    at += chunk.length;
  }
  for (const [at, { batches, prepared, prePrepare }] of slotsOf(state)) {
    for (const { requests } of batches) records.push({ type: "batch", sequence: at, requests });
    if (prepared !== null) records.push({ type: "prepared", ...prepared });
    if (prePrepare !== null) records.push({ type: "prePrepared", prePrepare });
  }
  if (newView !== null) records.push({ type: "newView", ...newView });
  ctx.compact(records);
}

// Timers for requests that must be executed in time (§4.4), and for messages that must be resent.

/** Returns the timeout, doubled for each time that it was too short, up to `maxViewChangeMs`. */
export const lengthened = (ms: number, times: number, { maxViewChangeMs }: PbftOptions): number =>
  Math.max(ms, Math.min(ms * 2 ** Math.min(times, 30), maxViewChangeMs));

/** Returns the number of doublings after a success. It decreases slowly, so that the timeout adapts to the load. */
export const eased = (times: number): number => Math.max(0, times - 1 / 8);

/** Returns how long a backup waits before it gives up the view. */
export const timeOutMs = (state: State, options: PbftOptions): number =>
  lengthened(options.viewChangeMs, state.failures, options);

/**
 * Runs a backup's timer for one request and, once that request has been executed, for the oldest pending one. So a
 * primary cannot serve some clients and ignore others.
 */
export function watchPending(state: State, options: PbftOptions, ctx: Ctx): void {
  if (state.isChanging) return;
  const { awaited } = state;
  const isOpen =
    awaited !== null &&
    state.pending.some(({ request }) => request.by === awaited.client && request.value.sequence === awaited.sequence);
  if (isOpen) return;
  if (awaited !== null) {
    state.awaited = null;
    ctx.cancelTimer("viewChange");
  }
  const oldest = state.pending[0]?.request;
  if (oldest === undefined || isPrimary(state, ctx.self) || isLast(state, options)) return;
  state.awaited = { client: oldest.by, sequence: oldest.value.sequence };
  ctx.setTimer("viewChange", timeOutMs(state, options));
}

/** Returns whether this is the last view that the options allow. */
export const isLast = ({ view }: State, { lastView }: PbftOptions): boolean => lastView > 0 && view >= lastView;

/**
 * Starts the status timer if this replica is waiting. Missing messages may just be late, so replicas request them only
 * if nothing has been executed by the time the timer expires.
 */
export function watchProgress(state: State, options: PbftOptions, ctx: Ctx): void {
  const { statusMs } = options;
  if (statusMs === 0 || state.watched !== null || !isWaiting(state)) return;
  state.watched = state.executed;
  ctx.setTimer("status", lengthened(statusMs, state.failures, options));
}

/**
 * Returns whether this replica is waiting for a new view, for a batch that others know of, or for a state to catch up
 * with. A claim by a single replica is not enough.
 */
export const isWaiting = (state: State): boolean =>
  state.isChanging ||
  state.goal !== null ||
  Object.entries(state.slots).some(([sequence, slot]) => Number(sequence) > state.executed && isKnown(state, slot));

const isKnown = (state: State, { prePrepare, committed, prepares, commits }: Slot): boolean =>
  prePrepare !== null || committed !== null || nodesIn({ ...prepares, ...commits }).length >= weakQuorum(state);
