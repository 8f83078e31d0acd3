/**
 * Ballots of Fast and Generalized Paxos: which one an acceptor has promised, whether acceptors may take in it what proposers send
 * them, and who coordinates it.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { natural, struct } from "../../../core/shape.ts";

/** What a coordinator's phase 1 is about: unique, since the node is part of it and its count only grows. */
export interface Ballot {
  count: number;
  node: NodeId;
}

/** The rounds of a ballot are compared by their step. */
export interface Round extends Ballot {
  step: number;
}

export const isBelow = (a: Ballot, b: Ballot): boolean => a.count < b.count || (a.count === b.count && a.node < b.node);
export const isSameBallot = (a: Ballot, b: Ballot): boolean => a.count === b.count && a.node === b.node;
export const isEarlier = (a: Round, b: Round): boolean => isBelow(a, b) || (isSameBallot(a, b) && a.step < b.step);
export const isSameRound = (a: Round, b: Round): boolean => isSameBallot(a, b) && a.step === b.step;

export const ballotShape = struct<Ballot>({ count: natural, node: natural });
export const roundShape = struct<Round>({ count: natural, node: natural, step: natural });

/** What every node knows of ballots. */
export interface Balloting {
  /** rnd in the paper: the acceptor ignores all ballots below this one. */
  promised: Ballot;
  /** The highest count of a ballot that this node knows of. */
  count: number;
  /** Acceptors may take what proposers send them: in the promised ballot, from this instance or era on. */
  open: number | null;
  coordinator: { is: "none" } | { is: "preparing" } | { is: "leading" };
  /** Who coordinates in this node's eyes. */
  leader: NodeId | null;
  /** How far this node and the leader were at the last heartbeat: who stands still is helped. */
  atBeat: { mine: number; leaders: number };
  /** Has its journal back and has not told the state machine of it yet: what is proposed meanwhile waits. */
  isRestored: boolean;
}

/** The first ballot is the lowest node's, and all nodes hold from the outset that it is open: nobody can have voted before it. */
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

/** Of ballots that this acceptor has promised to ignore. */
export const isStale = ({ promised }: Balloting, ballot: Ballot): boolean => isBelow(ballot, promised);
/** Only the coordinator of a ballot speaks for it. */
export const isImpostor = (ballot: Ballot, from: NodeId): boolean => ballot.node !== from;

/** Takes a ballot for its own, which no other node may have begun meanwhile. */
export function raise(state: Balloting, { count, node }: Ballot): void {
  if (isSameBallot(state.promised, { count, node })) return;
  state.promised = { count, node };
  state.count = Math.max(state.count, count);
  state.open = null;
  state.leader = null;
}

/** What a coordinator does to timers, and tells. */
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

/** Whether the ballot's coordinator is news to this node. */
export function follow(state: Balloting, ctx: Effects): void {
  const { count, node } = state.promised;
  if (state.leader === node) return;
  state.leader = node;
  ctx.emit({ type: "led", leader: node, term: count });
}

/** A ballot that this node has not promised is news of another coordinator; it follows, since none of its promises forbids it. */
export function adopt(state: Balloting, ballot: Ballot, ctx: Effects, settings: Patience): void {
  if (isBelow(state.promised, ballot)) {
    if (state.coordinator.is !== "none") stepDown(state, ctx, settings);
    raise(state, ballot);
  }
  follow(state, ctx);
  awaitWord(ctx, settings);
}

/** Somebody has promised more than this node's ballot. */
export function noteHigher(state: Balloting, promised: Ballot, ctx: Effects, settings: Patience): void {
  state.count = Math.max(state.count, promised.count);
  if (state.coordinator.is !== "none" && isBelow(state.promised, promised)) stepDown(state, ctx, settings);
}

/** A node that has journalled something may have coordinated before: it does not know what it asked for, so it no longer does. */
export function restore(state: Balloting, ballot: Ballot | null): void {
  state.coordinator = { is: "none" };
  state.isRestored = true;
  if (ballot !== null && isBelow(state.promised, ballot)) raise(state, ballot);
}

export const roles = { none: "acceptor", preparing: "preparing", leading: "coordinator" } as const;
