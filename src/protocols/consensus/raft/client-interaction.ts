/** Client interaction (§8): any node accepts requests, and the leader executes them. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { beginChange } from "./catching-up.ts";
import { transfer } from "./leadership-transfer.ts";
import { propose, wait } from "./log-replication.ts";
import { isPossible } from "./membership-changes.ts";
import type { RaftOptions } from "./options.ts";
import { readAtLeader } from "./reads.ts";
import { type Forwarded, leaderOf, type Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Sends a request to the leader. If no leader is known, a command waits, and other requests are dropped. */
export function ask(state: State, request: Forwarded, options: RaftOptions, ctx: Ctx): void {
  const leader = leaderOf(state, ctx.self);
  if (leader === ctx.self) perform(state, ctx.self, request, options, ctx);
  else if (leader !== null) ctx.send(leader, { type: "forward", request });
  else if (request.type === "propose") wait(state, request.command, options);
}

/** Retries waiting commands once a leader is known. */
export function askAgain(state: State, options: RaftOptions, ctx: Ctx): void {
  const { waiting } = state;
  state.waiting = [];
  for (const command of waiting) ask(state, { type: "propose", command }, options, ctx);
}

/** Executes a request at the leader. Another node may have forwarded it. */
export function perform(state: State, asker: NodeId, request: Forwarded, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader") return; // This node no longer leads. The client retries.
  switch (request.type) {
    case "propose":
      return propose(state, request.command, options, ctx);
    case "read":
      return readAtLeader(state, role, asker, request.read, options, ctx);
    case "transfer":
      return transfer(state, role, request.to, options, ctx);
    case "reconfigure":
      if (isPossible(request, [ctx.self, ...ctx.peers]) && role.transfer === null)
        beginChange(state, role, asker, request, options, ctx);
  }
}
