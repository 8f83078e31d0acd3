/** What a client is told (§4.1): by its own replica, or where it is apart, by a message of each. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { sign } from "../../../core/signatures.ts";
import { replyShape } from "./certificates.ts";
import { eased } from "./time-outs.ts";
import { isReplica, type Pbft, type Reply } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

/** Its own replica has executed it, or others have said so. */
export function noteAnswered(state: State, sequence: number, ctx: Ctx): void {
  if (state.outstanding === null || state.outstanding.request.value.sequence > sequence) return;
  if (!state.outstanding.isSentAgain) state.retransmissions = eased(state.retransmissions);
  state.outstanding = null;
  ctx.cancelTimer("retransmit");
}

/** At a replica: what came of a command goes to its client, if that is apart, and is kept for when it asks again. */
export function sendReply(state: State, { client, sequence, result, index }: Omit<Reply, "view">, ctx: Ctx): void {
  if (isReplica(state, client) || !ctx.peers.includes(client)) return;
  if (sequence < (state.replies[client]?.sequence ?? 0)) return;
  state.replies[client] = { view: state.view, client, sequence, result, index };
  answerAgain(state, client, ctx);
}

export function answerAgain(state: State, client: NodeId, ctx: Ctx): void {
  const known = state.replies[client];
  if (known !== undefined)
    ctx.send(client, { type: "reply", reply: sign(ctx, replyShape, { ...known, view: state.view }) });
}
