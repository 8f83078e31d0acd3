/**
 * Ballots of Fast and Generalized Paxos: which ballot an acceptor has promised, whether acceptors may accept directly
 * from proposers in it, and which node coordinates it.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { natural, struct } from "../../../core/shape.ts";

/**
 * Identifies one phase 1 of a coordinator. It is unique, since it contains the node and the node's count only grows.
 */
export interface Ballot {
  count: number;
  node: NodeId;
}

/** A round of a ballot. Rounds of one ballot are ordered by their step. */
export interface Round extends Ballot {
  step: number;
}

export const isBelow = (a: Ballot, b: Ballot): boolean => a.count < b.count || (a.count === b.count && a.node < b.node);
export const isSameBallot = (a: Ballot, b: Ballot): boolean => a.count === b.count && a.node === b.node;
export const isEarlier = (a: Round, b: Round): boolean => isBelow(a, b) || (isSameBallot(a, b) && a.step < b.step);
export const isSameRound = (a: Round, b: Round): boolean => isSameBallot(a, b) && a.step === b.step;

export const ballotShape = struct<Ballot>({ count: natural, node: natural });
export const roundShape = struct<Round>({ count: natural, node: natural, step: natural });

/** The state of ballots at every node. */
export interface Balloting {
  /** rnd in the paper: the acceptor ignores all ballots below this one. */
  promised: Ballot;
  /** The highest count of a ballot that this node knows of. */
  count: number;
  /**
   * The first instance or era where acceptors may accept directly from proposers, in the promised ballot; null if they
   * may not.
   */
  open: number | null;
  coordinator: { is: "none" } | { is: "preparing" } | { is: "leading" };
  /** The coordinator as far as this node knows. */
  leader: NodeId | null;
  /** How far this node and the leader were at the last heartbeat. A node that makes no progress is helped. */
  atBeat: { mine: number; leaders: number };
  /** The node has replayed its journal and has not yet passed it to the state machine. Proposals wait meanwhile. */
  isRestored: boolean;
}

/**
 * The first ballot belongs to the lowest node. All nodes consider it open from the start, since no node can have voted
 * before it.
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

export const nodesOf = ({ peers }: Nodes): number => peers.length + 1;
export const isStranger = (node: NodeId, { self, peers }: Nodes): boolean => node !== self && !peers.includes(node);

/** Whether this acceptor has promised to ignore the ballot. */
export const isStale = ({ promised }: Balloting, ballot: Ballot): boolean => isBelow(ballot, promised);
/** Only the coordinator of a ballot sends its messages. */
export const isImpostor = (ballot: Ballot, from: NodeId): boolean => ballot.node !== from;

/** Promises a higher ballot, whose coordinator is not known to be active yet. */
export function raise(state: Balloting, { count, node }: Ballot): void {
  if (isSameBallot(state.promised, { count, node })) return;
  state.promised = { count, node };
  state.count = Math.max(state.count, count);
  state.open = null;
  state.leader = null;
}

/** The effects of coordination: timers and the `led` event. */
interface Effects {
  setTimer(timer: "patience", ms: readonly [number, number]): void;
  cancelTimer(timer: "heartbeat" | "recover"): void;
  emit(event: { type: "led"; leader: NodeId; term: number }): void;
}

interface Patience {
  readonly patienceMs: number;
}

export function stepDown(state: Balloting, ctx: Effects, settings: Patience): void {
  state.coordinator = { is: "none" };
  ctx.cancelTimer("heartbeat");
  ctx.cancelTimer("recover");
  awaitWord(ctx, settings);
}

const awaitWord = (ctx: Effects, { patienceMs }: Patience): void =>
  ctx.setTimer("patience", [patienceMs, 2 * patienceMs]);

/** Reports the coordinator of the promised ballot, if it is new to this node. */
export function follow(state: Balloting, ctx: Effects): void {
  const { count, node } = state.promised;
  if (state.leader === node) return;
  state.leader = node;
  ctx.emit({ type: "led", leader: node, term: count });
}

/**
 * Follows the coordinator of a ballot. A higher ballot than the promised one is adopted, since no promise forbids that.
 */
export function adopt(state: Balloting, ballot: Ballot, ctx: Effects, settings: Patience): void {
  if (isBelow(state.promised, ballot)) {
    if (state.coordinator.is !== "none") stepDown(state, ctx, settings);
    raise(state, ballot);
  }
  follow(state, ctx);
  awaitWord(ctx, settings);
}

/** Another node has promised a higher ballot than this node's own. */
export function noteHigher(state: Balloting, promised: Ballot, ctx: Effects, settings: Patience): void {
  state.count = Math.max(state.count, promised.count);
  if (state.coordinator.is !== "none" && isBelow(state.promised, promised)) stepDown(state, ctx, settings);
}

/**
 * After a restart a node no longer coordinates: it may have coordinated before, and does not know its requests of then.
 */
export function restore(state: Balloting, ballot: Ballot | null): void {
  state.coordinator = { is: "none" };
  state.isRestored = true;
  if (ballot !== null && isBelow(state.promised, ballot)) raise(state, ballot);
}

export const roles = { none: "acceptor", preparing: "preparing", leading: "coordinator" } as const;
