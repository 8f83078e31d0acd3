/** What PBFT says of itself: the shapes of what it sends and journals, its claims, its costs, its picture. */
import { nodesIn } from "../../../core/per-node.ts";
import type { NodeId, Protocol, View } from "../../../core/protocol.ts";
import { boolean, list, natural, perNode, text } from "../../../core/shape.ts";
import { logCommandShapes, resultShape } from "../family/replicated-log.ts";
import {
  certificateFields,
  checkpointShape,
  commitShape,
  digestShape,
  prePrepareShape,
  prepareShape,
  proofShape,
  replyShape,
  requestShape,
  viewChangeShape,
} from "./certificates.ts";
import { MAX_CHUNK_CHARS, MAX_REPLICAS, MAX_WINDOW } from "./options.ts";
import { MAX_WANTED } from "./retransmission.ts";
import { signersOf } from "./slots.ts";
import { INDICES, type Pbft, primaryOf, quorum } from "./vocabulary.ts";

type Declarations = Pick<Protocol<Pbft>, "shapes" | "source" | "assumes" | "costs" | "view">;
type State = Pbft["state"];

const MAX_CLIENTS = 1_000;

const requests = list(requestShape, INDICES);
const executed = perNode(natural, MAX_CLIENTS);
/** A character takes at most three bytes for each of its units. */
const chunk = text(3 * MAX_CHUNK_CHARS);
const newView = {
  view: natural,
  viewChanges: list(viewChangeShape, MAX_REPLICAS),
  prePrepares: list(prePrepareShape, MAX_WINDOW),
};

export const declarations: Declarations = {
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
    "at most f of N ≥ 3f + 1 replicas are faulty, in whatever way; crash-recovery of the others, with a journal",
    "signatures that nobody can forge, and digests without collisions",
    "for liveness: delays do not grow for ever as fast as the time-outs",
  ],
  costs: [
    { when: "one batch, between replicas", messages: (n) => 2 * n * (n - 1) },
    { when: "with the request of a client that is apart, and its replies", messages: (n) => 2 * n * (n - 1) + 1 + n },
    { when: "a checkpoint, every K batches", messages: (n) => n * (n - 1) },
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

/** Of more the first are shown. */
const SHOWN = 4;

/**
 * Who has signed what for the batches that are not executed yet, in the view in which it stands; where all are, for the last. The
 * pre-prepare counts as its primary's word that it is prepared.
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
