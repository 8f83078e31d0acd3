/** The proposer: sends its command straight to the acceptors, for the next instance that it takes to be free. Who loses one tries the next. */
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import { mayVote, vote } from "./acceptor.ts";
import { pickCommand } from "./coordinator.ts";
import { highestSeen, isBeyond } from "./learner.ts";
import type { Ctx, Settings } from "./options.ts";
import { isSameValue, type Proposal, type State, step } from "./vocabulary.ts";

export function propose(state: State, command: Command, ctx: Ctx, settings: Settings): void {
  const known = state.proposals.find((mine) => isSameCommand(mine.command, command));
  if (known !== undefined) return send(state, known, ctx, settings); // Messages have been lost.
  if (state.proposals.length >= settings.maxProposals) return; // The client asks again.
  state.proposals.push({ command, instance: null });
  placeProposals(state, ctx, settings);
}

/** Gives an instance to each command that has none, or whose instance another one has got. */
export function placeProposals(state: State, ctx: Ctx, settings: Settings): void {
  while (!state.isRestored) {
    const open = state.proposals.find((mine) => isUnplaced(state, mine));
    const instance = highestSeen(state) + 1;
    if (open === undefined || isBeyond(state, instance, settings)) return;
    open.instance = instance;
    send(state, open, ctx, settings);
  }
}

function isUnplaced({ upTo, chosen }: State, { command, instance }: Proposal): boolean {
  if (instance === null || instance <= upTo) return true;
  const value = chosen[instance];
  return value !== undefined && !isSameValue(value, command);
}

function send(state: State, { command, instance }: Proposal, ctx: Ctx, settings: Settings): void {
  if (instance === null) return;
  ctx.broadcast({ type: "propose", instance, command });
  take(state, instance, command, ctx, settings);
}

/** Phase 2b of a fast round: the first command that arrives for an instance gets the vote, if the coordinator has sent "any". */
export function take(state: State, instance: number, command: Command, ctx: Ctx, settings: Settings): void {
  if (state.open === null) return pickCommand(state, command, ctx, settings);
  const cast = { instance, round: { ...state.promised, step: step.fast }, value: command };
  if (instance >= state.open && mayVote(state, cast, settings)) vote(state, cast, ctx, settings);
}
