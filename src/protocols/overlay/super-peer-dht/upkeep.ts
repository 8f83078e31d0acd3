/** Joining, stabilizing and leaving: Stoica et al. 2003, §IV, with the repairs of Zave 2017 (§V: query before adopting). */
import type { NodeId } from "../../../core/protocol.ts";
import type { IdentifierRing } from "./identifiers.ts";
import { type Ctx, MAX_SUCCESSORS, type State } from "./vocabulary.ts";

export interface Upkeep {
  /** What a member tells who takes it for its successor, who may then be its predecessor. */
  hear(state: State, from: NodeId, ctx: Ctx): void;
  /** The successor, or one that claims to lie before it, has answered. */
  adopt(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void;
  /** One round. False if the node knows nobody any more. */
  stabilize(state: State, ctx: Ctx): boolean;
  leave(state: State, ctx: Ctx): void;
  release(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void;
}

/** A neighbour that is silent for so many rounds is suspected. */
const MAX_MISSES = 2;

export function upkeep(ring: IdentifierRing, successorCount: number): Upkeep {
  const { placeOf, distance } = ring;
  const isBetween = (node: NodeId, after: NodeId, before: NodeId): boolean =>
    distance(placeOf(after), placeOf(node)) < distance(placeOf(after), placeOf(before));

  /** Each once, and no farther than to oneself: what a list names beyond that may have crashed long ago. */
  function setSuccessors(state: State, nodes: readonly NodeId[], self: NodeId): void {
    const round = nodes.indexOf(self);
    const others = round < 0 ? nodes : nodes.slice(0, round);
    state.successors = [...new Set(others)].slice(0, successorCount);
  }

  function hear(state: State, from: NodeId, ctx: Ctx): void {
    const { predecessor, successors } = state;
    ctx.send(from, { type: "neighbours", predecessor, successors: successors.slice(0, MAX_SUCCESSORS) });
    if (predecessor === null || isBetween(from, predecessor, ctx.self)) state.predecessor = from;
    if (state.predecessor === from) state.silence = 0;
    if (successors[0] === ctx.self) state.successors = [from]; // It was alone.
  }

  function adopt(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void {
    const next = state.successors[0] as NodeId;
    if (from !== next && !isBetween(from, ctx.self, next)) return; // Late: somebody nearer is known.
    setSuccessors(state, [from, ...beyond], ctx.self);
    state.unanswered = 0;
    // Who lies between is adopted only once it answers: `from` may not have noticed yet that it has crashed.
    if (predecessor !== null && predecessor !== ctx.self && isBetween(predecessor, ctx.self, from))
      ctx.send(predecessor, { type: "stabilize" });
  }

  function stabilize(state: State, ctx: Ctx): boolean {
    if (state.unanswered >= MAX_MISSES) forget(state, state.successors[0] as NodeId, ctx.self);
    checkPredecessor(state, ctx);
    const [next] = state.successors;
    if (next === undefined) return false;
    if (next === ctx.self) return true;
    ctx.send(next, { type: "stabilize" });
    state.unanswered += 1;
    return true;
  }

  /** It is asked before it is suspected: its rounds may be longer than ours. */
  function checkPredecessor(state: State, ctx: Ctx): void {
    if (state.predecessor === null || ++state.silence <= MAX_MISSES) return;
    if (state.silence === MAX_MISSES + 1) return ctx.send(state.predecessor, { type: "check" });
    state.predecessor = null;
    state.silence = 0;
  }

  function forget(state: State, node: NodeId, self: NodeId): void {
    setSuccessors(
      state,
      state.successors.filter((successor) => successor !== node),
      self,
    );
    state.fingers = state.fingers.map((finger) => (finger === node ? null : finger));
    state.unanswered = 0;
  }

  function leave(state: State, ctx: Ctx): void {
    const { predecessor, successors } = state;
    const ends = new Set([predecessor, successors[0]]);
    for (const end of ends) {
      if (end === null || end === undefined || end === ctx.self) continue;
      ctx.send(end, { type: "leaving", predecessor, successors: [...successors] });
    }
  }

  function release(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void {
    const wasNext = state.successors[0] === from;
    if (wasNext) setSuccessors(state, [from, ...beyond], ctx.self);
    if (state.successors.includes(from)) forget(state, from, ctx.self);
    if (state.predecessor === from) {
      state.predecessor = predecessor === ctx.self ? null : predecessor;
      state.silence = 0;
    }
    if (state.successors.length === 0) state.successors = [ctx.self]; // The last two were neighbours on both sides.
  }

  return { hear, adopt, stabilize, leave, release };
}
