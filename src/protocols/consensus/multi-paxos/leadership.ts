/** What a leader does beside proposing: heartbeats, its lease, reads, and main nodes that have failed or are back. */
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { leaseTimer } from "../../leases.ts";
import type { Members } from "../family/replicated-log.ts";
import { serveReads } from "./decisions.ts";
import { askAgain, lastFound, progress, resend } from "./phases.ts";
import {
  type Attempt,
  type Candidate,
  type Configuration,
  type Ctx,
  type Leader,
  leave,
  type Read,
  type Settings,
  type State,
  see,
} from "./vocabulary.ts";

// Who accepts and learns which slots. Members that are decided in a slot are in effect `window` slots later, and no slot is
// proposed before all that stand so far below it are decided: so a proposer always knows the acceptors of a slot.
// Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010, §2 (there the window is α).

export function configurationAt({ configurations }: State, slot: number): Configuration {
  return configurations.findLast(({ from }) => from <= slot) ?? (configurations[0] as Configuration);
}

/** Of the first slot that is not decided. */
export const currentConfiguration = (state: State): Configuration => configurationAt(state, state.decided + 1);

/** Decided, and not in effect yet. */
export const pendingConfiguration = ({ configurations, decided }: State): Configuration | null =>
  configurations.findLast(({ from }) => from > decided + 1) ?? null;

/** The quorums of a slot: any two meet. */
export const hasMajority = ({ voters }: Members, nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

export const isSameMembers = (a: Members, b: Members): boolean =>
  JSON.stringify([a.voters, a.learners]) === JSON.stringify([b.voters, b.learners]);

/** Whether these may be the members: some voters, all of them nodes that there are, each once. */
export function isMembership({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

export const sorted = ({ voters, learners }: Members): Members => ({
  voters: [...voters].sort((a, b) => a - b),
  learners: [...learners].sort((a, b) => a - b),
});

export const isAuxiliary = ({ auxiliaries }: State, node: NodeId): boolean => auxiliaries.includes(node);

/** Those of these nodes that an attempt asks: auxiliaries only when it must. */
export const asked = (state: State, { isEngaged }: Attempt, nodes: readonly NodeId[], self: NodeId): NodeId[] =>
  nodes.filter((node) => node !== self && (isEngaged || !isAuxiliary(state, node)));

/** Voters of the slots that are not decided. */
export function votersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(currentConfiguration(state).voters, pending?.voters ?? []);
}

/** Everybody who is to hear from a leader. */
export function membersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(votersAhead(state), currentConfiguration(state).learners, pending?.learners ?? []);
}

const union = (...sets: readonly (readonly NodeId[])[]): NodeId[] => [...new Set(sets.flat())].sort((a, b) => a - b);

// Main nodes and auxiliaries. A quorum is a majority of the voters, and the main nodes among them are just that many: so while
// all main nodes answer, auxiliaries are not asked at all. When one is silent they are, for as long as it takes to decide on members
// without it: the other main nodes, and as many auxiliaries less as make the other main nodes a majority again.
// Lamport & Massa, "Cheap Paxos", DSN 2004, §3 and §4.

/** These main nodes with one auxiliary less, and the others as learners, so that they are heard of when they are back. */
function membersWith(mains: readonly NodeId[], allMains: readonly NodeId[], auxiliaries: readonly NodeId[]): Members {
  const voters = [...mains, ...auxiliaries.slice(0, mains.length - 1)];
  return {
    voters: voters.sort((a, b) => a - b),
    learners: allMains.filter((node) => !mains.includes(node)),
  };
}

/** At a leader, with each heartbeat: engages auxiliaries while a main node is silent, and has the members changed. */
function replaceFailed(state: State, role: Leader, { suspectAfter, window }: Settings, ctx: Ctx): void {
  const { auxiliaries } = state;
  if (auxiliaries.length === 0 || suspectAfter === 0) return;
  const isMain = (node: NodeId): boolean => !isAuxiliary(state, node);
  const { voters, learners } = currentConfiguration(state);
  const mains = voters.filter(isMain);
  const hasFailed = (node: NodeId): boolean => node !== ctx.self && (role.followers[node]?.silent ?? 0) > suspectAfter;
  const isBack = (node: NodeId): boolean => {
    const { silent, decided } = role.followers[node] ?? { silent: suspectAfter, decided: 0 };
    return silent <= 1 && decided + window >= state.decided;
  };
  const wanted = [...mains.filter((node) => !hasFailed(node)), ...learners.filter(isBack)].sort((a, b) => a - b);
  const members = membersWith(
    wanted,
    [...mains, ...learners].sort((a, b) => a - b),
    auxiliaries,
  );
  const isSettled = pendingConfiguration(state) === null && isSameMembers(members, { voters, learners });
  const isAlone = wanted.length === 0; // It is no member any more, and the last one is silent: nobody is left to replace that one.
  role.wanted = isSettled || isAlone ? null : members;
  if (mains.some(hasFailed)) engage(state, role, mains, ctx);
  else if (isSettled) release(state, role, mains, ctx);
}

/** From now on they are asked too: for all that is not decided, at once. */
function engage(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  forgetKnown(state, role, mains, ctx);
  if (role.isEngaged) return;
  role.isEngaged = true;
  for (let slot = state.decided + 1; slot < role.next; slot++) askAgain(state, role, slot, ctx);
}

/** No more than what they hold is left to do: once all main nodes know that, they forget it. */
function release(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  if (role.isEngaged) role.auxiliariesHold = role.next - 1;
  role.isEngaged = false;
  if (role.auxiliariesHold === 0 || knownToAll(state, role, mains, ctx.self) < role.auxiliariesHold) return;
  forgetKnown(state, role, mains, ctx);
  role.auxiliariesHold = 0;
}

/** Up to where all these main nodes know what is decided: whichever of them are left, that is not lost. */
const knownToAll = (state: State, { followers }: Leader, mains: readonly NodeId[], self: NodeId): number =>
  Math.min(...mains.map((node) => (node === self ? state.decided : (followers[node]?.decided ?? 0))));

function forgetKnown(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  const index = knownToAll(state, role, mains, ctx.self);
  if (index === 0) return;
  for (const to of state.auxiliaries) ctx.send(to, { type: "forget", ballot: role.ballot, index });
}

/** It has been away, and holds what it might have been told to forget. */
export function answerToAuxiliary(state: State, auxiliary: NodeId, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader" || role.isEngaged) return;
  const mains = currentConfiguration(state).voters.filter((node) => !isAuxiliary(state, node));
  const index = knownToAll(state, role, mains, ctx.self);
  ctx.send(auxiliary, { type: "forget", ballot: role.ballot, index });
}

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
