/** Who proposes, accepts and learns, and whose answers are enough. */
import type { NodeId } from "../../../core/protocol.ts";
import { isQuorum } from "../parts/quorum-systems.ts";
import type { PaxosOptions } from "./options.ts";
import type { Ctx, Paxos } from "./vocabulary.ts";

export function roles(options: PaxosOptions) {
  const everybody = (ctx: Ctx): NodeId[] => [...ctx.peers, ctx.self].sort((a, b) => a - b);
  const has = (role: "proposers" | "acceptors" | "learners", node: NodeId): boolean =>
    options[role] === null || options[role].includes(node);
  const isEnough = (answered: readonly NodeId[], ctx: Ctx): boolean =>
    isQuorum(options.quorums, options.acceptors ?? everybody(ctx), answered);

  function tell(role: "acceptors" | "learners", message: Paxos["message"], ctx: Ctx): void {
    if (options[role] === null) return ctx.broadcast(message);
    for (const node of options[role]) if (node !== ctx.self) ctx.send(node, message);
  }

  const otherLearners = (ctx: Ctx): NodeId[] =>
    (options.learners ?? everybody(ctx)).filter((node) => node !== ctx.self);

  return { has, isEnough, tell, otherLearners };
}
