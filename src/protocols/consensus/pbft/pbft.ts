/**
 * PBFT: replicas, of which a third less one may lie, agree on one order of signed requests. A primary assigns sequence numbers; what 2f
 * others have prepared cannot be assigned anew in its view, what 2f + 1 have committed survives into every later view.
 * Castro & Liskov, "Practical Byzantine Fault Tolerance", OSDI 1999; status messages: Castro's thesis, MIT 2001. The files are named after its sections.
 *
 * Assumes   at most f of N ≥ 3f + 1 replicas are faulty, in whatever way; the others crash and recover with their journal.
 *           Signatures that nobody can forge. For liveness: delays do not grow for ever as fast as the time-outs do.
 * Safety    all correct replicas execute the same commands in the same order, each once, under any delay, loss, reordering and
 *           duplication; a client is told what a correct replica has executed.
 * Liveness  what a client asks for again and again is executed at every correct replica.
 * Cost      2N(N − 1) messages between replicas for a batch: 24, 84, 180 for N = 4, 7, 10; with the request of a client that is
 *           apart and its N replies 29, 92, 191. A checkpoint: N(N − 1) messages, every K batches.
 *
 * All that replicas say of the order is signed, as in §4, and not authenticated by vectors of MACs (§5.2): a client whose vectors are
 * right for some replicas only would cause one view change after the other (Clement et al., NSDI 2009).
 * There are no reads without an order (§5.1.3): they wait for 2f + 1 equal answers, and with a lying replica and one that is behind,
 * clients that wait for those hold up all others as well (Berger, Reiser & Bessani, SRDS 2021). A read is a command.
 */

import { clone } from "../../../core/plain.ts";
import type { CommandTable, Context, NodeId, Protocol, ReceiveTable, TimeoutTable } from "../../../core/protocol.ts";
import { mapped } from "../../contexts.ts";
import { snapshotOf, textOf } from "../family/replicated-log.ts";
import { digestOf, digestOfState } from "./certificates.ts";
import { askAll, noteReply, propose } from "./client.ts";
import { declarations } from "./declarations.ts";
import { compact, receiveCheckpoint } from "./garbage-collection.ts";
import {
  assign,
  checkCommitted,
  receiveCommit,
  receivePrePrepare,
  receivePrepare,
  receiveRequest,
  takeBatch,
} from "./normal-case-operation.ts";
import { type PbftOptions, pbftOptions, requireReplicas } from "./options.ts";
import { propertiesWith } from "./properties.ts";
import { sendReply } from "./replies.ts";
import { askAround, recall, receiveStatus, tellStatus } from "./retransmission.ts";
import { keepBatch, slotAt, slotsOf } from "./slots.ts";
import { receiveState, sendState } from "./state-transfer.ts";
import { watchProgress } from "./time-outs.ts";
import { changeTo, giveUp, receiveNewView, receiveViewChange } from "./view-changes.ts";
import { INDICES, type Pbft, primaryOf } from "./vocabulary.ts";

export type { PbftOptions } from "./options.ts";
export type { Pbft } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

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

/** After a crash: what the journal holds is taken up where it was, and the others say what came after that. */
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

export function pbft(given?: Partial<PbftOptions>): Protocol<Pbft> {
  const options = pbftOptions.settle(given);

  /** Whatever a step has come to: there may be room for what waits, and what is missing is waited for. */
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
