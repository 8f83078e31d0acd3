/**
 * Leadership transfer (thesis §3.10): the leader brings a voter's log up to date and asks that voter to start an
 * election immediately. A transfer starts either on request or because the voter has a better priority.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { lastIndex } from "./log.ts";
import { isVoter } from "./membership-changes.ts";
import { behindOf, type RaftOptions } from "./options.ts";
import type { Follower, Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/**
 * Begins a transfer to a voter. A learner must not lead. The leader gives up its lease, because the voters do not wait
 * for their timeouts in this election.
 */
export function transfer(state: State, role: Leader, to: NodeId, options: RaftOptions, ctx: Ctx): void {
  if (to === ctx.self || !isVoter(state.configuration, to) || role.transfer !== null) return;
  role.transfer = to;
  role.leaseRound = null;
  role.mayLease = false;
  ctx.setTimer("transfer", options.minElectionMs);
  handOver(state, role, ctx);
}

/** Asks the target to start an election once it has the whole log. The leader appends nothing until then. */
export function handOver(state: State, { transfer: to, followers }: Leader, ctx: Ctx): void {
  if (to !== null && followers[to]?.match === lastIndex(state.log))
    ctx.send(to, { type: "timeoutNow", term: state.term });
}

/**
 * Asks a voter that has the whole log to take over. A leader that has been removed calls this, so that the other nodes
 * need not wait for a timeout.
 */
export function nameSuccessor(state: State, { followers }: Leader, ctx: Ctx): void {
  const { configuration, log, term } = state;
  const heir = configuration.voters.find((node) => followers[node]?.match === lastIndex(log));
  if (heir !== undefined) ctx.send(heir, { type: "timeoutNow", term });
}

/** The maximum number of times that `handOverBeats` is doubled. */
const MAX_DOUBLINGS = 4;

/**
 * Begins a transfer to a voter with a better priority. Runs at each heartbeat. To prevent frequent transfers, that
 * voter must have kept up for several consecutive heartbeats. The required number doubles with each transfer, because a
 * node that leads again has handed over to a voter that could not keep the leadership.
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

/** Returns the voter with the best priority among those that keep up and have a better one than this node. */
function heirOf(state: State, { followers }: Leader, { priorities }: RaftOptions, self: NodeId): NodeId | null {
  const behind = (node: NodeId): number => behindOf(priorities, node);
  const heirs = state.configuration.voters.filter((node) => {
    const follower = followers[node];
    return follower !== undefined && behind(node) < behind(self) && keepsUp(state, follower);
  });
  return heirs.toSorted((a, b) => behind(a) - behind(b) || a - b)[0] ?? null;
}

/** Returns whether the follower has answered since the last heartbeat and all entries that it lacks are in flight. */
const keepsUp = ({ log }: State, { hasAnswered, sending, next }: Follower): boolean =>
  hasAnswered && sending.is === "pipelining" && next > lastIndex(log);

const isChanging = ({ configuration: { outgoing, index }, commitIndex }: State): boolean =>
  outgoing !== null || index > commitIndex;
