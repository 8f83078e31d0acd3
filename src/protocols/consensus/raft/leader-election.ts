/** Leader election (§5.2), with the pre-vote from the thesis (§9.6). */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { include } from "../../node-set.ts";
import { lastIndex, lastTerm, uncommittedCharsOf } from "./log.ts";
import { appendOwn, meetMembers } from "./log-replication.ts";
import { isQuorum, isVoter } from "./membership-changes.ts";
import { type RaftOptions, spread } from "./options.ts";
import { isUpToDate } from "./safety.ts";
import { becomeFollower, electionTimeout, vote } from "./server-states.ts";
import { type Leader, leaderOf, type Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;
type Asked<T extends "requestVote" | "requestPreVote"> = Extract<Raft["message"], { type: T }>;

/**
 * Handles the election timeout. At the first expiry, the leader has been silent for the shortest timeout, so the node
 * may now vote for others. At the second, after a random time, this node becomes a candidate.
 */
export function timeOut(state: State, options: RaftOptions, ctx: Ctx): void {
  const { role } = state;
  if (role.is === "leader") return;
  if (role.is === "follower" && role.hasHeard) {
    role.hasHeard = false;
    ctx.setTimer("election", spread(options, ctx.self));
  } else if (!isVoter(state.configuration, ctx.self)) becomeFollower(state, null, options, ctx);
  else if (options.preVote) askForPreVotes(state, options, ctx);
  else standForElection(state, false, options, ctx);
}

/**
 * Requests pre-votes. A pre-vote promises nothing and raises no term, so a node that cannot win does not disturb the
 * others.
 */
function askForPreVotes(state: State, options: RaftOptions, ctx: Ctx): void {
  forgetLeader(state, ctx);
  state.role = { is: "preCandidate", votes: [ctx.self] };
  ctx.setTimer("election", electionTimeout(options, ctx.self));
  askVoters(state, { type: "requestPreVote", term: state.term + 1, ...endOf(state) }, ctx);
  standIfBacked(state, options, ctx);
}

/**
 * Starts an election. The candidate first votes for itself, so that it never votes for another node in this term, even
 * after a crash.
 */
export function standForElection(state: State, isTransfer: boolean, options: RaftOptions, ctx: Ctx): void {
  forgetLeader(state, ctx);
  state.term += 1;
  vote(state, ctx.self, ctx);
  state.role = { is: "candidate", votes: [ctx.self] };
  ctx.setTimer("election", electionTimeout(options, ctx.self));
  askVoters(state, { type: "requestVote", term: state.term, ...endOf(state), isTransfer }, ctx);
  leadIfElected(state, options, ctx);
}

function forgetLeader(state: State, ctx: Ctx): void {
  if (leaderOf(state, ctx.self) !== null) ctx.emit({ type: "led", leader: null, term: state.term });
}

const endOf = ({ log }: State) => ({ lastIndex: lastIndex(log), lastTerm: lastTerm(log) });

function askVoters(state: State, request: Asked<"requestVote" | "requestPreVote">, ctx: Ctx): void {
  for (const node of ctx.peers) if (isVoter(state.configuration, node)) ctx.send(node, request);
}

/** Handles a granted pre-vote at the pre-candidate. */
export function notePreVote(state: State, from: NodeId, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is !== "preCandidate") return; // The pre-vote is no longer needed, or is from an earlier attempt.
  include(state.role.votes, from);
  standIfBacked(state, options, ctx);
}

function standIfBacked(state: State, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is === "preCandidate" && isQuorum(state.configuration, state.role.votes))
    standForElection(state, false, options, ctx);
}

/** Handles a granted vote at the candidate. */
export function noteVote(state: State, from: NodeId, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is !== "candidate") return; // The vote is no longer needed, or is from an earlier election.
  include(state.role.votes, from);
  leadIfElected(state, options, ctx);
}

function leadIfElected(state: State, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is === "candidate" && isQuorum(state.configuration, state.role.votes))
    becomeLeader(state, options, ctx);
}

/**
 * Makes this node the leader. It first appends an empty entry, because it does not know which older entries are
 * committed (§8).
 */
function becomeLeader(state: State, options: RaftOptions, ctx: Ctx): void {
  const { term, log } = state;
  const role: Leader = {
    is: "leader",
    firstIndex: lastIndex(log) + 1,
    persisted: lastIndex(log),
    followers: {},
    round: 0,
    answered: [...ctx.peers], // No round is in progress.
    asking: [],
    next: [],
    isTimely: false,
    leaseRound: null,
    transfer: null,
    mayLease: options.leaseReads,
    uncommittedChars: uncommittedCharsOf(state), // Includes entries from earlier terms.
    heir: null,
    catchUp: null,
  };
  state.role = role;
  meetMembers(state, role, role.firstIndex, ctx.self);
  ctx.cancelTimer("election");
  ctx.setTimer("heartbeat", options.heartbeatMs);
  if (options.checkQuorum) ctx.setTimer("quorum", options.maxElectionMs);
  ctx.emit({ type: "led", leader: ctx.self, term });
  appendOwn(state, role, { type: "noop", term }, options, ctx);
}

/** Grants or refuses a pre-vote. Does not change the state. */
export function answerPreVote(
  state: State,
  from: NodeId,
  asked: Asked<"requestPreVote">,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const isGranted = asked.term > state.term && !isLed(state, options) && isFit(state, asked, options);
  ctx.send(from, { type: "preVote", term: isGranted ? asked.term : state.term, isGranted });
}

/**
 * Grants or refuses a vote. A node votes once per term, for the first candidate whose log is at least as up to date as
 * its own. The vote is journaled before the answer is sent, or was journaled together with the term (see terms.ts).
 */
export function answerVote(
  state: State,
  from: NodeId,
  asked: Asked<"requestVote">,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const isFree = state.votedFor === null || state.votedFor === from;
  if (!isFree || !isFit(state, asked, options)) return refuseVote(state, from, ctx);
  if (state.votedFor === null) vote(state, from, ctx);
  ctx.setTimer("election", electionTimeout(options, ctx.self));
  ctx.send(from, { type: "vote", term: state.term, isGranted: true });
}

/** Sends a refusal. */
export const refuseVote = ({ term }: State, to: NodeId, ctx: Ctx): void =>
  ctx.send(to, { type: "vote", term, isGranted: false });

/** Returns whether the candidate's log is at least as up to date as this node's (§5.4.1). */
export const isFit = (
  { log }: State,
  candidate: { lastIndex: number; lastTerm: number },
  { checksLog }: RaftOptions,
): boolean => !checksLog || isUpToDate(log, candidate);

/**
 * Returns whether the node must refuse to vote (thesis §4.2.3): it is the leader, or has received a message from the
 * leader within the shortest election timeout.
 */
export const isLed = ({ role }: State, { checkQuorum }: RaftOptions): boolean =>
  role.is === "leader" ? checkQuorum : role.is === "follower" && role.hasHeard;
