/**
 * Phase 1: a majority promises a ballot to the candidate, once for all slots, and the candidate adopts the proposals
 * that the promises report.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { askToCatchUp, batch, type Ctx, charsOf, leave, promise, see, stepDown } from "./decisions.ts";
import { lead } from "./leadership.ts";
import {
  asked,
  type Ballot,
  type Candidate,
  currentConfiguration,
  hasMajority,
  isAuxiliary,
  isBelow,
  type Leader,
  type MultiPaxos,
  type Proposal,
  type Settings,
  type SlotProposal,
  type State,
  votersAhead,
} from "./vocabulary.ts";

type Promised = Extract<MultiPaxos["message"], { type: "promise" }>;

const mayStand = (state: State, self: NodeId): boolean =>
  currentConfiguration(state).voters.includes(self) && !isAuxiliary(state, self);

/**
 * Performs phase 1a with a higher ballot than any that this node knows of. The candidate promises first, so that its
 * journal prevents it from reusing the ballot.
 * @param released the ballot of the leader that requested the campaign
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

/**
 * Informs the voters that they are voters. A node that is not a voter and has no leader does this, because there may be
 * no other node that can.
 */
function handOver(state: State, { boundsMs }: Settings, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return;
  leave(state, ctx);
  ctx.setTimer("election", [boundsMs, 2 * boundsMs]);
  for (const voter of currentConfiguration(state).voters)
    if (!isAuxiliary(state, voter)) ctx.send(voter, { type: "learn", decided: state.decided, entries: [] });
}

/** Requests promises from the voters that have not yet promised. */
function ask(state: State, role: Candidate, { answerMs }: Settings, ctx: Ctx): void {
  const { ballot, released } = role;
  ctx.setTimer("election", [answerMs, 2 * answerMs]);
  for (const voter of asked(state, role, votersAhead(state), ctx.self))
    if (!role.promises.includes(voter)) ctx.send(voter, { type: "prepare", ballot, from: state.decided + 1, released });
}

/**
 * Retries an attempt that has timed out, with the same ballot unless a higher one is known. The candidate now includes
 * auxiliaries.
 */
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

/** Returns the proposals that this node has accepted for slots from `from` onward and does not know to be decided. */
function tentative({ log, decided }: State, from: number): SlotProposal[] {
  return Object.entries(log)
    .map(([slot, proposal]) => ({ slot: Number(slot), ...proposal }))
    .filter(({ slot }) => slot > decided && slot >= from);
}

/**
 * Performs phase 1b for all slots at once. The candidate separately requests any proposals that do not fit in the
 * message.
 */
export function promiseTo(state: State, to: NodeId, ballot: Ballot, from: number, ctx: Ctx): void {
  const all = tentative(state, from);
  const accepted = batch(all, charsOf);
  const rest = all[accepted.length]?.slot ?? null;
  ctx.send(to, { type: "promise", ballot, decided: state.decided, accepted, rest });
}

/** Handles a promise at the candidate. */
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

/**
 * The candidate ignores reported proposals that are more than this many times `tail` beyond the highest decided slot
 * that it knows of. In a quorum of correct nodes, no acceptor has such proposals.
 */
const REACH_TAILS = 4;

/** Keeps the proposal with the highest ballot for a slot, because that one may have been chosen. */
function keepHigher(found: Record<number, Proposal>, slot: number, proposal: Proposal): void {
  const known = found[slot];
  if (known === undefined || isBelow(known.ballot, proposal.ballot)) found[slot] = proposal;
}

/**
 * Becomes the leader once a majority has promised and this node has learned everything that any of them knows to be
 * decided.
 */
export function leadIfPromised(state: State, settings: Settings, ctx: Ctx): void {
  const { role } = state;
  if (role.is !== "candidate" || !hasMajority(currentConfiguration(state), role.promises)) return;
  if (state.decided < role.target) return learnFirst(state, role, ctx);
  lead(state, role, settings, ctx);
}

/**
 * Returns whether other nodes have decided slots that this leader has not proposed. In that case, the members that it
 * knows of were replaced long ago, and the proposals that they accepted do not include the decisions of the new
 * members.
 */
export const isBehind = ({ next }: Leader, { decided }: Promised): boolean => decided >= next;

/** Gives up the candidacy until this node has caught up. */
export function catchUpFirst(state: State, from: NodeId, settings: Settings, ctx: Ctx): void {
  const sources = isAuxiliary(state, from) ? votersAhead(state).filter((node) => !isAuxiliary(state, node)) : [from];
  stepDown(state, settings, ctx);
  for (const node of sources) if (node !== ctx.self) askToCatchUp(state, node, ctx);
}

/**
 * Requests the decided values. An auxiliary knows that slots are decided, but not their values, so the candidate asks
 * all main nodes that have promised.
 */
function learnFirst(state: State, { promises, source, target }: Candidate, ctx: Ctx): void {
  if (state.decided >= target) return;
  const sources = isAuxiliary(state, source) ? promises.filter((node) => !isAuxiliary(state, node)) : [source];
  for (const node of sources) if (node !== ctx.self) askToCatchUp(state, node, ctx);
}
