/** Leadership transfer (thesis §3.10): a leader brings a voter's log up to its own and asks it to be a candidate at once. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { lastIndex } from "./log.ts";
import { isVoter } from "./membership-changes.ts";
import type { RaftOptions } from "./options.ts";
import type { Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Never to a learner: it must not lead. Whatever leases it had end, for voters do not wait for the time-out this time. */
export function transfer(state: State, role: Leader, to: NodeId, options: RaftOptions, ctx: Ctx): void {
  if (to === ctx.self || !isVoter(state.configuration, to) || role.transfer !== null) return;
  role.transfer = to;
  role.leaseRound = null;
  role.mayLease = false;
  ctx.setTimer("transfer", options.minElectionMs);
  handOver(state, role, ctx);
}

/** Once the node has the whole log. Nothing is appended meanwhile. */
export function handOver(state: State, { transfer: to, followers }: Leader, ctx: Ctx): void {
  if (to !== null && followers[to]?.match === lastIndex(state.log))
    ctx.send(to, { type: "timeoutNow", term: state.term });
}

/** A leader that is no member any more asks one that has the whole log, so that nobody waits for the time-out. */
export function nameSuccessor(state: State, { followers }: Leader, ctx: Ctx): void {
  const { configuration, log, term } = state;
  const heir = configuration.voters.find((node) => followers[node]?.match === lastIndex(log));
  if (heir !== undefined) ctx.send(heir, { type: "timeoutNow", term });
}
