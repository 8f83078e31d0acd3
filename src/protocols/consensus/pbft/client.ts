/**
 * The client (§4.1). One that shares its node with a replica takes that replica's word: both are correct or neither is. One
 * that is apart waits for f + 1 equal replies. A client without an answer in time asks all replicas.
 */
import { entriesIn } from "../../../core/per-node.ts";
import type { Context } from "../../../core/protocol.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import type { Command } from "../family/replicated-log.ts";
import { isOfReplica, replyShape, requestShape } from "./certificates.ts";
import { receiveRequest } from "./normal-case-operation.ts";
import type { PbftOptions } from "./options.ts";
import { noteAnswered } from "./replies.ts";
import { lengthened } from "./time-outs.ts";
import { isReplica, type Pbft, primaryOf, type Reply, type Request, weakQuorum } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

/**
 * The first time the primary is asked, after that all are; at once by a replica that has given up a view: others may go on in it, and
 * have to be told.
 */
export function propose(state: State, { client, sequence, operation }: Command, options: PbftOptions, ctx: Ctx): void {
  if (client !== ctx.self || sequence <= (state.last[client] ?? 0)) return; // Nobody signs for another.
  if (state.outstanding?.request.value.sequence === sequence) {
    if (options.retransmitMs === 0 || state.outstanding.isSentAgain) askAll(state, options, ctx); // Before that, its timer runs.
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

/** f + 1 equal ones are needed: one of them at least is of a correct replica. */
export function noteReply(state: State, reply: Signed<Reply>, ctx: Ctx): void {
  const { outstanding } = state;
  const { client, sequence, result, index } = reply.value;
  if (outstanding === null || client !== ctx.self || sequence !== outstanding.request.value.sequence) return; // Of an earlier one.
  if (!isOfReplica(state, replyShape, reply, ctx)) return;
  outstanding.replies[reply.by] = reply.value;
  const equal = entriesIn(outstanding.replies).filter(([, other]) => other.result === result && other.index === index);
  if (equal.length < weakQuorum(state)) return;
  // A correct one among them is no further than this: so the next request goes to the primary of a view that there is.
  state.view = Math.max(state.view, Math.min(...equal.map(([, { view }]) => view)));
  state.last[client] = sequence;
  noteAnswered(state, sequence, ctx);
  ctx.emit({ type: "answered", sequence, result, index });
}
