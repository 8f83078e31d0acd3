/** What the properties say of one global state. */
import type { NodeId, Property, StateOf, StateProperty, TimerOf, Vocabulary, World } from "../core/protocol.ts";
import type { Model } from "./model.ts";

export class Properties<V extends Vocabulary> {
  readonly #model: Model<V>;
  readonly #always: readonly StateProperty<V>[];
  readonly #quiescent: readonly StateProperty<V>[];
  #sought: readonly StateProperty<V>[];
  readonly #view: TupleWorld<V>;

  constructor(model: Model<V>, properties: readonly Property<V>[]) {
    this.#model = model;
    const shown = model.histories.shown(properties);
    const those = (when: StateProperty<V>["when"]): StateProperty<V>[] =>
      shown.filter((property): property is StateProperty<V> => property.when === when);
    this.#always = those("always");
    this.#quiescent = those("quiescent");
    this.#sought = those("sometimes");
    this.#view = new TupleWorld(model);
  }

  /** The properties `sometimes` that no state has satisfied so far. */
  get sought(): readonly StateProperty<V>[] {
    return this.#sought;
  }

  /** The first property that the state violates by itself, or null. */
  violatedBy(tuple: Int32Array): Property<V> | null {
    const world = this.#view.of(tuple);
    for (const property of this.#always) if (!property.holds(world)) return property;
    if (this.#quiescent.length === 0 || !this.#model.isQuiet(tuple)) return null;
    for (const property of this.#quiescent) {
      if (!this.#hasArmed(property.pendingTimers ?? [], tuple) && !property.holds(world)) return property;
    }
    return null;
  }

  /** The properties that are sought no longer, since this state satisfies them. */
  foundIn(tuple: Int32Array): readonly StateProperty<V>[] {
    if (this.#sought.length === 0) return [];
    const world = this.#view.of(tuple);
    const found = this.#sought.filter((property) => property.holds(world));
    if (found.length > 0) this.#sought = this.#sought.filter((property) => !found.includes(property));
    return found;
  }

  #hasArmed(timers: readonly TimerOf<V>[], tuple: Int32Array): boolean {
    const { locals } = this.#model.steps;
    return this.#model.options.nodes.some((_, i) =>
      locals.valueOf(tuple[i] as number).timers.some((timer) => timers.includes(timer)),
    );
  }
}

/**
 * The world as properties see it: one object for all states. Every property is asked of every state, so what belongs to
 * a node is found by its place and what belongs to a local state by its number.
 */
export class TupleWorld<V extends Vocabulary> {
  #tuple: Int32Array = new Int32Array(0);
  readonly #world: World<StateOf<V>>;

  constructor(model: Model<V>) {
    const { nodes } = model.options;
    const states: StateOf<V>[] = [];
    const places = new Map(nodes.map((node, i) => [node, i]));
    /** Ids are most often the places themselves. */
    const placeOf = (node: NodeId): number => (nodes[node] === node ? node : (places.get(node) as number));
    const isUp = (_: NodeId, i: number): boolean => model.isAlive(this.#tuple[i] as number);
    this.#world = {
      get alive() {
        return nodes.every(isUp) ? nodes : nodes.filter(isUp);
      },
      nodes,
      history: (node) => model.steps.locals.valueOf(this.#tuple[placeOf(node)] as number).history as never,
      state: (node) => {
        const local = this.#tuple[placeOf(node)] as number;
        states[local] ??= model.steps.locals.valueOf(local).state as StateOf<V>;
        return states[local];
      },
    };
  }

  /** Shows a state until it is asked for the next. */
  of(tuple: Int32Array): World<StateOf<V>> {
    this.#tuple = tuple;
    return this.#world;
  }
}
