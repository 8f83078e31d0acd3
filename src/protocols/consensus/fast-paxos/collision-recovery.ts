/**
 * "Collision Recovery": proposers whose commands reach the acceptors in different orders split a fast round, so that no value can get a
 * quorum. What acceptors have voted for in round i says as well what a promise for round i + 1 would say, so phase 1 is not needed:
 * the coordinator picks and asks (+2 delays), or each acceptor picks by the same rule and votes (+1 delay).
 */
import type { NodeId } from "../../../core/protocol.ts";
import { isSameBallot, nodesOf, type Round } from "../parts/ballots.ts";
import { mayVote, vote } from "./acceptor.ts";
import type { Ctx, Settings } from "./options.ts";
import { lowest, pick } from "./picking-a-value.ts";
import { isSameValue, type State, type Step, step, type Value } from "./vocabulary.ts";

type Votes = Readonly<Record<NodeId, Value>>;

/** Whatever those say that have not been heard, no value gets a fast quorum any more. */
function isCollision(votes: Votes, nodes: number, fastQuorum: number): boolean {
  const values = Object.values(votes);
  const most = Math.max(0, ...values.map((value) => values.filter((other) => isSameValue(other, value)).length));
  return most + nodes - values.length < fastQuorum;
}

export function recover(state: State, instance: number, ctx: Ctx, settings: Settings): void {
  const heard = state.learnt[instance];
  if (heard === undefined || !isSameBallot(heard.ballot, state.promised)) return;
  const nodes = nodesOf(ctx);
  const quorums = settings.quorumsOf(nodes);

  /** What is voted for in the round after `at`, once a quorum of that has voted in `at` and collided. */
  function pickedAfter(at: Step, quorum: number): { value: Value } | null {
    const votes: Votes = heard?.votes[at] ?? {};
    const values = Object.values(votes);
    if (values.length < quorum || !isCollision(votes, nodes, quorums.fast)) return null;
    const round: Round = { ...state.promised, step: at };
    const picked = pick(
      values.map((value) => ({ round, value })),
      nodes,
      quorums,
    );
    return { value: picked.is === "value" ? picked.value : lowest(values) };
  }

  const isUncoordinated = settings.recovery === "uncoordinated";
  if (isUncoordinated) {
    const picked = pickedAfter(step.fast, quorums.fast);
    const round: Round = { ...state.promised, step: step.uncoordinated };
    if (picked !== null && mayVote(state, { instance, round, ...picked }, settings))
      vote(state, { instance, round, ...picked }, ctx, settings);
  }
  if (state.coordinator.is !== "leading") return;
  const picked = pickedAfter(isUncoordinated ? step.uncoordinated : step.fast, quorums.classic);
  const cast = { instance, round: { ...state.promised, step: step.coordinated }, value: picked?.value ?? null };
  if (picked === null || !mayVote(state, cast, settings)) return;
  vote(state, cast, ctx, settings); // Journalled before it asks: so it cannot ask for another value after a crash.
  ctx.broadcast({ type: "accept", ...cast });
}
