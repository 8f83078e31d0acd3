/**
 * The roles of a node: coordinator, acceptor and learner.
 *
 * The coordinator runs phase 1 once for all instances, then phase 2a. It proposes a value for each instance that may
 * already have one. Once a fast quorum of acceptors has promised, it sends "any" for all later instances. Until then it
 * picks the commands itself (section "Progress" of the paper).
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import {
  type Ballot,
  follow,
  isBelow,
  isEarlier,
  isSameBallot,
  isStale,
  isStranger,
  nodesOf,
  type Round,
  raise,
  stepDown,
} from "../parts/ballots.ts";
import {
  BATCH,
  type CastVote,
  type Ctx,
  type FastPaxos,
  isFast,
  isSameValue,
  lowest,
  type Promised,
  pick,
  type Settings,
  type State,
  type Step,
  step,
  type Value,
} from "./vocabulary.ts";

// Section "Collision Recovery" of the paper. If commands reach the acceptors in different orders, the votes in a fast
// round are split, so that no value can get a quorum. Votes in round i also count as promises for round i + 1, so phase
// 1 is not needed. Either the coordinator picks a value and proposes it (2 more delays), or each acceptor picks a value
// by the same rule and votes for it (1 more delay).

type Votes = Readonly<Record<NodeId, Value>>;

/**
 * Returns whether it is now impossible for any value to get a fast quorum, no matter how the remaining acceptors vote.
 */
function isCollision(votes: Votes, nodes: number, fastQuorum: number): boolean {
  const values = Object.values(votes);
  const most = Math.max(0, ...values.map((value) => values.filter((other) => isSameValue(other, value)).length));
  return most + nodes - values.length < fastQuorum;
}

/** Resolves a collision in an instance, if the votes reveal one. */
export function recover(state: State, instance: number, ctx: Ctx, settings: Settings): void {
  const heard = state.learnt[instance];
  if (heard === undefined || !isSameBallot(heard.ballot, state.promised)) return;
  const nodes = nodesOf(ctx);
  const quorums = settings.quorumsOf(nodes);

  /**
   * Returns the value to vote for in the round after `at`, once enough acceptors for a quorum in that round have voted
   * in `at` and their votes collide.
   */
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
  // Journaled first, so that this node cannot propose a different value after a restart.
  vote(state, cast, ctx, settings);
  ctx.broadcast({ type: "accept", ...cast });
}

/** Performs phase 1a. The node promises first, so that its journal prevents it from reusing the ballot. */
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

/**
 * Returns whether a promise contains votes that no correct acceptor would cast. Such a promise is ignored as a whole.
 */
const isImplausible = ({ upTo, votes }: Promised, { window }: Settings): boolean =>
  votes.some(({ instance, round }) => instance <= upTo || instance > upTo + window || round.step > step.coordinated);

/** Handles a promise at the coordinator. */
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

/**
 * Performs phase 2a once a classic quorum has promised. The coordinator must first learn the instances that any of
 * these acceptors knows to be chosen.
 */
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

/** Performs phase 2a of a classic round. */
function ask(state: State, instance: number, value: Value, ctx: Ctx, settings: Settings): void {
  const cast = { instance, round: { ...state.promised, step: step.picked }, value };
  if (mayVote(state, cast, settings)) vote(state, cast, ctx, settings);
  ctx.broadcast({ type: "accept", ...cast });
}

/**
 * Performs phase 2a of the fast rounds for all instances without a value. From then on, acceptors accept directly from
 * proposers.
 */
function openFastRound(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || state.open !== null) return;
  if (coordinator.joined.length < settings.quorumsOf(nodesOf(ctx)).fast) return;
  state.open = coordinator.next;
  ctx.broadcast({ type: "any", ballot: state.promised, from: coordinator.next });
}

/** Assigns an instance to a command. The coordinator does this until enough acceptors for fast rounds have promised. */
export function pickCommand(state: State, command: Value, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || isOutside(state, coordinator.next, settings)) return;
  if (Object.values(state.votes).some(({ value }) => isSameValue(value, command))) return; // It is in progress.
  const instance = coordinator.next;
  coordinator.next += 1;
  ask(state, instance, command, ctx, settings);
}

/**
 * Starts a timer if an instance is undecided. If there has been no progress when the timer expires, the coordinator
 * begins a higher ballot.
 */
export function watch(state: State, ctx: Ctx, { patienceMs }: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading" || coordinator.watched !== null || highestSeen(state) === state.upTo) return;
  coordinator.watched = state.upTo;
  ctx.setTimer("recover", patienceMs);
}

/** Begins a higher ballot if this coordinator's instances have made no progress. */
export function unhang(state: State, ctx: Ctx, settings: Settings): void {
  const { coordinator } = state;
  if (coordinator.is !== "leading") return;
  const hangs = coordinator.watched === state.upTo && highestSeen(state) > state.upTo;
  coordinator.watched = null;
  if (hangs) campaign(state, ctx, settings);
}

// Catching up: a node that was disconnected receives chosen values from the log, or a snapshot if the log has been
// compacted.

/** Returns the index before the first log entry. */
const baseOf = ({ snapshot }: State): number => snapshot?.index ?? 0;

/** Sends the decided values from this instance onward, after the snapshot if it replaces some of them. */
export function teach(state: State, to: NodeId, from: number, ctx: Ctx): void {
  const base = baseOf(state);
  if (state.snapshot !== null && from <= base) ctx.send(to, { type: "snapshot", ...state.snapshot });
  const first = Math.max(from, base + 1);
  if (first > state.upTo) return;
  ctx.send(to, { type: "chosen", from: first, values: state.log.slice(first - base - 1, first - base - 1 + BATCH) });
}

/** Learns consecutive decided values from another node. */
export function learnAll(state: State, teacher: NodeId, first: number, values: readonly Value[], ctx: Ctx): void {
  if (first > state.upTo + 1) return; // A gap: the values in between were lost or delayed.
  for (const [at, value] of values.entries()) learn(state, first + at, value, ctx);
  if (values.length === BATCH) ctx.send(teacher, { type: "catchUp", from: state.upTo + 1 });
}

/** Replaces everything up to the index with a snapshot. */
export function install(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
  if (index <= state.upTo) return;
  state.upTo = index;
  state.snapshot = { index, snapshot };
  state.log = [];
  for (const byInstance of [state.votes, state.learnt, state.chosen])
    for (const instance of Object.keys(byInstance).map(Number)) if (instance <= index) delete byInstance[instance];
  ctx.compact(journalOf(state));
  ctx.emit({ type: "installed", index, snapshot });
  advance(state, ctx);
}

/** Drops all instances up to the index from the log and stores the snapshot that replaces them. */
export function compact(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
  const base = baseOf(state);
  if (index <= base || index > state.upTo) return;
  state.log.splice(0, index - base);
  state.snapshot = { index, snapshot };
  ctx.compact(journalOf(state));
}

function journalOf(state: State): FastPaxos["record"][] {
  const { snapshot, promised, log, chosen } = state;
  const base = baseOf(state);
  return [
    ...(snapshot === null ? [] : [{ type: "snapshot" as const, ...snapshot }]),
    { type: "promised", ballot: promised },
    ...log.map((value, at) => ({ type: "chosen" as const, instance: base + 1 + at, value })),
    ...Object.entries(chosen).map(([instance, value]) => ({
      type: "chosen" as const,
      instance: Number(instance),
      value,
    })),
    ...votesOf(state).map((cast) => ({ type: "voted" as const, ...cast })),
  ];
}

/** Emits the leader, the snapshot and all later decisions again. Runs after a restart. */
export function emitAll(state: State, ctx: Ctx): void {
  if (state.leader !== null) ctx.emit({ type: "led", leader: state.leader, term: state.promised.count });
  if (state.snapshot !== null) ctx.emit({ type: "installed", ...state.snapshot });
  const base = baseOf(state);
  state.log.forEach((command, at) => {
    if (command !== null) ctx.emit({ type: "decided", index: base + 1 + at, command });
  });
}

// The acceptor: phases 1b and 2b. It journals promises and votes before it sends them.

/** Performs phase 1b: promises to ignore all lower ballots, and reports this node's votes. */
export function promise(state: State, ballot: Ballot, ctx: Ctx): void {
  raise(state, ballot);
  ctx.persist({ type: "promised", ballot }); // Always, because an adopted ballot may not have been journaled.
  ctx.send(ballot.node, { type: "promise", ballot, upTo: state.upTo, votes: votesOf(state) });
}

const votesOf = (state: State): CastVote[] =>
  Object.entries(state.votes).map(([instance, vote]) => ({ instance: Number(instance), ...vote }));

/**
 * Returns whether the acceptor may vote. In each instance, it votes once per round, and never in a round before its
 * last vote.
 */
export const mayVote = (state: State, { instance, round }: CastVote, settings: Settings): boolean => {
  const last = state.votes[instance];
  return (
    !isOutside(state, instance, settings) &&
    !isStale(state, round) &&
    (last === undefined || isEarlier(last.round, round))
  );
};

/** Performs phase 2b: journals the vote, then sends it to every learner. */
export function vote(state: State, { instance, round, value }: CastVote, ctx: Ctx, settings: Settings): void {
  raise(state, round);
  state.votes[instance] = { round, value };
  const cast: CastVote = { instance, round, value };
  ctx.persist({ type: "voted", ...cast });
  ctx.broadcast({ type: "accepted", ...cast });
  hear(state, ctx.self, cast, ctx, settings);
}

// The learner: every node receives votes from all acceptors. A value is chosen once a quorum has voted for it in the
// same round.

/** Returns whether the instance has been chosen, or is so far ahead that this node has to catch up first. */
const isOutside = (state: State, instance: number, settings: Settings): boolean =>
  instance <= state.upTo || isBeyond(state, instance, settings);
/** Returns whether an instance is beyond the window or the maximum length of the log. */
export const isBeyond = ({ upTo }: State, instance: number, { window, instances }: Settings): boolean =>
  instance > upTo + window || (instances > 0 && instance > instances);

const isKnown = (state: State, instance: number): boolean => state.chosen[instance] !== undefined;
const isNoRound = (at: number): boolean => at > step.coordinated;

/** Handles phase 2b at a learner. */
export function hear(state: State, from: NodeId, { instance, round, value }: CastVote, ctx: Ctx, settings: Settings) {
  if (
    isStranger(from, ctx) ||
    isOutside(state, instance, settings) ||
    isKnown(state, instance) ||
    isNoRound(round.step)
  )
    return;
  let heard = state.learnt[instance];
  if (heard !== undefined && isBelow(round, heard.ballot)) return; // Late: this node knows of votes in a higher ballot.
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

/** Journals a chosen value. It is emitted once all earlier values have been emitted. */
function learn(state: State, instance: number, value: Value, ctx: Ctx): void {
  if (instance <= state.upTo || isKnown(state, instance)) return;
  state.chosen[instance] = value;
  delete state.learnt[instance];
  ctx.persist({ type: "chosen", instance, value });
  advance(state, ctx);
}

/** Emits decided commands in order, without gaps. */
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

/** Returns the highest instance that this node knows of. */
export function highestSeen(state: State): number {
  const { votes, learnt, chosen, proposals, coordinator, upTo } = state;
  const keys = [votes, learnt, chosen].map((byInstance) => Number(Object.keys(byInstance).at(-1) ?? 0));
  const mine = proposals.map(({ instance }) => instance ?? 0);
  return Math.max(upTo, coordinator.is === "leading" ? coordinator.next - 1 : 0, ...keys, ...mine);
}
