/** Learning what is chosen: every node hears the votes of all acceptors, and a quorum of equal votes in one round is a choice. */
import type { NodeId } from "../../../core/protocol.ts";
import { isBelow, isSameBallot, isStranger, nodesOf } from "../parts/ballots.ts";
import type { Ctx, Settings } from "./options.ts";
import { type CastVote, isFast, isSameValue, type State, step, type Value } from "./vocabulary.ts";

/** Of instances that are chosen, or so far ahead that this node has to catch up first. */
export const isOutside = (state: State, instance: number, settings: Settings): boolean =>
  instance <= state.upTo || isBeyond(state, instance, settings);
export const isBeyond = ({ upTo }: State, instance: number, { window, instances }: Settings): boolean =>
  instance > upTo + window || (instances > 0 && instance > instances);

const isKnown = (state: State, instance: number): boolean => state.chosen[instance] !== undefined;
const isNoRound = (at: number): boolean => at > step.coordinated;

/** Phase 2b arrives at a learner. */
export function hear(state: State, from: NodeId, { instance, round, value }: CastVote, ctx: Ctx, settings: Settings) {
  if (
    isStranger(from, ctx) ||
    isOutside(state, instance, settings) ||
    isKnown(state, instance) ||
    isNoRound(round.step)
  )
    return;
  let heard = state.learnt[instance];
  if (heard !== undefined && isBelow(round, heard.ballot)) return; // Late: an acceptor has moved on.
  if (heard === undefined || !isSameBallot(heard.ballot, round)) {
    heard = { ballot: { count: round.count, node: round.node }, votes: {} };
    state.learnt[instance] = heard;
  }
  heard.votes[round.step] ??= {};
  const votes = heard.votes[round.step] as Record<NodeId, Value>;
  votes[from] = value;
  const { classic, fast } = settings.quorumsOf(nodesOf(ctx));
  const equal = Object.values(votes).filter((other) => isSameValue(other, value));
  if (equal.length >= (isFast(round) ? fast : classic)) learn(state, instance, value, ctx);
}

/** The value is chosen: it is journalled, and emitted once all before it are. */
export function learn(state: State, instance: number, value: Value, ctx: Ctx): void {
  if (instance <= state.upTo || isKnown(state, instance)) return;
  state.chosen[instance] = value;
  delete state.learnt[instance];
  ctx.persist({ type: "chosen", instance, value });
  advance(state, ctx);
}

export function advance(state: State, ctx: Ctx | null): void {
  for (let next = state.chosen[state.upTo + 1]; next !== undefined; next = state.chosen[state.upTo + 1]) {
    const command = next;
    state.upTo += 1;
    delete state.chosen[state.upTo];
    delete state.votes[state.upTo];
    state.log.push(command);
    if (command === null) continue;
    state.proposals = state.proposals.filter((mine) => !isSameValue(mine.command, command));
    ctx?.emit({ type: "decided", index: state.upTo, command });
  }
}

/** The highest instance that this node has heard of. */
export function highestSeen(state: State): number {
  const { votes, learnt, chosen, proposals, coordinator, upTo } = state;
  const keys = [votes, learnt, chosen].map((byInstance) => Number(Object.keys(byInstance).at(-1) ?? 0));
  const mine = proposals.map(({ instance }) => instance ?? 0);
  return Math.max(upTo, coordinator.is === "leading" ? coordinator.next - 1 : 0, ...keys, ...mine);
}
