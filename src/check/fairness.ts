/**
 * Fairness: a move that is continuously possible from some point on eventually happens. This applies to the delivery of
 * the message at the head of each link (or of every message, if links are unordered). For each node, it applies to its
 * start, the next command in its script, its crash notifications, and one of the commands that the application may
 * give. The condition for timers is different: a timer fires if it stays armed without being rearmed and could fire
 * again and again, even with interruptions. An example is a timer that waits until no message is in flight. If time is
 * modeled, it passes in every infinite run in which something is due. Faults never have to happen.
 */

import { InvariantViolation } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId, Vocabulary } from "../core/protocol.ts";
import type { Model, Move } from "./model.ts";

/**
 * A string that identifies an obligation: a move that must eventually happen. Moves that fulfill the same obligation
 * have equal strings.
 */
export type Obligation = string;

/** A transition, with the number of the state that it leads to. −1 if bounds excluded that state. */
export interface Edge<V extends Vocabulary> {
  readonly to: number;
  readonly move: Move<V>;
  /** The obligation that the transition fulfills. Null for a fault. */
  readonly obligation: Obligation | null;
  /** The timers that the transition arms or rearms, as obligations. */
  readonly armed: readonly Obligation[];
}

/** The stored part of a state space. */
export interface Graph<V extends Vocabulary> {
  readonly model: Model<V>;
  readonly size: number;
  read(state: number, into: Int32Array): void;
  /** Returns the number of a state, or −1 if the state is unknown. */
  find(tuple: Int32Array): number;
  /** Returns the numbers of the stored successors of a state. */
  successors(state: number): readonly number[];
}

/** Returns the obligation that a move fulfills. Null for a fault. @param before the state before the move */
function obligationOf<V extends Vocabulary>(model: Model<V>, move: Move<V>, before: Int32Array): Obligation | null {
  const { node, kind } = move;
  if (move.crashesWithinStep === true) return null;
  switch (kind) {
    case "crash":
    case "lose":
    case "duplicate":
    case "pause":
      return null;
    case "resume":
      return `resumption of ${node}`;
    case "start": {
      const local = before[model.options.nodes.indexOf(node)] as number;
      return model.steps.locals.valueOf(local).status === "crashed" ? null : `start of ${node}`;
    }
    case "timeout":
      return timerOf(node, move.timer);
    case "command":
      return move.by === "application" ? `application of ${node}` : `${move.by} of ${node}: ${canonical(move.command)}`;
    case "receive":
      if (model.options.network === "inbox") return `inbox of ${node}`;
      if (model.options.network === "fifo") return `link ${move.from} → ${node}`;
      return `link ${move.from} → ${node}: ${canonical(move.message)}`;
  }
}

/** The obligation that time passes. */
const TIME: Obligation = "time";

const timerOf = (node: NodeId, timer: string): Obligation => `timer of ${node}: ${timer}`;

/**
 * Returns all transitions out of a state, including those excluded by bounds, because bounds do not change the
 * obligations.
 */
function edgesOf<V extends Vocabulary>({ model, read, find }: Graph<V>, state: number): Edge<V>[] {
  const tuple = new Int32Array(model.width);
  const after = new Int32Array(model.width);
  read(state, tuple);
  const edges: Edge<V>[] = [];
  model.expandPlainly(tuple, (describe, outcome) => {
    const move = describe();
    after.set(model.next);
    model.represent(after);
    const armed = [...(outcome?.armed.keys() ?? [])].map((timer) => timerOf(move.node, timer));
    edges.push({ to: find(after), move, obligation: obligationOf(model, move, tuple), armed });
    return false;
  });
  return edges;
}

/** Whether a run may stop in the state because no further moves have to happen. */
export function rests<V extends Vocabulary>({ model, read }: Graph<V>, state: number): boolean {
  const tuple = new Int32Array(model.width);
  read(state, tuple);
  return !model.expandPlainly(tuple, (move) => obligationOf(model, move(), tuple) !== null);
}

/** A set of states that can reach each other, and the obligations of a run that stays among them. */
export class Component<V extends Vocabulary> {
  readonly #members: ReadonlySet<number>;
  readonly #mayRunOut = new Map<Obligation, boolean>();

  constructor(
    readonly graph: Graph<V>,
    readonly members: readonly number[],
  ) {
    this.#members = new Set(members);
  }

  has(state: number): boolean {
    return this.#members.has(state);
  }

  /** Returns the transitions from one member of the component to another. */
  inside(member: number): Edge<V>[] {
    return edgesOf(this.graph, member).filter(({ to }) => this.#members.has(to));
  }

  /**
   * Returns the obligations that are due at a member. An obligation remains open only while it is due at every
   * successor.
   */
  due(member: number): Set<Obligation> {
    const { model, read } = this.graph;
    const tuple = new Int32Array(model.width);
    read(member, tuple);
    const possible = edgesOf(this.graph, member).flatMap(({ obligation }) => obligation ?? []);
    const armed = model.options.nodes.flatMap((node, i) =>
      model.steps.locals.valueOf(tuple[i] as number).timers.map((timer) => timerOf(node, timer)),
    );
    const time = model.isAwaitingTime(tuple) ? [TIME] : [];
    return new Set([...possible, ...time, ...armed.filter((timer) => this.#runsOut(timer))]);
  }

  /** Returns the obligations that are due at every member but are never fulfilled within the component. */
  neglected(): Obligation[] {
    let neglected = [...this.due(this.members[0] as number)];
    for (const member of this.members) {
      const due = this.due(member);
      const happens = this.inside(member);
      neglected = neglected.filter((each) => due.has(each) && !happens.some((edge) => settles(edge, each)));
      if (neglected.length === 0) break;
    }
    return neglected;
  }

  /** Whether the obligation can be fulfilled at the member. */
  isPossible(obligation: Obligation, member: number): boolean {
    return edgesOf(this.graph, member).some((edge) => edge.obligation === obligation);
  }

  /** Whether the timer can fire at any member. */
  #runsOut(timer: Obligation): boolean {
    const known = this.#mayRunOut.get(timer) ?? this.members.some((member) => this.isPossible(timer, member));
    this.#mayRunOut.set(timer, known);
    return known;
  }
}

/** Whether the transition fulfills the obligation or restarts it. */
function settles<V extends Vocabulary>({ obligation, armed, move }: Edge<V>, due: Obligation): boolean {
  return obligation === due || armed.includes(due) || (due === TIME && move.afterMs !== undefined);
}

export const isTimer = (obligation: Obligation): boolean => obligation.startsWith("timer of ");

/**
 * Returns a shortest path from the initial state. The path does not include that state.
 *
 * @param advance returns the phase (0 or 1) after a transition to a state, given the phase before it
 * @param isGoal applies in phase 1
 */
export function stemTo<V extends Vocabulary>(
  { size, successors }: Graph<V>,
  advance: (state: number, phase: number) => number,
  isGoal: (state: number) => boolean,
): number[] {
  /** The previous position on the path. A position is 2 · state + phase. */
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
 * Returns a path within the component that starts and ends at `entry` and fulfills every obligation that would
 * otherwise stay due. Each leg is a shortest path to the next transition that settles an obligation.
 */
export function roundFrom<V extends Vocabulary>(component: Component<V>, entry: number): Edge<V>[] {
  const inside = remembered((state) => component.inside(state));
  const due = remembered((state) => component.due(state));
  const round: Edge<V>[] = [];
  /** The obligations that have been due in every state so far and have not been fulfilled. */
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

/** Returns a shortest path from a state through an edge that satisfies the condition. */
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
    "the states of a component can reach each other and settle every obligation that is due",
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
