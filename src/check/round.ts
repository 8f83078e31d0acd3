/** Shortest ways in a state graph: into a component, and once around in it without being unfair to anybody. */
import { InvariantViolation } from "../core/errors.ts";
import type { Vocabulary } from "../core/protocol.ts";
import { type Component, type Edge, type Graph, type Obligation, settles } from "./fairness.ts";

/**
 * A shortest way from the initial state, which it leaves out.
 *
 * @param advance the phase that a transition to a state leads to, 0 or 1, from the phase before it
 * @param isGoal in phase 1
 */
export function stemTo<V extends Vocabulary>(
  { size, successors }: Graph<V>,
  advance: (state: number, phase: number) => number,
  isGoal: (state: number) => boolean,
): number[] {
  /** Places are 2 · state + phase. */
  const cameFrom = new Int32Array(2 * size).fill(-1);
  const start = advance(0, 0);
  const queue = [start];
  cameFrom[start] = start;
  for (const place of queue) {
    if ((place & 1) === 1 && isGoal(place >> 1)) return backFrom(place, cameFrom);
    for (const state of successors(place >> 1)) {
      const next = 2 * state + advance(state, place & 1);
      if (cameFrom[next] !== -1) continue;
      cameFrom[next] = place;
      queue.push(next);
    }
  }
  return [];
}

function backFrom(goal: number, cameFrom: Int32Array): number[] {
  const way: number[] = [];
  for (let place = goal; cameFrom[place] !== place; place = cameFrom[place] as number) way.push(place >> 1);
  return way.reverse();
}

/**
 * From `entry` back to it within the component: whatever is due all the time happens on the way. Each leg is a shortest
 * one to the next transition that settles something.
 */
export function roundFrom<V extends Vocabulary>(component: Component<V>, entry: number): Edge<V>[] {
  const inside = remembered((state) => component.inside(state));
  const due = remembered((state) => component.due(state));
  const round: Edge<V>[] = [];
  /** Due in every state so far, and has not happened. */
  let neglected: Obligation[] = [...due(entry)];
  let at = entry;
  const isNeglectedAfter = (each: Obligation, edge: Edge<V>): boolean => !settles(edge, each) && due(edge.to).has(each);
  while (neglected.length > 0) {
    for (const edge of leg(at, inside, (edge) => neglected.some((each) => !isNeglectedAfter(each, edge)))) {
      round.push(edge);
      neglected = neglected.filter((each) => isNeglectedAfter(each, edge));
      at = edge.to;
    }
  }
  return at === entry ? round : [...round, ...leg(at, inside, ({ to }) => to === entry)];
}

/** A shortest way from a state through an edge that is wanted. */
function leg<V extends Vocabulary>(
  from: number,
  edgesFrom: (state: number) => readonly Edge<V>[],
  isWanted: (edge: Edge<V>) => boolean,
): Edge<V>[] {
  const cameBy = new Map<number, { readonly state: number; readonly edge: Edge<V> }>();
  const queue = [from];
  for (const state of queue) {
    for (const edge of edgesFrom(state)) {
      if (isWanted(edge)) {
        const way = [edge];
        for (let back = state; back !== from; ) {
          const step = cameBy.get(back) as { state: number; edge: Edge<V> };
          way.push(step.edge);
          back = step.state;
        }
        return way.reverse();
      }
      if (edge.to === from || cameBy.has(edge.to)) continue;
      cameBy.set(edge.to, { state, edge });
      queue.push(edge.to);
    }
  }
  throw new InvariantViolation(
    "no-way",
    "the states of a component lead to each other, and to what settles what is due",
  );
}

function remembered<T>(of: (state: number) => T): (state: number) => T {
  const known = new Map<number, T>();
  return (state) => {
    const found = known.get(state) ?? of(state);
    known.set(state, found);
    return found;
  };
}
