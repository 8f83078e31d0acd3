/**
 * The ballots of Fast Paxos and Generalized Paxos: the promised ballot, its coordinator, and whether acceptors may
 * accept directly from proposers.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { natural, struct } from "../../../core/shape.ts";

/**
 * Identifies one execution of phase 1. It is unique, because it contains the node's id, and the node's count only
 * increases.
 */
export interface Ballot {
  count: number;
  node: NodeId;
}

/** A round within a ballot. The rounds of a ballot are ordered by step. */
export interface Round extends Ballot {
  step: number;
}

export const isBelow = (a: Ballot, b: Ballot): boolean => a.count < b.count || (a.count === b.count && a.node < b.node);
export const isSameBallot = (a: Ballot, b: Ballot): boolean => a.count === b.count && a.node === b.node;
/** Returns whether one round precedes another. */
export const isEarlier = (a: Round, b: Round): boolean => isBelow(a, b) || (isSameBallot(a, b) && a.step < b.step);
export const isSameRound = (a: Round, b: Round): boolean => isSameBallot(a, b) && a.step === b.step;

export const ballotShape = struct<Ballot>({ count: natural, node: natural });
export const roundShape = struct<Round>({ count: natural, node: natural, step: natural });

/** A node's ballot state. */
export interface Balloting {
  /** The acceptor ignores all ballots below this one (rnd in the paper). */
  promised: Ballot;
  /** The highest ballot count that this node knows of. */
  count: number;
  /**
   * The first instance or era for which acceptors may accept directly from proposers in the promised ballot. Null if
   * they may not.
   */
  open: number | null;
  coordinator: { is: "none" } | { is: "preparing" } | { is: "leading" };
  /** The current coordinator, as far as this node knows. Null if it does not know of one. */
  leader: NodeId | null;
  /** The progress of this node and of the leader at the last heartbeat. A node that makes no progress requests help. */
  atBeat: { mine: number; leaders: number };
  /**
   * Whether the node has replayed its journal but not yet passed it to the state machine. Proposals wait until then.
   */
  isRestored: boolean;
}

/**
 * Returns the first ballot, which belongs to the node with the lowest id. All nodes consider it open from the start,
 * because no node can have voted before it.
 */
export const firstBallot = (self: NodeId, peers: readonly NodeId[]): Omit<Balloting, "coordinator"> => {
  const first = Math.min(self, ...peers);
  return {
    promised: { count: 0, node: first },
    count: 0,
    open: 1,
    leader: first,
    atBeat: { mine: 0, leaders: 0 },
    isRestored: false,
  };
};

interface Nodes {
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
}

/** Returns the number of nodes. */
export const nodesOf = ({ peers }: Nodes): number => peers.length + 1;
/** Returns whether a node is not part of the run. */
export const isStranger = (node: NodeId, { self, peers }: Nodes): boolean => node !== self && !peers.includes(node);

/** Returns whether this acceptor has promised to ignore the ballot. */
export const isStale = ({ promised }: Balloting, ballot: Ballot): boolean => isBelow(ballot, promised);
/** Returns whether a message of this ballot is not from its coordinator, the only node that may send it. */
export const isImpostor = (ballot: Ballot, from: NodeId): boolean => ballot.node !== from;

/** Promises a higher ballot. Its coordinator is not yet known to be active. */
export function raise(state: Balloting, { count, node }: Ballot): void {
  if (isSameBallot(state.promised, { count, node })) return;
  state.promised = { count, node };
  state.count = Math.max(state.count, count);
  state.open = null;
  state.leader = null;
}

/** The effects that coordination uses: timers and the `led` event. */
interface Effects {
  setTimer(timer: "patience", ms: readonly [number, number]): void;
  cancelTimer(timer: "heartbeat" | "recover"): void;
  emit(event: { type: "led"; leader: NodeId; term: number }): void;
}

interface Patience {
  readonly patienceMs: number;
}

/** Stops coordinating and waits for a coordinator. */
export function stepDown(state: Balloting, ctx: Effects, settings: Patience): void {
  state.coordinator = { is: "none" };
  ctx.cancelTimer("heartbeat");
  ctx.cancelTimer("recover");
  awaitWord(ctx, settings);
}

const awaitWord = (ctx: Effects, { patienceMs }: Patience): void =>
  ctx.setTimer("patience", [patienceMs, 2 * patienceMs]);

/** Reports the coordinator of the promised ballot, unless this node already knows it. */
export function follow(state: Balloting, ctx: Effects): void {
  const { count, node } = state.promised;
  if (state.leader === node) return;
  state.leader = node;
  ctx.emit({ type: "led", leader: node, term: count });
}

/**
 * Follows the coordinator of a ballot. Adopts the ballot if it is higher than the promised one, because no promise
 * forbids that.
 */
export function adopt(state: Balloting, ballot: Ballot, ctx: Effects, settings: Patience): void {
  if (isBelow(state.promised, ballot)) {
    if (state.coordinator.is !== "none") stepDown(state, ctx, settings);
    raise(state, ballot);
  }
  follow(state, ctx);
  awaitWord(ctx, settings);
}

/** Handles a refusal from a node that has promised a higher ballot. */
export function noteHigher(state: Balloting, promised: Ballot, ctx: Effects, settings: Patience): void {
  state.count = Math.max(state.count, promised.count);
  if (state.coordinator.is !== "none" && isBelow(state.promised, promised)) stepDown(state, ctx, settings);
}

/**
 * Restores the ballots after a restart. A node that was the coordinator no longer coordinates, because it does not
 * remember its earlier requests.
 */
export function restore(state: Balloting, ballot: Ballot | null): void {
  state.coordinator = { is: "none" };
  state.isRestored = true;
  if (ballot !== null && isBelow(state.promised, ballot)) raise(state, ballot);
}

export const roles = { none: "acceptor", preparing: "preparing", leading: "coordinator" } as const;
