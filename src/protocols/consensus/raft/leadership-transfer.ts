/**
 * Leadership transfer (thesis §3.10): a leader brings a voter's log up to its own and asks it to be a candidate at once; because it
 * was told to, or because that voter stands before it in `priorities`.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { lastIndex } from "./log.ts";
import { isVoter } from "./membership-changes.ts";
import { behindOf, type RaftOptions } from "./options.ts";
import type { Follower, Leader, Raft } from "./vocabulary.ts";

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

/** Doubled as often as that, at most. */
const MAX_DOUBLINGS = 4;

/**
 * At each heartbeat. So that leadership does not go to and fro, the heir has to have kept up for some heartbeats in a row, and for
 * twice as many each time this node leads again after it has handed over: whoever it handed over to could not keep it.
 */
export function considerHeir(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const { handOverBeats } = options;
  if (handOverBeats === 0) return;
  const node = heirOf(state, role, options, ctx.self);
  for (const follower of Object.values(role.followers)) follower.hasAnswered = false;
  role.heir = node === null ? null : { node, beats: 1 + (role.heir?.node === node ? role.heir.beats : 0) };
  if (node === null || role.transfer !== null || role.catchUp !== null || isChanging(state)) return;
  if ((role.heir?.beats ?? 0) < handOverBeats * 2 ** Math.min(state.handOvers, MAX_DOUBLINGS)) return;
  role.heir = null;
  state.handOvers += 1;
  transfer(state, role, node, options, ctx);
}

/** Of those that stand before this node, and keep up, the first. */
function heirOf(state: State, { followers }: Leader, { priorities }: RaftOptions, self: NodeId): NodeId | null {
  const behind = (node: NodeId): number => behindOf(priorities, node);
  const heirs = state.configuration.voters.filter((node) => {
    const follower = followers[node];
    return follower !== undefined && behind(node) < behind(self) && keepsUp(state, follower);
  });
  return heirs.toSorted((a, b) => behind(a) - behind(b) || a - b)[0] ?? null;
}

/** It has answered since the last heartbeat, and all that it lacks is on its way. */
const keepsUp = ({ log }: State, { hasAnswered, sending, next }: Follower): boolean =>
  hasAnswered && sending.is === "pipelining" && next > lastIndex(log);

const isChanging = ({ configuration: { outgoing, index }, commitIndex }: State): boolean =>
  outgoing !== null || index > commitIndex;
