/**
 * The leader: it proposes (phase 2), sends heartbeats, renews its lease, answers reads and replaces failed main nodes.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { leaseTimer } from "../../leases.ts";
import { type Command, isSameCommand, type Members } from "../family/replicated-log.ts";
import { accept, type Ctx, decideUpTo, leave, see, serveReads, stepDown, tell } from "./decisions.ts";
import {
  asked,
  type Candidate,
  configurationAt,
  currentConfiguration,
  hasMajority,
  isAuxiliary,
  isSame,
  isSameMembers,
  type Leader,
  membersAhead,
  pendingConfiguration,
  type Read,
  type Settings,
  type State,
  type Value,
  votersAhead,
} from "./vocabulary.ts";

// Main nodes and auxiliaries. A quorum is a majority of the voters, and the main nodes are the smallest majority. While
// all main nodes answer, the leader sends nothing to auxiliaries. When a main node is silent, the leader includes
// auxiliaries until a membership without that node is decided. The new membership also has fewer auxiliaries, so that
// its main nodes are a majority again. Lamport & Massa, "Cheap Paxos", DSN 2004, §3 and §4.

/**
 * Returns a membership. Its voters are these main nodes and one fewer auxiliaries than main nodes. The other main nodes
 * are learners, so that the leader notices when they return.
 */
function membersWith(mains: readonly NodeId[], allMains: readonly NodeId[], auxiliaries: readonly NodeId[]): Members {
  const voters = [...mains, ...auxiliaries.slice(0, mains.length - 1)];
  return {
    voters: voters.sort((a, b) => a - b),
    learners: allMains.filter((node) => !mains.includes(node)),
  };
}

/**
 * Engages auxiliaries while a main node is silent, and requests a membership without it. The leader calls this with
 * each heartbeat.
 */
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
  const isAlone = wanted.length === 0; // No main node is left to replace the last one.
  role.wanted = isSettled || isAlone ? null : members;
  if (mains.some(hasFailed)) engage(state, role, mains, ctx);
  else if (isSettled) release(state, role, mains, ctx);
}

/** Includes auxiliaries from now on, and immediately sends them the proposals in all undecided slots. */
function engage(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  forgetKnown(state, role, mains, ctx);
  if (role.isEngaged) return;
  role.isEngaged = true;
  for (let slot = state.decided + 1; slot < role.next; slot++) askAgain(state, role, slot, ctx);
}

/** Stops including auxiliaries. They still have to drop their slots once all main nodes know the decisions. */
function release(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  if (role.isEngaged) role.auxiliariesHold = role.next - 1;
  role.isEngaged = false;
  if (role.auxiliariesHold === 0 || knownToAll(state, role, mains, ctx.self) < role.auxiliariesHold) return;
  forgetKnown(state, role, mains, ctx);
  role.auxiliariesHold = 0;
}

/**
 * Returns the last slot that all these main nodes know to be decided. The slot is not lost as long as one of them
 * survives.
 */
const knownToAll = (state: State, { followers }: Leader, mains: readonly NodeId[], self: NodeId): number =>
  Math.min(...mains.map((node) => (node === self ? state.decided : (followers[node]?.decided ?? 0))));

function forgetKnown(state: State, role: Leader, mains: readonly NodeId[], ctx: Ctx): void {
  const index = knownToAll(state, role, mains, ctx.self);
  if (index === 0) return;
  for (const to of state.auxiliaries) ctx.send(to, { type: "forget", ballot: role.ballot, index });
}

/** Answers an auxiliary that was disconnected and may be able to drop some of its slots. */
export function answerToAuxiliary(state: State, auxiliary: NodeId, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader" || role.isEngaged) return;
  const mains = currentConfiguration(state).voters.filter((node) => !isAuxiliary(state, node));
  const index = knownToAll(state, role, mains, ctx.self);
  ctx.send(auxiliary, { type: "forget", ballot: role.ballot, index });
}

/**
 * Makes the candidate the leader. The leader proposes the values that it found again under
 * its own ballot, and fills the gaps between them.
 */
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

/**
 * Returns the main nodes that count as failed when leadership begins: those without a promise, if auxiliaries were
 * included.
 */
function missing(state: State, { isEngaged, promises }: Candidate, { suspectAfter }: Settings): Leader["followers"] {
  const silent = isEngaged ? currentConfiguration(state).voters.filter((voter) => !promises.includes(voter)) : [];
  return Object.fromEntries(silent.map((voter) => [voter, { silent: suspectAfter + 1, decided: 0 }]));
}

/** Begins a heartbeat round. Its lease starts when the round is first sent. */
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

/** Begins the next round if a majority has confirmed this one. Otherwise, resends this one. */
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

/** Returns the leader's view of a follower. */
export function followerOf({ followers }: Leader, node: NodeId): Leader["followers"][number] {
  followers[node] ??= { silent: 0, decided: 0 };
  return followers[node];
}

/** Handles the answer to a heartbeat at the leader. */
export function noteConfirm(
  state: State,
  role: Leader,
  from: NodeId,
  round: number,
  settings: Settings,
  ctx: Ctx,
): void {
  if (round !== role.round || role.confirms.includes(from)) return; // Outdated or duplicated.
  role.confirms.push(from);
  certify(state, role, settings, ctx);
}

/** Replaces the lease of the previous round with the lease of this one, once a majority has confirmed it. */
function certify(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  if (!isConfirmed(state, role)) return;
  ctx.cancelTimer(leaseTimer(role.round - 1));
  role.lease = [...role.confirms];
  const served = role.reads.filter(({ round }) => round <= role.round);
  role.reads = role.reads.filter(({ round }) => round > role.round);
  for (const read of served) answerRead(state, read, ctx);
  if (role.reads.length > 0) nextRound(state, role, settings, ctx);
}

/**
 * Returns whether no other node can lead: the nodes that confirmed are bound, and they form a majority of the current
 * voters.
 */
const hasLease = (state: State, { lease }: Leader): boolean => hasMajority(currentConfiguration(state), lease);

/**
 * Returns whether this leader knows all decisions: everything that it found is decided, and a majority of the current
 * voters has promised.
 */
const isUpToDate = (state: State, role: Leader): boolean =>
  lastFound(role) <= state.decided && hasMajority(currentConfiguration(state), role.promises);

/**
 * Returns whether this leader may answer reads based on its lease alone. A leader that has not yet learned of a
 * membership change may have a lease from replaced members, but then it is not up to date.
 */
export const mayAnswerByLease = (state: State): boolean =>
  state.role.is === "leader" && isUpToDate(state, state.role) && hasLease(state, state.role);

/**
 * Handles a read, which must see everything decided so far. This node must still be the leader, which is proved either
 * by its lease or by a heartbeat round that begins after the read.
 */
export function read(state: State, role: Leader, node: NodeId, number: number, settings: Settings, ctx: Ctx): void {
  if (!isUpToDate(state, role) || role.reads.length >= settings.maxWaiting) return; // The client retries.
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

// Phase 2: the leader proposes values for several slots at a time, and learns decisions in order.

/** Queues a command, unless it is already queued or in a slot, or the queue is full. */
export function enqueue(state: State, command: Command, { maxWaiting }: Settings): void {
  const isThere = state.waiting.some((waiting) => isSameCommand(waiting, command)) || isInFlight(state, command);
  if (!isThere && state.waiting.length < maxWaiting) state.waiting.push(command);
}

function isInFlight({ role, log, decided }: State, command: Command): boolean {
  if (role.is !== "leader") return false;
  for (let slot = decided + 1; slot < role.next; slot++) {
    const value = log[slot]?.value;
    if (value?.type === "command" && isSameCommand(value.command, command)) return true;
  }
  return false;
}

/**
 * Decides the slots that a majority has accepted, proposes as many values as fit in the window, and announces
 * decisions.
 */
export function progress(state: State, settings: Settings, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader") return;
  do {
    decide(state, role, settings, ctx);
  } while (propose(state, role, settings, ctx));
  if (state.decided > role.announced && settings.announces) announce(state, role, ctx);
  if (isOut(state, role, ctx.self)) stepDown(state, settings, ctx);
}

/**
 * Returns whether this leader must step down. A leader that is no longer a voter leads until a majority of the new
 * voters knows that they are voters.
 */
function isOut(state: State, { followers }: Leader, self: NodeId): boolean {
  const configuration = currentConfiguration(state);
  const knows = (voter: NodeId): boolean => (followers[voter]?.decided ?? 0) >= configuration.from - 1;
  return !configuration.voters.includes(self) && hasMajority(configuration, configuration.voters.filter(knows));
}

function decide(state: State, role: Leader, settings: Settings, ctx: Ctx): void {
  const before = state.decided;
  const known = state.configurations.length;
  const isChosen = (slot: number): boolean => hasMajority(configurationAt(state, slot), role.votes[slot] ?? []);
  while (isChosen(state.decided + 1)) {
    decideUpTo(state, state.decided + 1, settings);
    delete role.votes[state.decided];
    delete role.found[state.decided];
  }
  if (state.decided > before) tell(state, before, ctx);
  if (state.configurations.length > known) prepareAhead(state, role, ctx);
}

/** Requests promises from new voters before sending them any proposals. */
function prepareAhead(state: State, role: Leader, ctx: Ctx): void {
  const message = { type: "prepare", ballot: role.ballot, from: state.decided + 1, released: null } as const;
  for (const voter of asked(state, role, votersAhead(state), ctx.self))
    if (!role.promises.includes(voter)) ctx.send(voter, message);
}

/** Performs phase 2a for the next slot. @returns false if there is nothing to propose or no room in the window */
function propose(state: State, role: Leader, { window }: Settings, ctx: Ctx): boolean {
  const slot = role.next;
  const configuration = configurationAt(state, slot);
  if (slot > state.decided + window || !hasMajority(configuration, role.promises)) return false;
  const value = nextValue(state, role, slot);
  if (value === null) return false;
  role.next += 1;
  role.announced = state.decided;
  const { ballot } = role;
  accept(state, slot, { ballot, value }, ctx); // The leader is also an acceptor.
  role.votes[slot] = [ctx.self];
  const receivers = asked(state, role, configuration.voters, ctx.self);
  for (const to of receivers) ctx.send(to, { type: "accept", ballot, slot, value, decided: state.decided });
  return true;
}

/**
 * Returns the next value to propose. Proposals found in promises come first, because any of them may have been chosen.
 * Nothing was chosen for a gap below them, so a no-op fills it. Next come a requested membership, commands, and no-ops
 * while a decided membership is not yet in effect.
 */
function nextValue(state: State, role: Leader, slot: number): Value | null {
  const found = role.found[slot];
  if (found !== undefined) return found.value;
  if (slot < lastFound(role)) return { type: "noop" };
  const { wanted } = role;
  const pending = pendingConfiguration(state);
  if (wanted !== null && pending === null && !isReconfiguring(state, role)) {
    role.wanted = null;
    if (!isSameMembers(wanted, currentConfiguration(state))) return { type: "members", ...wanted };
  }
  const command = state.waiting.shift();
  if (command !== undefined) return { type: "command", command };
  return pending !== null && slot < pending.from ? { type: "noop" } : null;
}

/** Returns the highest slot reported in a promise. 0 if there is none. */
const lastFound = ({ found }: Leader): number => Math.max(0, ...Object.keys(found).map(Number));

/** Returns whether a membership is proposed in an undecided slot. */
function isReconfiguring({ log, decided }: State, { next }: Leader): boolean {
  for (let slot = decided + 1; slot < next; slot++) if (log[slot]?.value.type === "members") return true;
  return false;
}

function announce(state: State, role: Leader, ctx: Ctx): void {
  role.announced = state.decided;
  const { ballot } = role;
  for (const to of asked(state, role, membersAhead(state), ctx.self))
    ctx.send(to, { type: "decided", ballot, decided: state.decided });
}

/** Records that a node has accepted the proposal in a slot (phase 2b). */
export function noteAccepted(role: Leader, from: NodeId, slot: number): void {
  const votes = role.votes[slot];
  if (votes !== undefined && !votes.includes(from)) votes.push(from);
}

/**
 * Resends proposals from before the last heartbeat to voters that have not accepted them, because messages may have
 * been lost.
 */
function resend(state: State, role: Leader, ctx: Ctx): void {
  for (let slot = state.decided + 1; slot < role.resendBelow; slot++) askAgain(state, role, slot, ctx);
  role.resendBelow = role.next;
  const ahead = [currentConfiguration(state), pendingConfiguration(state) ?? currentConfiguration(state)];
  if (!ahead.every((configuration) => hasMajority(configuration, role.promises))) prepareAhead(state, role, ctx);
}

/** Repeats phase 2a for an undecided slot. */
function askAgain(state: State, role: Leader, slot: number, ctx: Ctx): void {
  const proposal = state.log[slot];
  const votes = role.votes[slot];
  if (proposal === undefined || votes === undefined || !isSame(proposal.ballot, role.ballot)) return;
  for (const to of asked(state, role, configurationAt(state, slot).voters, ctx.self))
    if (!votes.includes(to)) ctx.send(to, { type: "accept", slot, ...proposal, decided: state.decided });
}
