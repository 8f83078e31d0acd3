/**
 * Main nodes and auxiliaries. A quorum is a majority of the voters, and the main nodes among them are just that many: so while
 * all main nodes answer, auxiliaries are not asked at all. When one is silent they are, for as long as it takes to decide on members
 * without it: the other main nodes, and as many auxiliaries less as make the other main nodes a majority again.
 * Lamport & Massa, "Cheap Paxos", DSN 2004, §3 and §4.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { Members } from "../family/replicated-log.ts";
import { currentConfiguration, isAuxiliary, isSameMembers, pendingConfiguration } from "./configurations.ts";
import type { Settings } from "./options.ts";
import { askAgain } from "./phase-two.ts";
import type { Leader, MultiPaxos, State } from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;

/** These main nodes with one auxiliary less, and the others as learners, so that they are heard of when they are back. */
function membersWith(mains: readonly NodeId[], allMains: readonly NodeId[], auxiliaries: readonly NodeId[]): Members {
  const voters = [...mains, ...auxiliaries.slice(0, mains.length - 1)];
  return {
    voters: voters.sort((a, b) => a - b),
    learners: allMains.filter((node) => !mains.includes(node)),
  };
}

/** At a leader, with each heartbeat: engages auxiliaries while a main node is silent, and has the members changed. */
export function replaceFailed(state: State, role: Leader, { suspectAfter, window }: Settings, ctx: Ctx): void {
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
