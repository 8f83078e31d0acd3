/**
 * Terms (§5.1): the rules for all messages with a term, applied in one place before the message handlers run. Handlers
 * can rely on two facts: the message has the node's own term, and the node follows the sender of a leader's message.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { askAgain } from "./client-interaction.ts";
import { isFit, isLed, refuseVote } from "./leader-election.ts";
import type { RaftOptions } from "./options.ts";
import { adoptTerm, awaitLeader, becomeFollower, release } from "./server-states.ts";
import { leaderOf, type Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;
type Message = Raft["message"];
type Termed = Extract<Message, { term: number }>;

/**
 * Applies the rules for terms. Returns false if the message must be dropped, because its term is over or because the
 * node is bound by a promise to its leader.
 */
export function observeTerm(state: State, from: NodeId, message: Message, options: RaftOptions, ctx: Ctx): boolean {
  if (!("term" in message) || isOfNextElection(message)) return true;
  // Thesis §4.2.3. The leader relies on this node until the promise expires. Without this rule, a higher term could
  // break a lease.
  if (message.type === "requestVote" && !message.isTransfer && isLed(state, options)) {
    refuseVote(state, from, ctx);
    return false;
  }
  if (message.term < state.term) {
    rejectStale(state, from, message, ctx);
    return false;
  }
  if (isOfLeader(message) && isImpostor(state, from, message)) return false;
  if (message.term > state.term) {
    if (message.type === "requestVote" && message.isTransfer) release(state, options, ctx);
    // One record contains both the new term and the vote cast in it.
    const votedFor = message.type === "requestVote" && isFit(state, message, options) ? from : null;
    adoptTerm(state, message.term, votedFor, options, ctx);
  }
  if (isOfLeader(message)) follow(state, from, options, ctx);
  return true;
}

/**
 * Returns whether the term of the message is the term of a future election. No node adopts it, because that election
 * may never take place. A refused pre-vote carries the voter's own term.
 */
const isOfNextElection = (message: Termed): boolean =>
  message.type === "requestPreVote" || (message.type === "preVote" && message.isGranted);

const isOfLeader = ({ type }: Message): boolean =>
  type === "appendEntries" || type === "committed" || type === "heartbeat" || type === "installSnapshot";

/** Returns whether a second node claims to lead this term. Only a Byzantine node can cause that. */
const isImpostor = ({ term, role }: State, from: NodeId, message: Termed): boolean =>
  message.term === term &&
  (role.is === "leader" || (role.is === "follower" && role.leader !== null && role.leader !== from));

function follow(state: State, leader: NodeId, options: RaftOptions, ctx: Ctx): void {
  if (leaderOf(state, ctx.self) === leader) return awaitLeader(state, options, ctx);
  becomeFollower(state, leader, options, ctx);
  askAgain(state, options, ctx);
}

/**
 * Rejects a message from an earlier term. The answer carries the current term, so that a former leader or candidate
 * steps down.
 */
function rejectStale({ term }: State, to: NodeId, message: Termed, ctx: Ctx): void {
  switch (message.type) {
    case "requestVote":
      return ctx.send(to, { type: "vote", term, isGranted: false });
    case "appendEntries":
      return ctx.send(to, {
        type: "rejected",
        term,
        previousIndex: message.previousIndex,
        conflictTerm: null,
        conflictIndex: 0,
      });
    case "heartbeat":
      return ctx.send(to, { type: "heartbeatAnswered", term, round: message.round });
    case "installSnapshot":
      return ctx.send(to, { type: "chunkReceived", term, index: message.index, received: 0 });
    default: // Answers, and messages that need no answer.
  }
}
