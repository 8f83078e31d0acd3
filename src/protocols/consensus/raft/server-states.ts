/** Server states and terms (§5.1, figure 4): how a node comes to follow. How it comes to lead is in leader-election.ts. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { type RaftOptions, spread } from "./options.ts";
import { leaderOf, type Raft, type Role } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** A higher term takes the place of a lower one. It is journalled, with the vote that is given in it, before anything is answered. */
export function adoptTerm(state: State, term: number, votedFor: NodeId | null, options: RaftOptions, ctx: Ctx): void {
  state.term = term;
  vote(state, votedFor, ctx);
  becomeFollower(state, null, options, ctx);
}

/** In this term; null: for nobody yet. */
export function vote(state: State, candidate: NodeId | null, ctx: Ctx): void {
  state.votedFor = candidate;
  ctx.persist({ type: "voted", term: state.term, votedFor: candidate });
}

/**
 * From now on the node waits for a leader of this term, or follows the leader that it has received a message from. The promise that it
 * gave its last leader by answering is not cancelled by a new term: that leader may still serve reads by its lease.
 */
export function becomeFollower(state: State, leader: NodeId | null, options: RaftOptions, ctx: Ctx): void {
  const before = leaderOf(state, ctx.self);
  const { role } = state;
  if (role.is === "leader") for (const timer of leaderTimers) ctx.cancelTimer(timer);
  if (role.is === "leader" && role.catchUp !== null) ctx.cancelTimer("catchUp");
  const hasPromised = role.is === "follower" && role.hasHeard;
  state.role = { is: "follower", leader, hasHeard: hasPromised, incoming: null };
  // §5.2: hearing from a leader and giving a vote begin the time-out anew. A term that somebody else begins does not, or a
  // candidate that nobody may vote for would keep those waiting that can win.
  if (leader !== null || !(hasPromised || isWaiting(role))) awaitLeader(state, options, ctx);
  if (leader !== before) ctx.emit({ type: "led", leader, term: state.term });
}

/** Whether its election time-out runs, and is the random one. */
const isWaiting = (role: Role): boolean =>
  role.is === "preCandidate" || role.is === "candidate" || (role.is === "follower" && !role.hasHeard);

const leaderTimers = ["heartbeat", "quorum", "transfer", "leaseEven", "leaseOdd"] as const;

/**
 * The election time-out begins anew. Where who hears from a leader helps nobody else to lead, it has two parts: the least
 * time-out, and then a random time in which the node votes for others.
 */
export function awaitLeader(state: State, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "follower") return;
  role.hasHeard = options.checkQuorum && role.leader !== null;
  ctx.setTimer("election", role.hasHeard ? options.minElectionMs : electionTimeout(options, ctx.self));
}

/** The leader that asked another node to be a candidate has given up its lease for good, so the promise to it ends (thesis §3.10). */
export function release({ role }: State, options: RaftOptions, ctx: Ctx): void {
  if (role.is !== "follower" || !role.hasHeard) return;
  role.hasHeard = false;
  ctx.setTimer("election", electionTimeout(options, ctx.self));
}

/** §5.2: random, so that few nodes are candidates at a time. */
export function electionTimeout(options: RaftOptions, self: NodeId): readonly [number, number] {
  const [min, max] = spread(options, self);
  return [options.minElectionMs + min, options.minElectionMs + max];
}

/** After a restart it may have answered a leader just before it crashed: it helps nobody else for as long as it would have. */
export function keepStill(state: State, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is !== "follower" || !options.checkQuorum || state.term === 0) return;
  state.role.hasHeard = true;
  ctx.setTimer("election", options.minElectionMs);
}
