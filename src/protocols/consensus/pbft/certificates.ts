/** What is signed, under which name, and what a set of signed values proves. All that is signed is the canonical text of a shape (§4.6: equal values, equal bytes). */

import type { PerNode } from "../../../core/per-node.ts";
import { canonical } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { list, natural, type Shape, struct, text } from "../../../core/shape.ts";
import { isGenuine, type Signed, signed } from "../../../core/signatures.ts";
import { DIGEST_CHARS, digest } from "../../digest.ts";
import { operationShape, resultShape } from "../family/replicated-log.ts";
import { MAX_REPLICAS, MAX_WINDOW } from "./options.ts";
import {
  type Assignment,
  type Certificate,
  type Checkpoint,
  isReplica,
  isSame,
  type Pbft,
  primaryOf,
  quorum,
  type Reply,
  type Request,
  type ViewChange,
} from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

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

/** Of a batch. The null request of a new view (§4.4) is the batch without requests. */
export const digestOf = (requests: readonly Signed<Request>[]): string => digest(canonical(requests));
export const NOTHING = digestOf([]);

/** Of a state: with the snapshot goes what has been executed of each client, so nothing is executed again. */
export const digestOfState = (executed: Readonly<PerNode<number>>, text: string): string =>
  digest(canonical([executed, text]));

/** Signed by a replica, and unchanged. */
export const isOfReplica = <T>(state: State, shape: Shape<Signed<T>>, value: Signed<T>, ctx: Ctx): boolean =>
  isReplica(state, value.by) && isGenuine(ctx, shape, value);

/** From clients that are known by their keys: the nodes of the cluster. */
export const isOfClient = (request: Signed<Request>, ctx: Ctx): boolean =>
  (request.by === ctx.self || ctx.peers.includes(request.by)) && isGenuine(ctx, requestShape, request);

export const areDistinct = (nodes: readonly NodeId[]): boolean => new Set(nodes).size === nodes.length;

/** 2f + 1 replicas vouch for the checkpoint; none is needed for the empty state that all begin with. */
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

/** prepared(m, v, n): the pre-prepare of that view's primary, and prepares of 2f backups for the same view, number and digest (§4.2). */
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

/** This replica has verified that very signature: a view change tells of a window full of them, and a new view of 2f + 1 such. */
function isHeld(known: Signed<Assignment> | null | undefined, signed: Signed<Assignment>): boolean {
  return known?.by === signed.by && known.signature === signed.signature && isSame(known.value, signed.value);
}
