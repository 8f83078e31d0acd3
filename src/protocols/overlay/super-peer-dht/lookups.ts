/** Who is responsible for a place: the node asks one after the other, each nearer than the last. Stoica et al. 2003, §IV. */
import type { NodeId } from "../../../core/protocol.ts";
import {
  type Ctx,
  type IdentifierRing,
  type Lookup,
  MAX_AVOIDED,
  MAX_SUCCESSORS,
  type State,
  type Task,
} from "./vocabulary.ts";

/** What one node can say of a place: who owns it, or who knows more. */
interface Way {
  node: NodeId | null;
  isOwner: boolean;
}

interface Lookups {
  /** What this node itself can say. */
  way(state: State, self: NodeId, place: number, avoid: readonly NodeId[]): Way;
  /** Takes up a task, or lets it wait for its turn. One that waits for the same already is enough. */
  take(state: State, task: Task, ctx: Ctx): void;
  /** An answer to the question that is open. */
  follow(state: State, from: NodeId, place: number, way: Way, ctx: Ctx): void;
  /** Who was asked does not answer. */
  evade(state: State, ctx: Ctx): void;
}

interface Surroundings {
  readonly ring: IdentifierRing;
  readonly answerMs: number;
  /** The nodes to ask for a way in. */
  contact(state: State): NodeId | null;
  succeed(state: State, task: Task, owner: NodeId, hops: number, ctx: Ctx): void;
}

/** So many lookups from outside wait at most; what is more is refused by not being found. */
const MAX_WAITING = 64;

/** Whether the node knows itself to be responsible. While its predecessor is unknown it does not, unless it is alone. */
export function owns(ring: IdentifierRing, state: State, self: NodeId, place: number): boolean {
  if (state.membership !== "member") return false;
  if (state.predecessor === null) return state.successors[0] === self;
  return ring.isWithin(place, ring.placeOf(state.predecessor), ring.placeOf(self));
}

export function lookups({ ring, answerMs, contact, succeed }: Surroundings): Lookups {
  const { placeOf, distance, isWithin } = ring;

  function way(state: State, self: NodeId, place: number, avoid: readonly NodeId[]): Way {
    if (owns(ring, state, self, place)) return { node: self, isOwner: true };
    const next = state.successors.find((node) => node !== self && !avoid.includes(node));
    if (state.membership !== "member" || next === undefined) return { node: null, isOwner: false };
    if (isWithin(place, placeOf(self), placeOf(next))) return { node: next, isOwner: true };
    return { node: closestBefore(state, self, place, avoid) ?? next, isOwner: false };
  }

  /** `closest_preceding_node`: of all nodes that it knows, the one that lies farthest on the way. */
  function closestBefore(state: State, self: NodeId, place: number, avoid: readonly NodeId[]): NodeId | null {
    const whole = distance(placeOf(self), place);
    let closest: NodeId | null = null;
    let farthest = 0;
    for (const known of [state.fingers, state.successors]) {
      for (const node of known) {
        if (node === null || node === self) continue;
        const covered = distance(placeOf(self), placeOf(node));
        if (covered <= farthest || covered >= whole || avoid.includes(node)) continue;
        closest = node;
        farthest = covered;
      }
    }
    return closest;
  }

  function take(state: State, task: Task, ctx: Ctx): void {
    const isKnown = state.waiting.some(({ purpose, place }) => purpose === task.purpose && place === task.place);
    if (!isKnown && state.waiting.length < MAX_WAITING) state.waiting.push(task);
    pursue(state, ctx);
  }

  function pursue(state: State, ctx: Ctx): void {
    while (state.lookup === null) {
      const task = state.waiting.shift();
      if (task === undefined) return;
      begin(state, { ...task, current: ctx.self, trail: [], avoid: [], hops: 0 }, ctx);
    }
  }

  /** From what the node knows itself. */
  function begin(state: State, lookup: Lookup, ctx: Ctx): void {
    const first = firstWay(state, lookup, ctx);
    if (first.node === null) return giveUp(state, ctx);
    if (first.isOwner) return end(state, lookup, first.node, ctx);
    lookup.trail = [];
    ask(state, lookup, first.node, ctx);
  }

  function firstWay(state: State, { purpose, place, avoid }: Lookup, ctx: Ctx): Way {
    if (purpose === "join") return { node: contact(state), isOwner: false };
    const own = way(state, ctx.self, place, avoid);
    // The node that was responsible a round ago most likely still is: it is asked first.
    const { superPeer } = state;
    const isCached = purpose === "superPeer" && superPeer !== null && superPeer !== ctx.self;
    return own.isOwner || !isCached || avoid.includes(superPeer) ? own : { node: superPeer, isOwner: false };
  }

  function ask(state: State, lookup: Lookup, node: NodeId, ctx: Ctx): void {
    state.lookup = lookup;
    lookup.current = node;
    ctx.send(node, { type: "ask", place: lookup.place, avoid: [...lookup.avoid] });
    ctx.setTimer("answer", answerMs);
  }

  function follow(state: State, from: NodeId, place: number, { node, isOwner }: Way, ctx: Ctx): void {
    const { lookup } = state;
    if (lookup === null || lookup.current !== from || lookup.place !== place) return; // Late: the lookup has gone on.
    lookup.hops += 1;
    if (node === null) return evade(state, ctx);
    if (isOwner) {
      end(state, lookup, node, ctx);
      return pursue(state, ctx);
    }
    // Each step must lead nearer, so that a lookup ends in whatever state the ring is.
    if (distance(placeOf(node), place) >= distance(placeOf(from), place)) return evade(state, ctx);
    lookup.trail.push(from);
    if (node !== ctx.self) return ask(state, lookup, node, ctx);
    begin(state, lookup, ctx);
    pursue(state, ctx);
  }

  function evade(state: State, ctx: Ctx): void {
    const { lookup } = state;
    if (lookup === null) return;
    const { current, avoid, trail } = lookup;
    avoid.push(current);
    state.fingers = state.fingers.map((finger) => (finger === current ? null : finger));
    const before = trail.pop();
    if (avoid.length > MAX_AVOIDED || lookup.purpose === "join") giveUp(state, ctx);
    else if (before === undefined) begin(state, lookup, ctx);
    else ask(state, lookup, before, ctx);
    pursue(state, ctx);
  }

  function giveUp(state: State, ctx: Ctx): void {
    state.lookup = null;
    ctx.cancelTimer("answer");
  }

  function end(state: State, lookup: Lookup, owner: NodeId, ctx: Ctx): void {
    giveUp(state, ctx);
    const { purpose, finger, place, hops } = lookup;
    succeed(state, { purpose, finger, place }, owner, hops, ctx);
  }

  return { way, take, follow, evade };
}

// Joining, stabilizing and leaving: Stoica et al. 2003, §IV, with the repairs of Zave 2017 (§V: query before adopting).

interface Upkeep {
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
