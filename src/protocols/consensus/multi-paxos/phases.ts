/** Phase 1: a candidate has its ballot promised by a majority, once for all slots, and takes over what it finds. */
import type { NodeId } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import { accept, askToCatchUp, batch, charsOf, decideUpTo, promise, tell } from "./decisions.ts";
import {
  asked,
  configurationAt,
  currentConfiguration,
  hasMajority,
  isAuxiliary,
  isSameMembers,
  lead,
  membersAhead,
  pendingConfiguration,
  votersAhead,
} from "./leadership.ts";
import {
  type Ballot,
  type Candidate,
  type Ctx,
  isBelow,
  isSame,
  type Leader,
  leave,
  type MultiPaxos,
  type Proposal,
  type Settings,
  type SlotProposal,
  type State,
  see,
  stepDown,
  type Value,
} from "./vocabulary.ts";

type Promised = Extract<MultiPaxos["message"], { type: "promise" }>;

const mayStand = (state: State, self: NodeId): boolean =>
  currentConfiguration(state).voters.includes(self) && !isAuxiliary(state, self);

/**
 * Phase 1a with a ballot above all that this node knows. It promises first itself, so its journal keeps the ballot from being used again.
 * @param released of the leader that has asked for it.
 */
export function campaign(state: State, settings: Settings, ctx: Ctx, released: Ballot | null = null): void {
  if (!mayStand(state, ctx.self)) return handOver(state, settings, ctx);
  const { decided } = state;
  const wasEngaged = state.role.is !== "follower" && state.role.isEngaged;
  const wasHalted = state.role.is === "candidate" && state.role.isHalted;
  leave(state, ctx);
  state.isBound = false;
  ctx.cancelTimer("bound");
  state.round += 1;
  const ballot = { round: state.round, node: ctx.self };
  promise(state, ballot, ctx);
  see(state, null, ballot.round, ctx);
  state.role = {
    is: "candidate",
    ballot,
    promises: [ctx.self],
    found: Object.fromEntries(
      tentative(state, decided + 1).map(({ slot, ballot, value }) => [slot, { ballot, value }]),
    ),
    isEngaged: wasEngaged,
    target: decided,
    source: ctx.self,
    isHalted: wasHalted,
    released,
  };
  ask(state, state.role, settings, ctx);
  leadIfPromised(state, settings, ctx);
}

/** No voter itself and without a leader, it sees to it that the voters know that they are: nobody else may be left who does. */
function handOver(state: State, { boundsMs }: Settings, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return;
  leave(state, ctx);
  ctx.setTimer("election", [boundsMs, 2 * boundsMs]);
  for (const voter of currentConfiguration(state).voters)
    if (!isAuxiliary(state, voter)) ctx.send(voter, { type: "learn", decided: state.decided, entries: [] });
}

/** To those that have not promised yet. */
function ask(state: State, role: Candidate, { answerMs }: Settings, ctx: Ctx): void {
  const { ballot, released } = role;
  ctx.setTimer("election", [answerMs, 2 * answerMs]);
  for (const voter of asked(state, role, votersAhead(state), ctx.self))
    if (!role.promises.includes(voter)) ctx.send(voter, { type: "prepare", ballot, from: state.decided + 1, released });
}

/** An attempt has gone by. With the same ballot, unless a higher one is known; and now of auxiliaries as well. */
export function retry(state: State, settings: Settings, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "candidate") return campaign(state, settings, ctx);
  const configuration = currentConfiguration(state);
  const promised = configuration.voters.filter((voter) => role.promises.includes(voter)).length;
  const isShort = !hasMajority(configuration, role.promises);
  if (
    (isShort || state.decided < role.target) &&
    (role.isEngaged || state.auxiliaries.length === 0) &&
    !role.isHalted
  ) {
    role.isHalted = true;
    ctx.emit({ type: "halted", promised, needed: Math.floor(configuration.voters.length / 2) + 1 });
  }
  role.isEngaged = role.isEngaged || (isShort && state.auxiliaries.length > 0);
  if (state.round > role.ballot.round) return campaign(state, settings, ctx);
  ask(state, role, settings, ctx);
  if (!isShort) learnFirst(state, role, ctx);
}

/** What this acceptor has accepted from a slot on and does not know to be decided. */
function tentative({ log, decided }: State, from: number): SlotProposal[] {
  return Object.entries(log)
    .map(([slot, proposal]) => ({ slot: Number(slot), ...proposal }))
    .filter(({ slot }) => slot > decided && slot >= from);
}

/** Phase 1b. Of all slots, not of one: what is too much for a message is asked for again. */
export function promiseTo(state: State, to: NodeId, ballot: Ballot, from: number, ctx: Ctx): void {
  const all = tentative(state, from);
  const accepted = batch(all, charsOf);
  const rest = all[accepted.length]?.slot ?? null;
  ctx.send(to, { type: "promise", ballot, decided: state.decided, accepted, rest });
}

export function notePromise(
  state: State,
  role: Candidate | Leader,
  from: NodeId,
  { accepted, decided, rest }: Promised,
  { tail }: Settings,
  ctx: Ctx,
): void {
  const above = role.is === "candidate" ? Math.max(state.decided, role.target, decided) : state.decided;
  for (const { slot, ballot, value } of accepted)
    if (slot > state.decided && slot <= above + REACH_TAILS * tail) keepHigher(role.found, slot, { ballot, value });
  if (role.is === "candidate" && decided > role.target) {
    role.target = decided;
    role.source = from;
  }
  if (rest !== null) return ctx.send(from, { type: "prepare", ballot: role.ballot, from: rest, released: null });
  if (!role.promises.includes(from)) role.promises.push(from);
}

/** No acceptor of a quorum has anything so far beyond what one of them knows to be decided, unless it lies. */
const REACH_TAILS = 4;

/** The value of the highest ballot is the one that may have been chosen. */
function keepHigher(found: Record<number, Proposal>, slot: number, proposal: Proposal): void {
  const known = found[slot];
  if (known === undefined || isBelow(known.ballot, proposal.ballot)) found[slot] = proposal;
}

/** Leads once a majority has promised, and it knows all that any of them knows to be decided. */
export function leadIfPromised(state: State, settings: Settings, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "candidate" || !hasMajority(currentConfiguration(state), role.promises)) return;
  if (state.decided < role.target) return learnFirst(state, role, ctx);
  lead(state, role, settings, ctx);
}

/**
 * Whether others have gone further than this leader has proposed. So it is for a leader that was alone the members it knew of: those
 * that come next have replaced it long ago, and what they have decided is not among what they have accepted beyond.
 */
export const isBehind = ({ next }: Leader, { decided }: Promised): boolean => decided >= next;

export function catchUpFirst(state: State, from: NodeId, settings: Settings, ctx: Ctx): void {
  const sources = isAuxiliary(state, from) ? votersAhead(state).filter((node) => !isAuxiliary(state, node)) : [from];
  stepDown(state, settings, ctx);
  for (const node of sources) if (node !== ctx.self) askToCatchUp(state, node, ctx);
}

/** An auxiliary knows that slots are decided, and not what; then all main nodes that have promised are asked. */
function learnFirst(state: State, { promises, source, target }: Candidate, ctx: Ctx): void {
  if (state.decided >= target) return;
  const sources = isAuxiliary(state, source) ? promises.filter((node) => !isAuxiliary(state, node)) : [source];
  for (const node of sources) if (node !== ctx.self) askToCatchUp(state, node, ctx);
}

// Phase 2: a leader has values accepted slot by slot, several at a time, and learns in order what a majority has accepted.

/** Puts a command in the queue, unless it is there or in a slot already, or there is no room. */
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

/** Decides what a majority has accepted, proposes what there is room for, and says what has come of it. */
export function progress(state: State, settings: Settings, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "leader") return;
  do {
    decide(state, role, settings, ctx);
  } while (propose(state, role, settings, ctx));
  if (state.decided > role.announced && settings.announces) announce(state, role, ctx);
  if (isOut(state, role, ctx.self)) stepDown(state, settings, ctx);
}

/** A leader that is no voter any more leads until a majority of the voters know that they are. */
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

/** New voters promise this ballot before there is anything for them to accept. */
function prepareAhead(state: State, role: Leader, ctx: Ctx): void {
  const message = { type: "prepare", ballot: role.ballot, from: state.decided + 1, released: null } as const;
  for (const voter of asked(state, role, votersAhead(state), ctx.self))
    if (!role.promises.includes(voter)) ctx.send(voter, message);
}

/** Phase 2a for the next slot. False where there is nothing to propose, or no room in the window. */
function propose(state: State, role: Leader, { window }: Settings, ctx: Ctx): boolean {
  const slot = role.next;
  const configuration = configurationAt(state, slot);
  if (slot > state.decided + window || !hasMajority(configuration, role.promises)) return false;
  const value = nextValue(state, role, slot);
  if (value === null) return false;
  role.next += 1;
  role.announced = state.decided;
  const { ballot } = role;
  accept(state, slot, { ballot, value }, ctx); // The leader is an acceptor too.
  role.votes[slot] = [ctx.self];
  const receivers = asked(state, role, configuration.voters, ctx.self);
  for (const to of receivers) ctx.send(to, { type: "accept", ballot, slot, value, decided: state.decided });
  return true;
}

/**
 * What the promises have told of comes first: any of it may have been chosen. A gap below has not, and a no-op closes it.
 * Then members, then commands; and no-ops for as long as members wait to come into effect.
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

/** The highest slot of which a promise has told, and that is not decided; 0: none. */
export const lastFound = ({ found }: Leader): number => Math.max(0, ...Object.keys(found).map(Number));

/** Whether members are proposed in a slot that is not decided. */
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

/** Phase 2b has come back. */
export function noteAccepted(role: Leader, from: NodeId, slot: number): void {
  const votes = role.votes[slot];
  if (votes !== undefined && !votes.includes(from)) votes.push(from);
}

/** Voters that have not accepted what was proposed before the last heartbeat are asked again: it may be lost. */
export function resend(state: State, role: Leader, ctx: Ctx): void {
  for (let slot = state.decided + 1; slot < role.resendBelow; slot++) askAgain(state, role, slot, ctx);
  role.resendBelow = role.next;
  const ahead = [currentConfiguration(state), pendingConfiguration(state) ?? currentConfiguration(state)];
  if (!ahead.every((configuration) => hasMajority(configuration, role.promises))) prepareAhead(state, role, ctx);
}

/** In a slot that is not decided. */
export function askAgain(state: State, role: Leader, slot: number, ctx: Ctx): void {
  const proposal = state.log[slot];
  const votes = role.votes[slot];
  if (proposal === undefined || votes === undefined || !isSame(proposal.ballot, role.ballot)) return;
  for (const to of asked(state, role, configurationAt(state, slot).voters, ctx.self))
    if (!votes.includes(to)) ctx.send(to, { type: "accept", slot, ...proposal, decided: state.decided });
}
