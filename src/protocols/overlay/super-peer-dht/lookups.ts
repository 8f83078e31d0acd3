/**
 * Lookups of the node that is responsible for a place on the circle. A node asks one node after another, each closer to
 * the place than the previous one. Stoica et al. 2003, §IV.
 */
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

/** A node's answer about a place: the place's owner, or a closer node. */
interface Way {
  node: NodeId | null;
  isOwner: boolean;
}

interface Lookups {
  /** Returns this node's own answer. */
  way(state: State, self: NodeId, place: number, avoid: readonly NodeId[]): Way;
  /** Starts a task, or queues it unless the same task is already waiting. */
  take(state: State, task: Task, ctx: Ctx): void;
  /** Handles an answer. Ignores it unless it belongs to the current request. */
  follow(state: State, from: NodeId, place: number, way: Way, ctx: Ctx): void;
  /**
   * Continues the lookup without the node that was asked last, because that node has not answered or did not name a
   * closer node.
   */
  evade(state: State, ctx: Ctx): void;
}

interface Surroundings {
  readonly ring: IdentifierRing;
  readonly answerMs: number;
  /** Returns the node to contact for joining. */
  contact(state: State): NodeId | null;
  succeed(state: State, task: Task, owner: NodeId, hops: number, ctx: Ctx): void;
}

/** The maximum number of waiting lookups. Any others are dropped. */
const MAX_WAITING = 64;

/**
 * Whether the node knows that it is responsible. If its predecessor is unknown, the node cannot know, unless it is
 * alone.
 */
export function owns(ring: IdentifierRing, state: State, self: NodeId, place: number): boolean {
  if (state.membership !== "member") return false;
  if (state.predecessor === null) return state.successors[0] === self;
  return ring.isWithin(place, ring.placeOf(state.predecessor), ring.placeOf(self));
}

/** Creates the handlers for lookups. */
export function lookups({ ring, answerMs, contact, succeed }: Surroundings): Lookups {
  const { placeOf, distance, isWithin } = ring;

  function way(state: State, self: NodeId, place: number, avoid: readonly NodeId[]): Way {
    if (owns(ring, state, self, place)) return { node: self, isOwner: true };
    const next = state.successors.find((node) => node !== self && !avoid.includes(node));
    if (state.membership !== "member" || next === undefined) return { node: null, isOwner: false };
    if (isWithin(place, placeOf(self), placeOf(next))) return { node: next, isOwner: true };
    return { node: closestBefore(state, self, place, avoid) ?? next, isOwner: false };
  }

  /** `closest_preceding_node`: returns the known node that is farthest along the way to the place. */
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

  /** Starts a lookup from the node's own knowledge. */
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
    // The node that was responsible a round ago is most likely still responsible, so it is asked first.
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
    // The answer is late: the lookup has moved past this node.
    if (lookup === null || lookup.current !== from || lookup.place !== place) return;
    lookup.hops += 1;
    if (node === null) return evade(state, ctx);
    if (isOwner) {
      end(state, lookup, node, ctx);
      return pursue(state, ctx);
    }
    // Each step must lead closer to the place, so that a lookup ends in any state of the ring.
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
  /**
   * Handles a message from a node that considers this member its successor. That node may be this member's predecessor.
   */
  hear(state: State, from: NodeId, ctx: Ctx): void;
  /** Handles an answer from the successor, or from a node that claims to come before it. */
  adopt(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void;
  /** Performs one round. Returns false if this node no longer knows any other node. */
  stabilize(state: State, ctx: Ctx): boolean;
  leave(state: State, ctx: Ctx): void;
  release(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void;
}

/** The number of rounds that a neighbor may be silent before this node suspects it. */
const MAX_MISSES = 2;

/** Creates the functions that maintain a member's successors and fingers. */
export function upkeep(ring: IdentifierRing, successorCount: number): Upkeep {
  const { placeOf, distance } = ring;
  const isBetween = (node: NodeId, after: NodeId, before: NodeId): boolean =>
    distance(placeOf(after), placeOf(node)) < distance(placeOf(after), placeOf(before));

  /**
   * Sets the successors, without duplicates and without any node beyond this node itself, because the later nodes in a
   * list may have crashed long ago.
   */
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
    if (successors[0] === ctx.self) state.successors = [from]; // This node was alone.
  }

  function adopt(state: State, from: NodeId, predecessor: NodeId | null, beyond: readonly NodeId[], ctx: Ctx): void {
    const next = state.successors[0] as NodeId;
    if (from !== next && !isBetween(from, ctx.self, next)) return; // Late: a closer node is already known.
    setSuccessors(state, [from, ...beyond], ctx.self);
    state.unanswered = 0;
    // A node in between is adopted only once it answers, because `from` may not have noticed yet that the node has
    // crashed.
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

  /**
   * Asks the predecessor for a sign of life before suspecting it, because its rounds may be longer than this node's.
   */
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
    if (state.successors.length === 0) state.successors = [ctx.self]; // The ring consisted of only these two nodes.
  }

  return { hear, adopt, stabilize, leave, release };
}
