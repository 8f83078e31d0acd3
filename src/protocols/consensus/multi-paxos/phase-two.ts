/** Phase 2: a leader has values accepted slot by slot, several at a time, and learns in order what a majority has accepted. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import {
  asked,
  configurationAt,
  currentConfiguration,
  hasMajority,
  isSameMembers,
  membersAhead,
  pendingConfiguration,
  votersAhead,
} from "./configurations.ts";
import { accept, decideUpTo, tell } from "./decisions.ts";
import type { Settings } from "./options.ts";
import { stepDown } from "./standing.ts";
import { isSame, type Leader, type MultiPaxos, type State, type Value } from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;

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
