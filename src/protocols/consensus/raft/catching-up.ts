/**
 * Catching up new servers (thesis §4.2.1). A voter with an empty log would count toward the quorum immediately, and
 * could block commits until it has the whole log. So the leader first replicates its log to the new voter in rounds.
 * Each round sends the entries that were in the log when the round began, so rounds become shorter. The change begins
 * after a round that took no longer than the shortest election timeout.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { Members, Refusal } from "../family/replicated-log.ts";
import { lastIndex } from "./log.ts";
import { appendOwn, meetMembers, replicate } from "./log-replication.ts";
import { changeTo } from "./membership-changes.ts";
import type { RaftOptions } from "./options.ts";
import type { CatchUp, Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Begins a membership change if one is possible now. Otherwise does nothing, and the requester must retry. */
export function beginChange(
  state: State,
  role: Leader,
  asker: NodeId,
  { voters, learners }: Members,
  options: RaftOptions,
  ctx: Ctx,
): void {
  const change = role.catchUp === null ? changeTo(state, role, { voters, learners }) : null;
  if (change === null) return;
  const newcomers = voters.filter((node) => node !== ctx.self && !state.configuration.voters.includes(node));
  if (options.catchUpRounds === 0 || newcomers.length === 0) return appendOwn(state, role, change, options, ctx);
  role.catchUp = { voters, learners, asker, newcomers, round: 0, target: 0, isSlow: false, progress: 0 };
  meetMembers(state, role, lastIndex(state.log), ctx.self); // The answers show how far behind these nodes are.
  beginCatchUpRound(state, role, role.catchUp, options, ctx);
}

function beginCatchUpRound(state: State, role: Leader, catchUp: CatchUp, options: RaftOptions, ctx: Ctx): void {
  catchUp.round += 1;
  catchUp.target = lastIndex(state.log);
  catchUp.isSlow = false;
  catchUp.progress = progressOf(role, catchUp);
  ctx.setTimer("catchUp", options.minElectionMs);
  for (const node of catchUp.newcomers) {
    const follower = role.followers[node];
    if (follower !== undefined) replicate(state, node, follower, options, ctx);
  }
  noteCaughtUp(state, role, options, ctx); // Learners may already be up to date.
}

/**
 * Returns the progress of the newcomers. It grows with each answer that reports new entries or a new chunk of a
 * snapshot.
 */
const progressOf = ({ followers }: Leader, { newcomers }: CatchUp): number =>
  newcomers.reduce((sum, node) => {
    const follower = followers[node];
    return sum + (follower?.match ?? 0) + (follower?.sending.is === "snapshot" ? follower.sending.received : 0);
  }, 0);

/** Ends the round if all newcomers have reached its target. Call this whenever one of them may have. */
export function noteCaughtUp(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const { catchUp } = role;
  if (catchUp === null) return;
  if (!catchUp.newcomers.every((node) => (role.followers[node]?.match ?? 0) >= catchUp.target)) return;
  if (catchUp.isSlow && catchUp.round >= options.catchUpRounds) return refuse(state, role, catchUp, "too slow", ctx);
  if (catchUp.isSlow) return beginCatchUpRound(state, role, catchUp, options, ctx);
  const change = role.transfer === null ? changeTo(state, role, catchUp) : null;
  if (change === null) return giveUp(state, role, ctx); // No change is possible now. The requester retries.
  role.catchUp = null;
  ctx.cancelTimer("catchUp");
  appendOwn(state, role, change, options, ctx);
}

/**
 * Marks the round as slow, or refuses the change if the newcomers have made no progress. Runs when the shortest
 * election timeout has elapsed.
 */
export function checkCatchUp(state: State, role: Leader, options: RaftOptions, ctx: Ctx): void {
  const { catchUp } = role;
  if (catchUp === null) return;
  const progress = progressOf(role, catchUp);
  if (progress === catchUp.progress) return refuse(state, role, catchUp, "no progress", ctx);
  catchUp.isSlow = true;
  catchUp.progress = progress;
  ctx.setTimer("catchUp", options.minElectionMs);
}

function refuse(state: State, role: Leader, catchUp: CatchUp, reason: Refusal, ctx: Ctx): void {
  const { asker, voters, learners } = catchUp;
  giveUp(state, role, ctx);
  const refused = { type: "changeRefused", voters, learners, reason } as const;
  ctx.emit(refused);
  if (asker !== ctx.self) ctx.send(asker, refused);
}

/** Stops replicating to nodes that were catching up but did not become members. */
function giveUp(state: State, role: Leader, ctx: Ctx): void {
  role.catchUp = null;
  ctx.cancelTimer("catchUp");
  meetMembers(state, role, lastIndex(state.log) + 1, ctx.self);
}
