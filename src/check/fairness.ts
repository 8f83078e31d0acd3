/**
 * Fairness: what is possible without a break from some time on happens in the end. For each link that its head is
 * delivered (where links keep no order: each message); for each node that it starts, is given the next command of its
 * script, what it is to be told of a crash, and one of the commands that the application may give. Of a timer more is
 * asked: it runs out if it stays armed, is not armed anew, and may run out again and again, be it with breaks, as when
 * timers wait until no message is on its way. Faults never have to happen.
 */
import { canonical } from "../core/plain.ts";
import type { NodeId, Vocabulary } from "../core/protocol.ts";
import type { Model, Move } from "./model.ts";

/** Something that is bound to happen, in words. Equal for the moves by which it happens. */
export type Obligation = string;

/** A transition to a state by its number; −1 for one that bounds cut off. */
export interface Edge<V extends Vocabulary> {
  readonly to: number;
  readonly move: Move<V>;
  /** What happens by it; null for a fault. */
  readonly obligation: Obligation | null;
  /** The timers that it arms, anew or for the first time, as obligations. */
  readonly armed: readonly Obligation[];
}

/** The stored part of a state space. */
export interface Graph<V extends Vocabulary> {
  readonly model: Model<V>;
  readonly size: number;
  read(state: number, into: Int32Array): void;
  /** The number of a state, or −1. */
  find(tuple: Int32Array): number;
  /** The numbers of the stored states that a state leads to. */
  successors(state: number): readonly number[];
}

/** Null for a fault. @param before the state in which the move is possible */
function obligationOf<V extends Vocabulary>(model: Model<V>, move: Move<V>, before: Int32Array): Obligation | null {
  const { node, kind } = move;
  if (move.crashesWithinStep === true) return null;
  switch (kind) {
    case "crash":
    case "lose":
    case "duplicate":
      return null;
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

const timerOf = (node: NodeId, timer: string): Obligation => `timer of ${node}: ${timer}`;

/** All transitions out of a state, those that bounds cut off included: bounds do not change what is bound to happen. */
function edgesOf<V extends Vocabulary>({ model, read, find }: Graph<V>, state: number): Edge<V>[] {
  const tuple = new Int32Array(model.width);
  const after = new Int32Array(model.width);
  read(state, tuple);
  const edges: Edge<V>[] = [];
  model.expandPlainly(tuple, (describe, outcome) => {
    const move = describe();
    after.set(model.next);
    model.represent(after);
    const armed = [...(outcome?.armed ?? [])].map((timer) => timerOf(move.node, timer));
    edges.push({ to: find(after), move, obligation: obligationOf(model, move, tuple), armed });
    return false;
  });
  return edges;
}

/** Whether a run may stop in the state: nothing is bound to happen. */
export function rests<V extends Vocabulary>({ model, read }: Graph<V>, state: number): boolean {
  const tuple = new Int32Array(model.width);
  read(state, tuple);
  return !model.expandPlainly(tuple, (move) => obligationOf(model, move(), tuple) !== null);
}

/** States that lead to each other, and what a run is bound to that stays among them. */
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

  /** The transitions from a member to members. */
  inside(member: number): Edge<V>[] {
    return edgesOf(this.graph, member).filter(({ to }) => this.#members.has(to));
  }

  /** What has to happen from a member on, unless it is not due in one of the next. */
  due(member: number): Set<Obligation> {
    const { model, read } = this.graph;
    const tuple = new Int32Array(model.width);
    read(member, tuple);
    const possible = edgesOf(this.graph, member).flatMap(({ obligation }) => obligation ?? []);
    const armed = model.options.nodes.flatMap((node, i) =>
      model.steps.locals.valueOf(tuple[i] as number).timers.map((timer) => timerOf(node, timer)),
    );
    return new Set([...possible, ...armed.filter((timer) => this.#runsOut(timer))]);
  }

  /** What is due in every member, and nowhere happens. */
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

  /** Whether that is possible in a member. */
  isPossible(obligation: Obligation, member: number): boolean {
    return edgesOf(this.graph, member).some((edge) => edge.obligation === obligation);
  }

  /** Whether there are members in which the timer may run out. */
  #runsOut(timer: Obligation): boolean {
    const known = this.#mayRunOut.get(timer) ?? this.members.some((member) => this.isPossible(timer, member));
    this.#mayRunOut.set(timer, known);
    return known;
  }
}

/** Whether what is due happens by that transition, or begins anew. */
export function settles<V extends Vocabulary>({ obligation, armed }: Edge<V>, due: Obligation): boolean {
  return obligation === due || armed.includes(due);
}

export const isTimer = (obligation: Obligation): boolean => obligation.startsWith("timer of ");
