/**
 * The coordinator: phase 1 once for all instances, then phase 2a: a value for each instance in which something may have been chosen,
 * and "any" for all that follow, once a fast quorum of acceptors is with it. Before that it picks the commands itself ("Progress").
 */
import type { NodeId } from "../../../core/protocol.ts";
import { type Ballot, follow, isSameBallot, isStranger, nodesOf, raise, stepDown } from "../parts/ballots.ts";
import { mayVote, vote, votesOf } from "./acceptor.ts";
import { highestSeen, isOutside } from "./learner.ts";
import type { Ctx, Settings } from "./options.ts";
import { pick } from "./picking-a-value.ts";
import { isSameValue, type Promised, type State, step, type Value } from "./vocabulary.ts";

/** Phase 1a. It promises first, so its journal keeps the ballot from being used again. */
export function campaign(state: State, ctx: Ctx, settings: Settings): void {
  stepDown(state, ctx, settings);
  state.count += 1;
  const ballot: Ballot = { count: state.count, node: ctx.self };
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot });
  state.coordinator = { is: "preparing", promises: {} };
  ctx.broadcast({ type: "prepare", ballot });
  notePromise(state, ctx.self, ballot, { upTo: state.upTo, votes: votesOf(state) }, ctx, settings);
}

/** It may have votes that no acceptor may cast: nothing of it can be trusted. */
const isImplausible = ({ upTo, votes }: Promised, { window }: Settings): boolean =>
  votes.some(({ instance, round }) => instance <= upTo || instance > upTo + window || round.step > step.coordinated);

export function notePromise(
  state: State,
  from: NodeId,
  ballot: Ballot,
  promised: Promised,
  ctx: Ctx,
  settings: Settings,
) {
  const { coordinator } = state;
  if (!isSameBallot(ballot, state.promised) || isStranger(from, ctx) || isImplausible(promised, settings)) return;
  if (coordinator.is === "preparing") {
    coordinator.promises[from] = promised;
    leadIfPromised(state, ctx, settings);
  } else if (coordinator.is === "leading" && !coordinator.joined.includes(from)) {
    coordinator.joined.push(from);
    openFastRound(state, ctx, settings);
  }
}

/** Phase 2a, once a classic quorum has promised. Of instances that an acceptor knows to be chosen it has to learn first. */
export function leadIfPromised(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "preparing") return;
  const nodes = nodesOf(ctx);
  const quorums = settings.quorumsOf(nodes);
  const Q = Object.values(coordinator.promises);
  if (Q.length < quorums.classic) return;
  const ahead = Object.entries(coordinator.promises).find(([, { upTo }]) => upTo > state.upTo);
  if (ahead !== undefined) return ctx.send(Number(ahead[0]), { type: "catchUp", from: state.upTo + 1 });
  const first = state.upTo + 1;
  const last = Math.max(state.upTo, ...Q.flatMap(({ votes }) => votes.map(({ instance }) => instance)));
  const joined = Object.keys(coordinator.promises).map(Number);
  state.coordinator = { is: "leading", next: last + 1, joined, watched: null };
  ctx.cancelTimer("patience");
  ctx.setTimer("heartbeat", settings.heartbeatMs);
  follow(state, ctx);
  for (let instance = first; instance <= last; instance++) {
    const votes = Q.map((promised) => promised.votes.find((cast) => cast.instance === instance) ?? null);
    const picked = pick(votes, nodes, quorums);
    ask(state, instance, picked.is === "value" ? picked.value : null, ctx, settings);
  }
  openFastRound(state, ctx, settings);
}

/** Phase 2a of a classic round. */
function ask(state: State, instance: number, value: Value, ctx: Ctx, settings: Settings): void {
  const cast = { instance, round: { ...state.promised, step: step.picked }, value };
  if (mayVote(state, cast, settings)) vote(state, cast, ctx, settings);
  ctx.broadcast({ type: "accept", ...cast });
}

/** Phase 2a of the fast rounds of all instances that have no value yet: acceptors may take what proposers send them. */
function openFastRound(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || state.open !== null) return;
  if (coordinator.joined.length < settings.quorumsOf(nodesOf(ctx)).fast) return;
  state.open = coordinator.next;
  ctx.broadcast({ type: "any", ballot: state.promised, from: coordinator.next });
}

/** While too few acceptors are there for fast rounds, the coordinator gives commands their instances. */
export function pickCommand(state: State, command: Value, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || isOutside(state, coordinator.next, settings)) return;
  if (Object.values(state.votes).some(({ value }) => isSameValue(value, command))) return; // It is under way.
  const instance = coordinator.next;
  coordinator.next += 1;
  ask(state, instance, command, ctx, settings);
}

/** Where an instance hangs, the coordinator waits a while, and then begins a higher ballot for all that is undecided. */
export function watch(state: State, ctx: Ctx, { patienceMs }: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || coordinator.watched !== null || highestSeen(state) === state.upTo) return;
  coordinator.watched = state.upTo;
  ctx.setTimer("recover", patienceMs);
}

export function unhang(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading") return;
  const hangs = coordinator.watched === state.upTo && highestSeen(state) > state.upTo;
  coordinator.watched = null;
  if (hangs) campaign(state, ctx, settings);
}
