/** Evaluation of properties in a single global state or on a single run. */
import type {
  LeadsTo,
  NodeId,
  Property,
  StateOf,
  StateProperty,
  TimerOf,
  Vocabulary,
  World,
} from "../core/protocol.ts";
import type { Model } from "./model.ts";

/** Evaluates properties of single states. */
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

  /** The `sometimes` properties that no state has satisfied yet. */
  get sought(): readonly StateProperty<V>[] {
    return this.#sought;
  }

  /** Returns the first property that the state itself violates, or null if there is none. */
  violatedBy(tuple: Int32Array): Property<V> | null {
    const world = this.#view.of(tuple);
    for (const property of this.#always) if (!property.holds(world)) return property;
    if (this.#quiescent.length === 0 || !this.#model.isQuiet(tuple)) return null;
    for (const property of this.#quiescent) {
      if (!this.#hasArmed(property.pendingTimers ?? [], tuple) && !property.holds(world)) return property;
    }
    return null;
  }

  /** Returns the `sometimes` properties that this state satisfies for the first time. They are no longer sought. */
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
 * The world as properties see it. One object is reused for all states. Every property is evaluated in every state, so
 * lookups must be fast: nodes are looked up by index and local states by number.
 */
export class TupleWorld<V extends Vocabulary> {
  #tuple: Int32Array = new Int32Array(0);
  readonly #world: World<StateOf<V>>;

  constructor(model: Model<V>) {
    const { nodes } = model.options;
    const states: StateOf<V>[] = [];
    const places = new Map(nodes.map((node, i) => [node, i]));
    /** Ids usually equal the indices. */
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

  /** Returns the world for this state. It is valid until the next call. */
  of(tuple: Int32Array): World<StateOf<V>> {
    this.#tuple = tuple;
    return this.#world;
  }
}

/** Evaluates all properties on one run, including `leadsTo` and `eventually` properties if the run stops. */
export class Judge<V extends Vocabulary> {
  readonly #states: Properties<V>;
  readonly #owed: readonly Property<V>[];
  readonly #view: TupleWorld<V>;

  constructor(model: Model<V>, properties: readonly Property<V>[]) {
    this.#states = new Properties(model, properties);
    this.#owed = model.histories.shown(properties).filter(({ when }) => when === "leadsTo" || when === "eventually");
    this.#view = new TupleWorld(model);
  }

  /** Returns the first property that the state itself violates. */
  violatedBy(tuple: Int32Array): Property<V> | null {
    return this.#states.violatedBy(tuple);
  }

  /** Returns the `sometimes` properties that come true here for the first time. */
  foundIn(tuple: Int32Array): readonly StateProperty<V>[] {
    return this.#states.foundIn(tuple);
  }

  /** A `sometimes` property that has not come true. */
  get missing(): Property<V> | null {
    return this.#states.sought[0] ?? null;
  }

  /**
   * Returns the first property with an obligation that remains open because no further moves have to happen.
   *
   * @param back returns the state this many moves ago, or null if there were fewer moves
   */
  brokenBy(back: (moves: number) => Int32Array | null): Property<V> | null {
    for (const promise of this.#owed) {
      const world = this.#view.of(back(0) as Int32Array);
      const isBroken =
        promise.when === "leadsTo"
          ? world.alive.some((node) => this.#isOpen(promise, node, back))
          : !promise.holds(world);
      if (isBroken) return promise;
    }
    return null;
  }

  /**
   * Whether an obligation is open. Searches backwards for the last time that the obligation arose at the node, stopping
   * where the node had fulfilled it or was down.
   */
  #isOpen(property: LeadsTo<V>, node: NodeId, back: (moves: number) => Int32Array | null): boolean {
    for (let moves = 0; ; moves++) {
      const tuple = back(moves);
      if (tuple === null) return false;
      const world = this.#view.of(tuple);
      if (!world.alive.includes(node) || property.holds(world, node)) return false;
      if (property.given(world, node)) return true;
    }
  }
}
