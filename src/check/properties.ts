/** Whether a global state violates a property. */
import type { NodeId, Property, StateOf, StateProperty, TimerOf, Vocabulary, World } from "../core/protocol.ts";
import type { Model } from "./model.ts";

export class Properties<V extends Vocabulary> {
  readonly #always: readonly StateProperty<V>[];
  readonly #atRest: readonly StateProperty<V>[];
  /** The state that is being looked at; the world below reads it. */
  #tuple: Int32Array = new Int32Array(0);
  readonly #world: World<StateOf<V>>;

  constructor(
    private readonly model: Model<V>,
    properties: readonly Property<V>[],
  ) {
    this.#always = properties.filter((property): property is StateProperty<V> => property.when === "always");
    this.#atRest = properties.filter((property): property is StateProperty<V> => property.when === "atRest");
    this.#world = this.#worldOf(model.options.nodes, () => this.#tuple);
  }

  /** The first property that the state violates, or null. */
  violatedBy(tuple: Int32Array): Property<V> | null {
    this.#tuple = tuple;
    for (const property of this.#always) if (!property.holds(this.#world)) return property;
    if (this.#atRest.length === 0 || !this.model.isQuiet(tuple)) return null;
    for (const property of this.#atRest) {
      if (!this.#hasArmed(property.restless ?? []) && !property.holds(this.#world)) return property;
    }
    return null;
  }

  #hasArmed(timers: readonly TimerOf<V>[]): boolean {
    const { locals } = this.model.steps;
    return this.model.options.nodes.some((_, i) =>
      locals.valueOf(this.#tuple[i] as number).timers.some((timer) => timers.includes(timer)),
    );
  }

  #worldOf(nodes: readonly NodeId[], tuple: () => Int32Array): World<StateOf<V>> {
    const { model } = this;
    const index = new Map(nodes.map((node, i) => [node, i]));
    const isUp = (_: NodeId, i: number): boolean => model.isAlive(tuple()[i] as number);
    return {
      get alive() {
        return nodes.every(isUp) ? nodes : nodes.filter(isUp);
      },
      state: (node) => model.steps.locals.valueOf(tuple()[index.get(node) as number] as number).state as StateOf<V>,
    };
  }
}
