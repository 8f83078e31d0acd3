/** What a leader does beside proposing: heartbeats, its lease, reads, and main nodes that have failed or are back. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import { asked, currentConfiguration, hasMajority, membersAhead } from "./configurations.ts";
import { serveReads } from "./decisions.ts";
import { replaceFailed } from "./main-nodes.ts";
import type { Settings } from "./options.ts";
import { lastFound, progress, resend } from "./phase-two.ts";
import { leave, see } from "./standing.ts";
import type { Candidate, Leader, MultiPaxos, Read, State } from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;

/** The candidate takes over: all that it has found is proposed with its ballot, and gaps between are closed. */
export function lead(state: State, candidate: Candidate, settings: Settings, ctx: Ctx): void {
  const { ballot, promises, isEngaged } = candidate;
  const found = Object.entries(candidate.found).filter(([slot]) => Number(slot) > state.decided);
  leave(state, ctx);
  const role: Leader = {
    is: "leader",
    ballot,
    promises,
    found: Object.fromEntries(found),
    isEngaged,
    next: state.decided + 1,
    votes: {},
    resendBelow: 0,
    announced: state.decided,
    round: 1,
    confirms: [],
    lease: [],
    reads: [],
    followers: missing(state, candidate, settings),
    wanted: null,
    auxiliariesHold: 0,
  };
  state.role = role;
  see(state, ctx.self, ballot.round, ctx);
  beginRound(state, role, settings, ctx);
  progress(state, settings, ctx);
}

/** Where auxiliaries had to help, main nodes that have not promised have failed already. */
function missing(state: State, { isEngaged, promises }: Candidate, { suspectAfter }: Settings): Leader["followers"] {
  const silent = isEngaged ? currentConfiguration(state).voters.filter((voter) => !promises.includes(voter)) : [];
  return Object.fromEntries(silent.map((voter) => [voter, { silent: suspectAfter + 1, decided: 0 }]));
}

/** The lease that a round is worth counts from the first time that it is sent. */
function beginRound(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  role.confirms = [ctx.self];
  ctx.setTimer(leaseTimer(role.round), settings.leaseMs);
  sendRound(state, role, settings, ctx);
  certify(state, role, settings, ctx);
}

function sendRound(state: State, role: Leader, { renewMs }: Settings, ctx: Ctx): void {
  ctx.setTimer("heartbeat", renewMs);
  const { ballot, round } = role;
  for (const to of asked(state, role, membersAhead(state), ctx.self))
    ctx.send(to, { type: "heartbeat", ballot, round, decided: state.decided });
}

const isConfirmed = (state: State, { confirms }: Leader): boolean => hasMajority(currentConfiguration(state), confirms);

/** A round that a majority has confirmed is followed by the next; one that it has not is sent again. */
export function beat(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  for (const node of asked(state, role, membersAhead(state), ctx.self)) followerOf(role, node).silent += 1;
  replaceFailed(state, role, settings, ctx);
  resend(state, role, ctx);
  if (isConfirmed(state, role)) nextRound(state, role, settings, ctx);
  else sendRound(state, role, settings, ctx);
  progress(state, settings, ctx);
}

function nextRound(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  role.round += 1;
  beginRound(state, role, settings, ctx);
}

export function followerOf({ followers }: Leader, node: NodeId): Leader["followers"][number] {
  followers[node] ??= { silent: 0, decided: 0 };
  return followers[node];
}

export function noteConfirm(
  state: State,
  role: Leader,
  from: NodeId,
  round: number,
  settings: Settings,
  ctx: Ctx,
): void {
  if (round !== role.round || role.confirms.includes(from)) return; // Of an earlier round, or one too many.
  role.confirms.push(from);
  certify(state, role, settings, ctx);
}

/** The certainty of this round takes the place of that of the round before. */
function certify(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  if (!isConfirmed(state, role)) return;
  ctx.cancelTimer(leaseTimer(role.round - 1));
  role.lease = [...role.confirms];
  const served = role.reads.filter(({ round }) => round <= role.round);
  role.reads = role.reads.filter(({ round }) => round > role.round);
  for (const read of served) answerRead(state, read, ctx);
  if (role.reads.length > 0) nextRound(state, role, settings, ctx);
}

/** Whether nobody else can lead: those that have confirmed are bound, and are a majority of those that are needed now. */
const hasLease = (state: State, { lease }: Leader): boolean => hasMajority(currentConfiguration(state), lease);

/** A leader knows all that has been decided once what it has found is, and the acceptors of what comes next have promised. */
const isUpToDate = (state: State, role: Leader): boolean =>
  lastFound(role) <= state.decided && hasMajority(currentConfiguration(state), role.promises);

/**
 * Whether it may answer reads by its lease alone. A leader that has members to take over may have the lease of members that have been
 * replaced meanwhile: it is not up to date then.
 */
export const mayAnswerByLease = (state: State): boolean =>
  state.role.is === "leader" && isUpToDate(state, state.role) && hasLease(state, state.role);

/**
 * What is decided now is what a read must see, provided that this node leads when it is asked for. A lease says so, or
 * a round of heartbeats that begins after it.
 */
export function read(state: State, role: Leader, node: NodeId, number: number, settings: Settings, ctx: Ctx): void {
  if (!isUpToDate(state, role) || role.reads.length >= settings.maxWaiting) return; // It is asked for again.
  const asking: Read = { node, read: number, index: state.decided, round: role.round + 1 };
  if (settings.reads === "lease" && hasLease(state, role)) return answerRead(state, asking, ctx);
  role.reads.push(asking);
  if (isConfirmed(state, role)) nextRound(state, role, settings, ctx);
}

function answerRead(state: State, { node, read, index }: Read, ctx: Ctx): void {
  if (node !== ctx.self) return ctx.send(node, { type: "readAt", read, index });
  state.reads.push({ read, index });
  serveReads(state, ctx);
}
