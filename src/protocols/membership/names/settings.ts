/**
 * Who runs a name as this node does, and who otherwise. What a majority has been known here to run alike is established, and this
 * node gives it up only when a majority is known to run it otherwise: so one node with other options ends nothing that a majority
 * runs.
 *
 * Fellows are counted over time: of who has crashed since, nothing newer is known. So two settings can both come to be held for
 * established, each by some of the nodes. With all of an odd number there, one of the two is run by a majority, and the others
 * give way once they hear of it. Of an even number each half may keep to its own; so may those that are there when they are
 * too few on either side to be a majority.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { exclude, include } from "../../node-set.ts";
import type { Names, Running, State } from "./vocabulary.ts";

type Ctx = Context<Names>;

const quorum = (ctx: Ctx): number => majority(ctx.peers.length + 1);

/**
 * That node runs it likewise. If each puts the name away alone, it may have begun it anew since it last said something under it, in
 * another way then: what waits is for nobody, and algorithms that are put away so ask again.
 */
export function join(known: Running, name: string, node: NodeId, ctx: Ctx): void {
  if (known.forgotten === "alone" && !known.fellows.includes(node)) ctx.emit({ type: "parted", name, node });
  exclude(known.strangers, node);
  include(known.fellows, node);
  ctx.emit({ type: "joined", name, node });
  lookWhetherEstablished(known, name, ctx);
}

/** That node runs it otherwise, or cannot run it: what it says is not meant for this one. */
export function part(known: Running, name: string, node: NodeId, ctx: Ctx): void {
  exclude(known.fellows, node);
  include(known.strangers, node);
  ctx.emit({ type: "parted", name, node });
}

export function lookWhetherEstablished(known: Running, name: string, ctx: Ctx): void {
  if (known.isEstablished || known.fellows.length < quorum(ctx)) return;
  known.isEstablished = true;
  ctx.emit({ type: "established", name });
}

/** Whether a majority runs it otherwise. */
export const isOutvoted = ({ strangers }: Running, ctx: Ctx): boolean => strangers.length >= quorum(ctx);

/** Whether this node gives way to who refuses it: nothing is established here, or something else is there. */
export const yields = (known: Running, ctx: Ctx): boolean => !known.isEstablished || isOutvoted(known, ctx);

/** All are asked for what is there: from one answer alone this node would not know that a majority runs it. */
export function giveWay(state: State, name: string, by: NodeId, why: string | null, ctx: Ctx): void {
  const known = state.running[name] as Running;
  delete state.running[name];
  state.declined = {}; // There is room again.
  const { isEstablished: wasEstablished } = known;
  ctx.emit({ type: "gaveWay", name, by, why, wasEstablished, isOutvoted: isOutvoted(known, ctx) });
  ctx.broadcast({ type: "inquire", name });
}
