/**
 * Evaluation of properties of whole runs: `leadsTo` and `eventually`. A counterexample is an infinite run: either a
 * loop in the state graph or a run that stops. The search looks for a strongly connected component whose states leave
 * an obligation open, and where a run can stay forever while being fair to every node, link and timer.
 */
import type { NodeId, Property, Vocabulary } from "../core/protocol.ts";
import { Component, type Graph, isTimer, rests, roundFrom, stemTo } from "./fairness.ts";
import type { Move } from "./model.ts";
import type { Waypoint } from "./path.ts";
import { TupleWorld } from "./properties.ts";

/** A run that never fulfills an obligation: a stem, then a loop. */
export interface Lasso<V extends Vocabulary> {
  readonly property: Property<V>;
  /** The stem, then one round of the loop. */
  readonly waypoints: readonly Waypoint<V>[];
  /** The index of the waypoint at which the loop begins. For a run that stops, the number of waypoints. */
  readonly loop: number;
}

/**
 * Flags for one obligation, at one node or at all nodes, in a state: it may stay open there, it becomes open there, or
 * it is not fulfilled there.
 */
const OPEN = 1;
const BEGINS = 2;
const BROKEN = 4;

const ASK_EVERY = 1 << 13;

/**
 * Returns a run that violates one of the properties. Null if the graph contains none; this proves nothing about states
 * that are missing from the graph. `mayGoOn` is called regularly; if it returns false, the result is `stopped`.
 */
export function lasso<V extends Vocabulary>(
  graph: Graph<V>,
  properties: readonly Property<V>[],
  mayGoOn: () => boolean,
): Lasso<V> | "stopped" | null {
  try {
    return firstLasso(stoppable(graph, mayGoOn), properties);
  } catch (error) {
    if (error instanceof Stopped) return "stopped";
    throw error;
  }
}

class Stopped extends Error {}

/**
 * Wraps the graph so that reading a state throws `Stopped` once the search must stop. Every computation reads states.
 */
function stoppable<V extends Vocabulary>(graph: Graph<V>, mayGoOn: () => boolean): Graph<V> {
  let looks = 0;
  const look = (): void => {
    if (++looks % ASK_EVERY === 0 && !mayGoOn()) throw new Stopped();
  };
  return {
    ...graph,
    read(state, into) {
      look();
      graph.read(state, into);
    },
    successors(state) {
      look();
      return graph.successors(state);
    },
  };
}

function firstLasso<V extends Vocabulary>(graph: Graph<V>, properties: readonly Property<V>[]): Lasso<V> | null {
  const owed = graph.model.histories
    .shown(properties)
    .filter(({ when }) => when === "leadsTo" || when === "eventually");
  const ends = owed.length === 0 ? [] : endsOf(graph);
  for (const property of owed) {
    for (const node of property.when === "leadsTo" ? graph.model.options.nodes : [null]) {
      const flagOf = flagging(graph, property, node);
      if (!ends.some((state) => (flagOf(state) & BROKEN) !== 0)) continue;
      const flags = Uint8Array.from({ length: graph.size }, (_, state) => flagOf(state));
      const component = fairComponent(graph, flags);
      if (component !== null) return { property, ...wayAround(component, flags) };
    }
  }
  return null;
}

/** Returns the states where a run can stay: states on a loop, and states without obligations. */
function endsOf<V extends Vocabulary>(graph: Graph<V>): number[] {
  const ends: number[] = [];
  const cyclic = new Set<number>();
  const { mayFail } = graph.model;
  function successors(state: number): readonly number[] {
    const found = graph.successors(state);
    if (found.includes(state)) cyclic.add(state);
    // If no fault can happen, every possible move is an obligation.
    if ((mayFail || found.length === 0) && rests(graph, state)) ends.push(state);
    return found;
  }
  components(graph.size, [0], successors, (members) => {
    if (members.length > 1 || cyclic.has(members[0] as number)) for (const member of members) ends.push(member);
    return true;
  });
  return ends;
}

/** Returns a function that computes the flags of a state, for one obligation at one node or at all nodes. */
function flagging<V extends Vocabulary>(
  { model, read }: Graph<V>,
  property: Property<V>,
  node: NodeId | null,
): (state: number) => number {
  const tuple = new Int32Array(model.width);
  const view = new TupleWorld(model);
  return (state) => {
    read(state, tuple);
    const world = view.of(tuple);
    if (property.when !== "leadsTo") return OPEN | BEGINS | (property.holds(world) ? 0 : BROKEN);
    const isOwed = world.alive.includes(node as NodeId) && !property.holds(world, node as NodeId);
    return isOwed ? OPEN | BROKEN | (property.given(world, node as NodeId) ? BEGINS : 0) : 0;
  };
}

/**
 * Returns a component where a fair run can violate the property forever. If there are several, returns the one whose
 * first state was found earliest.
 */
function fairComponent<V extends Vocabulary>(graph: Graph<V>, flags: Uint8Array): Component<V> | null {
  const { size } = graph;
  const isBroken = (members: readonly number[]): boolean =>
    members.some((state) => ((flags[state] as number) & BROKEN) !== 0);
  /** States that have a transition to themselves. */
  const circular = new Set<number>();
  let best: Component<V> | null = null;
  let bestFirst = size;

  function successors(state: number): number[] {
    const found: number[] = [];
    for (const next of graph.successors(state)) {
      if (((flags[next] as number) & OPEN) !== 0) found.push(next);
      if (next === state) circular.add(state);
    }
    return found;
  }

  components(size, having(flags, OPEN | BEGINS), successors, (members) => {
    const first = members.length === 1 ? (members[0] as number) : members.reduce((a, b) => Math.min(a, b));
    if (first > bestFirst || !isBroken(members)) return true;
    const isLoop = members.length > 1 || circular.has(first);
    if (!isLoop && !rests(graph, first)) return true;
    const part = fairPart(new Component(graph, members), isBroken);
    if (part !== null) [best, bestFirst] = [part, first];
    return true;
  });
  return best;
}

function* having(flags: Uint8Array, wanted: number): Iterable<number> {
  for (let state = 0; state < flags.length; state++) if (((flags[state] as number) & wanted) === wanted) yield state;
}

/**
 * Returns the component, or a part of it, that can contain a fair infinite run. Null if there is none. A timer that
 * stays armed eventually fires in a state that allows it, so a run without its timeout avoids those states.
 */
function fairPart<V extends Vocabulary>(
  component: Component<V>,
  isBroken: (members: readonly number[]) => boolean,
): Component<V> | null {
  const neglected = component.neglected();
  if (neglected.length === 0) return component;
  if (!neglected.every(isTimer)) return null;
  const left = component.members.filter((member) => !neglected.some((timer) => component.isPossible(timer, member)));
  const places = new Map(left.map((member, place) => [member, place]));
  const successors = (place: number): number[] =>
    component.inside(left[place] as number).flatMap(({ to }) => places.get(to) ?? []);
  let found: Component<V> | null = null;
  components(left.length, left.keys(), successors, (part) => {
    const members = part.map((place) => left[place] as number);
    const isLoop = part.length > 1 || successors(part[0] as number).includes(part[0] as number);
    if (isLoop && isBroken(members)) found = fairPart(new Component(component.graph, members), isBroken);
    return found === null;
  });
  return found;
}

/** Returns a run that enters the component and then goes once around a loop in it. */
function wayAround<V extends Vocabulary>(
  component: Component<V>,
  flags: Uint8Array,
): { waypoints: Waypoint<V>[]; loop: number } {
  const has = (state: number, flag: number): boolean => ((flags[state] as number) & flag) !== 0;
  const advance = (state: number, phase: number): number =>
    has(state, BEGINS) || (phase === 1 && has(state, OPEN)) ? 1 : 0;
  const { graph } = component;
  const stem = stemTo(graph, advance, (state) => component.has(state) && has(state, BROKEN));
  const round = roundFrom(component, stem.at(-1) ?? 0);
  const tupleOf = (state: number): Int32Array => {
    const tuple = new Int32Array(graph.model.width);
    graph.read(state, tuple);
    return tuple;
  };
  const waypoints = [
    ...stem.map((state) => ({ tuple: tupleOf(state) })),
    ...round.map(({ to, move }) => ({ tuple: tupleOf(to), isRight: (other: Move<V>) => isAlike(move, other) })),
  ];
  return { waypoints, loop: stem.length };
}

/** Whether two moves are equal except for the contents of a message. */
function isAlike<V extends Vocabulary>(a: Move<V>, b: Move<V>): boolean {
  const of = (move: Move<V>): string => {
    const more = "message" in move ? [move.from, move.message.type] : "timer" in move ? [move.timer] : [];
    return [move.node, move.kind, move.crashesWithinStep, move.afterMs, ...more].join(" ");
  };
  return of(a) === of(b);
}

/**
 * Calls `each` with the members of every component that can be reached from the roots. Each component comes after the
 * components that it leads to. `successors` is called once for each state. The search ends when `each` returns false.
 *
 * @param size states are numbered from 0 to size − 1
 */
export function components(
  size: number,
  roots: Iterable<number>,
  successors: (state: number) => readonly number[],
  each: (members: readonly number[]) => boolean,
): void {
  /** The position of each state in the order of visits, starting from 1. 0: not visited. */
  const met = new Int32Array(size);
  /** The earliest visited state that each state is known to lead back to. */
  const low = new Int32Array(size);
  /** States that have been visited but whose component is not yet complete. */
  const open: number[] = [];
  const isOpen = new Uint8Array(size);
  /** The path to the current state, with the successors of each state on it and the number of successors visited. */
  const way: number[] = [];
  const leads: (readonly number[])[] = [];
  const done: number[] = [];
  let clock = 0;

  function meet(state: number): void {
    met[state] = low[state] = ++clock;
    isOpen[state] = 1;
    open.push(state);
    way.push(state);
    leads.push(successors(state));
    done.push(0);
  }

  /** Visits the next successor of the last state on the path. Leaves that state if there are no more successors. */
  function goOn(): boolean {
    const at = way.length - 1;
    const state = way[at] as number;
    const next = (leads[at] as readonly number[])[done[at] as number];
    if (next === undefined) return leave(state);
    done[at] = (done[at] as number) + 1;
    if (met[next] === 0) meet(next);
    else if (isOpen[next] === 1) low[state] = Math.min(low[state] as number, met[next] as number);
    return true;
  }

  function leave(state: number): boolean {
    way.pop();
    leads.pop();
    done.pop();
    const before = way.at(-1);
    if (before !== undefined) low[before] = Math.min(low[before] as number, low[state] as number);
    if (low[state] !== met[state]) return true;
    const members = open.splice(open.lastIndexOf(state));
    for (const member of members) isOpen[member] = 0;
    return each(members);
  }

  for (const root of roots) {
    if (met[root] !== 0) continue;
    meet(root);
    while (way.length > 0) if (!goOn()) return;
  }
}
