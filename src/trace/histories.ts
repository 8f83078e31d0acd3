/** The histories that a protocol's properties keep for one node. A driver stores one such list per node. */
import { InvariantViolation } from "../core/errors.ts";
import type {
  CommandOf,
  EventOf,
  History,
  NodeId,
  Property,
  ReplyOf,
  RequestId,
  StateOf,
  Vocabulary,
  World,
} from "../core/protocol.ts";

/** A node's histories, each at its property's position among the properties that have a history. */
export type Remembered = readonly unknown[];

/**
 * Maps each wrapped property to the declared one. A search returns wrapped properties, which a caller may pass in
 * again.
 */
const declared = new WeakMap<object, object>();

/** The histories that have been created. All runs of a protocol share them. */
const made = new WeakMap<object, Histories<Vocabulary>>();

/** Returns the histories of these properties. They are created once per list of properties. */
export function historiesOf<V extends Vocabulary>(properties: readonly Property<V>[]): Histories<V> {
  const known = made.get(properties) as Histories<V> | undefined;
  if (known !== undefined) return known;
  const histories = new Histories(properties);
  made.set(properties, histories);
  return histories;
}

/** Updates the histories of a node. */
export class Histories<V extends Vocabulary> {
  /** The histories of a node that has not emitted any events. */
  readonly empty: Remembered;
  readonly #own: readonly Property<V>[];
  #ownShown: readonly Property<V>[] | null = null;
  readonly #kept: readonly History<V, unknown>[];

  constructor(properties: readonly Property<V>[]) {
    this.#own = properties;
    this.#kept = [...new Set(properties.flatMap(({ history }) => history ?? []))];
    this.empty = this.#kept.map(({ empty }) => empty);
  }

  /** Returns the histories after one more event at the node. Returns the same list if no property's history changes. */
  after(before: Remembered, event: EventOf<V>): Remembered {
    return this.#changed(before, (history, known) => history.after(known, event));
  }

  /** Returns the histories after a command that expects a reply. */
  requested(before: Remembered, command: CommandOf<V>): Remembered {
    return this.#changed(before, (history, known) => history.afterRequest?.(known, command) ?? known);
  }

  replied(before: Remembered, request: RequestId, reply: ReplyOf<V>): Remembered {
    return this.#changed(before, (history, known) => history.afterReply?.(known, request, reply) ?? known);
  }

  #changed(before: Remembered, change: (history: History<V, unknown>, known: unknown) => unknown): Remembered {
    const after = this.#kept.map((history, place) => change(history, before[place]));
    return after.some((value, place) => value !== before[place]) ? after : before;
  }

  /** Returns the properties, wrapped so that they can be evaluated in a driver's world. */
  shown(properties: readonly Property<V>[]): readonly Property<V>[] {
    if (properties !== this.#own) return this.#allShown(properties);
    this.#ownShown ??= this.#allShown(properties);
    return this.#ownShown;
  }

  #allShown(properties: readonly Property<V>[]): readonly Property<V>[] {
    return properties.map((property) => {
      if (property.history === undefined) return property;
      const original = (declared.get(property) ?? property) as Property<V>;
      const shown = this.#shown(original);
      declared.set(shown, original);
      return shown;
    });
  }

  #shown(property: Property<V>): Property<V> {
    const place = this.#kept.indexOf(property.history as History<V, unknown>);
    if (place < 0) throw new InvariantViolation("unknown-history", `no history is recorded for "${property.name}"`);
    let last: World<StateOf<V>> | null = null;
    let own: World<StateOf<V>> | null = null;
    /** Returns the world for properties. A driver has only one world. */
    function seen(world: World<StateOf<V>>): World<StateOf<V>> {
      if (own !== null && world === last) return own;
      last = world;
      own = new WithHistory(world, place);
      return own;
    }
    if (property.when !== "leadsTo")
      return { ...property, holds: (world: World<StateOf<V>>) => property.holds(seen(world)) };
    return {
      ...property,
      given: (world, node) => property.given(seen(world), node),
      holds: (world, node) => property.holds(seen(world), node),
    };
  }
}

/** A driver's world as seen by a property with a history. `place` is the history's position in the list. */
class WithHistory<S> implements World<S> {
  readonly nodes: readonly NodeId[];
  readonly state: (node: NodeId) => S;
  readonly history: <H>(node: NodeId) => H;
  readonly #world: World<S>;

  constructor(world: World<S>, place: number) {
    this.nodes = world.nodes;
    this.state = (node) => world.state(node);
    this.history = (node) => world.history<Remembered>(node)[place] as never;
    this.#world = world;
  }

  get alive(): readonly NodeId[] {
    return this.#world.alive;
  }
}
