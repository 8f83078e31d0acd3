/**
 * Server states (§5.1, figure 4): how a node becomes a follower. For candidates and leaders, see leader-election.ts.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { type RaftOptions, spread } from "./options.ts";
import { leaderOf, type Raft, type Role } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Moves to a higher term. The term is journaled together with the vote in it before any answer is sent. */
export function adoptTerm(state: State, term: number, votedFor: NodeId | null, options: RaftOptions, ctx: Ctx): void {
  state.term = term;
  vote(state, votedFor, ctx);
  becomeFollower(state, null, options, ctx);
}

/** Records and journals this node's vote in this term. Null means that the node has not yet voted. */
export function vote(state: State, candidate: NodeId | null, ctx: Ctx): void {
  state.votedFor = candidate;
  ctx.persist({ type: "voted", term: state.term, votedFor: candidate });
}

/**
 * Makes the node a follower. It follows `leader`, which has just sent it a message, or waits for a leader of this term.
 * When the node answered the previous leader, it promised not to vote for others during the shortest election timeout.
 * A new term does not cancel that promise, because the previous leader may still serve reads under its lease.
 */
export function becomeFollower(state: State, leader: NodeId | null, options: RaftOptions, ctx: Ctx): void {
  const before = leaderOf(state, ctx.self);
  const { role } = state;
  if (role.is === "leader") for (const timer of leaderTimers) ctx.cancelTimer(timer);
  if (role.is === "leader" && role.catchUp !== null) ctx.cancelTimer("catchUp");
  const hasPromised = role.is === "follower" && role.hasHeard;
  state.role = { is: "follower", leader, hasHeard: hasPromised, incoming: null };
  // §5.2: a message from a leader and a granted vote restart the timeout. A term begun by another node does not.
  // Otherwise, a candidate that cannot win would keep delaying candidates that can.
  if (leader !== null || !(hasPromised || isWaiting(role))) awaitLeader(state, options, ctx);
  if (leader !== before) ctx.emit({ type: "led", leader, term: state.term });
}

/** Returns whether the random election timeout is running. */
const isWaiting = (role: Role): boolean =>
  role.is === "preCandidate" || role.is === "candidate" || (role.is === "follower" && !role.hasHeard);

const leaderTimers = ["heartbeat", "quorum", "transfer", "leaseEven", "leaseOdd"] as const;

/**
 * Restarts the election timeout. With `checkQuorum`, a follower refuses to vote until the shortest timeout has passed
 * since the last message from its leader. So its timeout has two parts: the shortest timeout, then a random time during
 * which it votes for other nodes.
 */
export function awaitLeader(state: State, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "follower") return;
  role.hasHeard = options.checkQuorum && role.leader !== null;
  ctx.setTimer("election", role.hasHeard ? options.minElectionMs : electionTimeout(options, ctx.self));
}

/**
 * Ends the promise to a leader that has asked another node to start an election. That leader has given up its lease
 * permanently (thesis §3.10).
 */
export function release({ role }: State, options: RaftOptions, ctx: Ctx): void {
  if (role.is !== "follower" || !role.hasHeard) return;
  role.hasHeard = false;
  ctx.setTimer("election", electionTimeout(options, ctx.self));
}

/**
 * Returns the range of the election timeout. It is random, so that few nodes become candidates at the same time (§5.2).
 */
export function electionTimeout(options: RaftOptions, self: NodeId): readonly [number, number] {
  const [min, max] = spread(options, self);
  return [options.minElectionMs + min, options.minElectionMs + max];
}

/**
 * Restores the promise to a leader after a restart. The node may have answered a leader just before it crashed, so it
 * votes for no other node for the minimum election timeout.
 */
export function keepStill(state: State, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is !== "follower" || !options.checkQuorum || state.term === 0) return;
  state.role.hasHeard = true;
  ctx.setTimer("election", options.minElectionMs);
}
