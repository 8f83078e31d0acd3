/** What a search looks for in the states of one run. */
import type { LeadsTo, NodeId, Property, StateProperty, Vocabulary } from "../../core/protocol.ts";
import type { Model } from "../model.ts";
import { Properties, TupleWorld } from "../properties.ts";

export class Judge<V extends Vocabulary> {
  readonly #states: Properties<V>;
  readonly #owed: readonly Property<V>[];
  readonly #view: TupleWorld<V>;

  constructor(model: Model<V>, properties: readonly Property<V>[]) {
    this.#states = new Properties(model, properties);
    this.#owed = model.histories.shown(properties).filter(({ when }) => when === "leadsTo" || when === "eventually");
    this.#view = new TupleWorld(model);
  }

  /** The first property that the state by itself violates. */
  violatedBy(tuple: Int32Array): Property<V> | null {
    return this.#states.violatedBy(tuple);
  }

  /** The properties `sometimes` that come true here for the first time. */
  foundIn(tuple: Int32Array): readonly StateProperty<V>[] {
    return this.#states.foundIn(tuple);
  }

  /** A property `sometimes` that has not come true. */
  get missing(): Property<V> | null {
    return this.#states.sought[0] ?? null;
  }

  /**
   * The first promise that is not kept in a state where nothing is bound to happen any more: nobody is going to keep it.
   *
   * @param back The states that led there, by how many moves ago they were; null before the first.
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

  /** Looks back for the last time at which the node was given the obligation, up to where it met it or was down. */
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
