/**
 * PBFT: replicas agree on one order of signed requests, if fewer than a third of them are Byzantine. A primary assigns
 * sequence numbers. A batch that 2f backups have prepared cannot be replaced in its view. A batch that 2f + 1 replicas
 * have committed is part of every later view.
 * Castro & Liskov, "Practical Byzantine Fault Tolerance", OSDI 1999; status messages: Castro's thesis, MIT 2001. The
 * files are named after the sections of the paper.
 *
 * Assumes   at most f of N ≥ 3f + 1 replicas are faulty, in any way; the others may crash and recover with their
 *           journals. Signatures cannot be forged. For liveness: delays do not keep growing as fast as the timeouts.
 * Safety    all correct replicas execute the same commands in the same order, each once, under any delay, loss,
 *           reordering and duplication; a client accepts only results from correct replicas.
 * Liveness  a request that a client repeats is eventually executed at every correct replica.
 * Cost      2N(N − 1) messages between replicas for a batch: 24, 84, 180 for N = 4, 7, 10; 29, 92, 191 with the request
 *           from a client on another node and the N replies to it. A checkpoint: N(N − 1) messages, every K batches.
 *
 * Ordering messages are signed, as in §4, rather than authenticated with MAC vectors (§5.2). With MACs, a client whose
 * vectors are valid for only some replicas could cause view changes repeatedly (Clement et al., NSDI 2009). Reads are
 * ordered like all other commands. Unordered reads (§5.1.3) are not supported. They would wait for 2f + 1 equal
 * answers, so with one Byzantine replica and one slow replica, waiting clients would delay all others (Berger, Reiser &
 * Bessani, SRDS 2021).
 */

import { nodesIn } from "../../../core/per-node.ts";
import { clone } from "../../../core/plain.ts";
import type { CommandTable, NodeId, Protocol, ReceiveTable, TimeoutTable, View } from "../../../core/protocol.ts";
import { boolean, list, natural, perNode, text } from "../../../core/shape.ts";
import { mapped } from "../../contexts.ts";
import { logCommandShapes, resultShape, snapshotOf, textOf } from "../family/replicated-log.ts";
import {
  certificateFields,
  checkpointShape,
  commitShape,
  digestOf,
  digestOfState,
  digestShape,
  keepBatch,
  prePrepareShape,
  prepareShape,
  proofShape,
  replyShape,
  requestShape,
  signersOf,
  slotAt,
  slotsOf,
  viewChangeShape,
  watchProgress,
} from "./certificates.ts";
import { compact, receiveCheckpoint } from "./garbage-collection.ts";
import {
  askAll,
  assign,
  checkCommitted,
  noteReply,
  propose,
  receiveCommit,
  receivePrePrepare,
  receivePrepare,
  receiveRequest,
  sendReply,
  takeBatch,
} from "./normal-case-operation.ts";
import { propertiesWith } from "./properties.ts";
import { askAround, MAX_WANTED, recall, receiveState, receiveStatus, sendState, tellStatus } from "./state-transfer.ts";
import { changeTo, giveUp, receiveNewView, receiveViewChange } from "./view-changes.ts";
import {
  type Ctx,
  INDICES,
  MAX_CHUNK_CHARS,
  MAX_REPLICAS,
  MAX_WINDOW,
  type Pbft,
  type PbftOptions,
  pbftOptions,
  primaryOf,
  quorum,
  requireReplicas,
  type State,
} from "./vocabulary.ts";

type Declarations = Pick<Protocol<Pbft>, "shapes" | "source" | "assumes" | "costs" | "view">;

const MAX_CLIENTS = 1_000;

const requests = list(requestShape, INDICES);
const executed = perNode(natural, MAX_CLIENTS);
/** A UTF-16 code unit takes at most three bytes in UTF-8. */
const chunk = text(3 * MAX_CHUNK_CHARS);
const newView = {
  view: natural,
  viewChanges: list(viewChangeShape, MAX_REPLICAS),
  prePrepares: list(prePrepareShape, MAX_WINDOW),
};

const declarations: Declarations = {
  shapes: {
    message: {
      request: { request: requestShape },
      prePrepare: { prePrepare: prePrepareShape, requests },
      prepare: { prepare: prepareShape },
      commit: { commit: commitShape },
      reply: { reply: replyShape },
      checkpoint: { checkpoint: checkpointShape },
      viewChange: { viewChange: viewChangeShape },
      newView,
      status: {
        view: natural,
        isChanging: boolean,
        stable: natural,
        executed: natural,
        wanted: list(digestShape, MAX_WANTED),
      },
      batch: { sequence: natural, requests },
      fetch: { sequence: natural, position: natural },
      state: { sequence: natural, position: natural, executed, text: chunk, isLast: boolean },
    },
    command: {
      propose: logCommandShapes.propose,
      compact: logCommandShapes.compact,
      reply: { client: natural, sequence: natural, result: resultShape, index: natural },
    },
    record: {
      view: { view: natural, isChanging: boolean },
      batch: { sequence: natural, requests },
      prePrepared: { prePrepare: prePrepareShape },
      prepared: certificateFields,
      stable: { sequence: natural, digest: digestShape, executed, proof: proofShape },
      stableText: { text: chunk },
      newView,
    },
  },
  source: "Castro & Liskov, OSDI 1999",
  assumes: [
    "at most f of N ≥ 3f + 1 replicas are Byzantine; the others are crash-recovery nodes with a journal",
    "unforgeable signatures and collision-free digests",
    "for liveness: message delays eventually grow more slowly than the timeouts",
  ],
  costs: [
    { when: "one batch, replicas only", messages: (n) => 2 * n * (n - 1) },
    { when: "one batch, with the request and replies of a separate client", messages: (n) => 2 * n * (n - 1) + 1 + n },
    { when: "one checkpoint every K batches", messages: (n) => n * (n - 1) },
  ],
  view: (state, self) => ({
    role: roleOf(state, self),
    leader: state.isChanging ? null : primaryOf(state, state.view),
    term: state.view,
    log: { decided: state.executed, last: Math.max(state.executed, ...nodesIn(state.slots)) },
    ...certificatesIn(state),
  }),
};

function roleOf(state: State, self: NodeId): string {
  if (!state.replicas.includes(self)) return "client";
  if (state.isChanging) return "changing view";
  return primaryOf(state, state.view) === self ? "primary" : "backup";
}

/** The number of open batches shown. */
const SHOWN = 4;

/**
 * Returns the signers for each batch of the current view that has not been executed yet, or for the last batch if all
 * have been executed. A pre-prepare counts as the primary's prepare.
 */
function certificatesIn(state: State): Pick<View, "certificates"> {
  const open = nodesIn(state.slots).filter((sequence) => sequence > state.executed);
  const shown = open.length === 0 ? [state.executed] : open.slice(0, SHOWN);
  const certificates = shown.flatMap((sequence) => {
    const slot = state.slots[sequence];
    if (slot === undefined || slot.prePrepare === null) return [];
    const { by, value } = slot.prePrepare;
    return [
      { of: `prepared ${sequence}`, signed: [by, ...signersOf(slot.prepares, value)], needed: quorum(state) },
      { of: `committed ${sequence}`, signed: signersOf(slot.commits, value), needed: quorum(state) },
    ];
  });
  return certificates.length === 0 ? {} : { certificates };
}

export type { Pbft, PbftOptions } from "./vocabulary.ts";

function initial(nodes: readonly NodeId[], options: PbftOptions): State {
  requireReplicas(options, nodes.length);
  const ids = nodes.toSorted((a, b) => a - b);
  return {
    replicas: ids.slice(0, ids.length - options.clients),
    view: 0,
    isChanging: false,
    stable: { sequence: 0, digest: digestOfState({}, ""), executed: {}, text: "", proof: [] },
    slots: {},
    newView: null,
    executed: 0,
    last: {},
    assigned: 0,
    pending: [],
    awaited: null,
    failures: 0,
    retransmissions: 0,
    watched: null,
    snapshots: [],
    checkpoints: {},
    viewChanges: {},
    goal: null,
    exposed: [],
    outstanding: null,
    replies: {},
  };
}

/** Resumes from the journal after a crash. The other replicas supply later messages. */
function resume(state: State, options: PbftOptions, ctx: Ctx): void {
  const { stable, view, slots } = state;
  state.executed = stable.sequence;
  state.last = clone(stable.executed);
  state.assigned = Math.max(stable.sequence, ...Object.keys(slots).map(Number));
  if (stable.sequence > 0)
    ctx.emit({ type: "installed", index: stable.sequence * INDICES, snapshot: snapshotOf(stable.text) });
  recall(state, ctx);
  for (const [sequence, { prepared }] of slotsOf(state))
    if (prepared !== null) checkCommitted(state, sequence, prepared.prePrepare.value, options, ctx);
  if (view > 0 || stable.sequence > 0 || slotsOf(state).length > 0) tellStatus(state, ctx);
}

/** Creates PBFT as a replicated log. @throws UsageError `bad-option` if an option is unknown or out of range. */
export function pbft(given?: Partial<PbftOptions>): Protocol<Pbft> {
  const options = pbftOptions.settle(given);

  /** Assigns waiting requests if the window has room, and watches for missing messages. Runs after each step. */
  function goOn(state: State, ctx: Ctx): void {
    assign(state, options, ctx);
    watchProgress(state, options, ctx);
  }
  const goingOn = <T extends object>(table: T): T =>
    mapped(table, (handle) => (...args: unknown[]) => {
      handle(...args);
      goOn(args[0] as State, args.at(-1) as Ctx);
    }) as T;

  return {
    name: "pbft",
    init: (self, peers) => initial([self, ...peers], options),
    start(state, ctx) {
      resume(state, options, ctx);
      if (state.isChanging) changeTo(state, state.view, options, ctx);
      else ctx.emit({ type: "led", leader: primaryOf(state, state.view), term: state.view });
      goOn(state, ctx);
    },
    receive: goingOn<ReceiveTable<Pbft>>({
      request: (state, from, { request }, ctx) => receiveRequest(state, from, request, options, ctx),
      prePrepare: (state, _from, message, ctx) => receivePrePrepare(state, message, options, ctx),
      prepare: (state, _from, message, ctx) => receivePrepare(state, message.prepare, options, ctx),
      commit: (state, _from, message, ctx) => receiveCommit(state, message.commit, options, ctx),
      reply: (state, _from, { reply }, ctx) => noteReply(state, reply, ctx),
      checkpoint: (state, _from, { checkpoint }, ctx) => receiveCheckpoint(state, checkpoint, options, ctx),
      viewChange: (state, _from, { viewChange }, ctx) => receiveViewChange(state, viewChange, options, ctx),
      newView: (state, _from, { type: _newView, ...message }, ctx) => receiveNewView(state, message, options, ctx),
      status: (state, from, message, ctx) => receiveStatus(state, from, message, ctx),
      batch: (state, _from, { sequence, requests }, ctx) => takeBatch(state, sequence, requests, options, ctx),
      fetch: (state, from, message, ctx) => sendState(state, from, message, options, ctx),
      state: (state, from, message, ctx) => receiveState(state, from, message, options, ctx),
    }),
    timeout: goingOn<TimeoutTable<Pbft>>({
      viewChange: (state, ctx) => giveUp(state, options, ctx),
      status: (state, ctx) => askAround(state, options, ctx),
      retransmit: (state, ctx) => askAll(state, options, ctx),
    }),
    command: goingOn<CommandTable<Pbft>>({
      propose: (state, { command }, ctx) => propose(state, command, options, ctx),
      compact: (state, { index, snapshot }, ctx) => compact(state, index, textOf(snapshot), ctx),
      reply: (state, { type: _reply, ...reply }, ctx) => sendReply(state, reply, ctx),
    }),
    replay: {
      view(state, { view, isChanging }) {
        Object.assign(state, { view, isChanging });
      },
      batch: (state, { sequence, requests }) => keepBatch(slotAt(state, sequence), digestOf(requests), requests),
      prePrepared(state, { prePrepare }) {
        slotAt(state, prePrepare.value.sequence).prePrepare = prePrepare;
      },
      prepared(state, { prePrepare, prepares }) {
        slotAt(state, prePrepare.value.sequence).prepared = { prePrepare, prepares };
      },
      stable(state, { sequence, digest, executed, proof }) {
        state.stable = { sequence, digest, executed, proof, text: "" };
      },
      stableText(state, { text }) {
        state.stable.text += text;
      },
      newView(state, { view, viewChanges, prePrepares }) {
        state.newView = { view, viewChanges, prePrepares };
      },
    },
    ...declarations,
    properties: propertiesWith(options),
  };
}
