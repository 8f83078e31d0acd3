/** The nodes of a simulation, by id and by index, and whether they are alive. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId, StateOf, Vocabulary, World } from "../core/protocol.ts";
import type { Remembered } from "../trace/histories.ts";
import { type Effects, SimulatedNode } from "./simulated-node.ts";

export class Population<V extends Vocabulary> {
  /** The ids, in ascending order. A node's place is the index of its id in this list. */
  readonly ids: readonly NodeId[];
  /** The nodes, ordered by place. */
  readonly nodes: readonly SimulatedNode<V>[];
  readonly world: World<StateOf<V>>;
  /** The place of each id. Null if the ids have no gaps, because the lowest id then determines all places. */
  private readonly places: ReadonlyMap<NodeId, number> | null;
  private readonly lowest: NodeId;
  /** The ids of the alive nodes. Null if they must be recomputed. */
  private alive: readonly NodeId[] | null = null;

  constructor(named: readonly NodeId[], effects: Effects<V>, history: Remembered) {
    this.ids = [...named].sort((a, b) => a - b);
    this.lowest = this.ids[0] ?? 0;
    const hasGaps = (this.ids.at(-1) ?? 0) - this.lowest !== this.ids.length - 1;
    this.places = hasGaps ? new Map(this.ids.map((id, place) => [id, place])) : null;
    const nodes = new Array<SimulatedNode<V>>(named.length);
    // Create the nodes in the given order, so that neighbors in a large ring are adjacent in memory.
    for (const id of named) nodes[this.placeOf(id)] = new SimulatedNode<V>(id, this.placeOf(id), effects);
    if (history.length > 0) for (const node of nodes) node.history = history;
    this.nodes = nodes;
    this.world = new SeenByProperties(this);
  }

  private placeOf(id: NodeId): number {
    return this.places === null ? id - this.lowest : (this.places.get(id) ?? -1);
  }

  /** Returns a node. Null if there is no such node. */
  find(id: NodeId): SimulatedNode<V> | null {
    const place = this.placeOf(id);
    return (place >= 0 ? this.nodes[place] : undefined) ?? null;
  }

  /** Returns a node. @throws UsageError if there is no such node */
  node(id: NodeId): SimulatedNode<V> {
    const found = this.find(id);
    if (found !== null) return found;
    const known = `${this.ids.slice(0, 20).join(", ")}${this.ids.length > 20 ? " …" : ""}`;
    throw new UsageError("unknown-node", unexpected("the node", `one of ${known}`, id));
  }

  /** Returns an alive node. @throws UsageError if the node is not alive */
  aliveNode(id: NodeId): SimulatedNode<V> & { state: StateOf<V> } {
    const found = this.node(id);
    if (found.state === undefined)
      throw new UsageError("node-down", `expected node ${id} to be alive, but it has crashed`);
    return found as SimulatedNode<V> & { state: StateOf<V> };
  }

  /** Sets a node's state. Undefined means that the node is down. */
  setState(node: SimulatedNode<V>, state: StateOf<V> | undefined): void {
    node.state = state;
    this.alive = null;
  }

  /** The ids of the alive nodes, in ascending order. */
  get aliveIds(): readonly NodeId[] {
    this.alive ??= this.nodes.filter(({ state }) => state !== undefined).map(({ self }) => self);
    return this.alive;
  }
}

/** A population as seen by properties. `state` must also work when a property passes it on as a function. */
class SeenByProperties<V extends Vocabulary> implements World<StateOf<V>> {
  readonly nodes: readonly NodeId[];
  readonly state: (id: NodeId) => StateOf<V>;
  readonly history: <H>(id: NodeId) => H;
  readonly #population: Population<V>;

  constructor(population: Population<V>) {
    this.nodes = population.ids;
    this.state = (id) => population.aliveNode(id).state;
    this.history = (id) => population.node(id).history as never;
    this.#population = population;
  }

  get alive(): readonly NodeId[] {
    return this.#population.aliveIds;
  }
}

/**
 * The maximum number of nodes for which each node has its own list of peers. Beyond it, one list per node would take
 * more memory than everything else combined.
 */
const MANY_NODES = 1_000;

/** Returns the peers of the node at index `place` in `ids`, the list of all nodes. */
export function peersOf(ids: readonly NodeId[], place: number): readonly NodeId[] {
  return ids.length <= MANY_NODES ? Object.freeze(ids.toSpliced(place, 1)) : viewWithout(ids, place);
}

/** Returns an object that behaves like an array, but skips one index of the underlying array. */
function viewWithout(ids: readonly NodeId[], place: number): readonly NodeId[] {
  const length = ids.length - 1;
  const indexOf = (key: string | symbol): number =>
    typeof key === "string" && /^\d+$/.test(key) && Number(key) < length ? Number(key) : -1;
  return new Proxy<readonly NodeId[]>([], {
    get(target, key) {
      if (key === "length") return length;
      if (key === "includes") return (id: NodeId) => id !== ids[place] && isAmong(ids, id);
      const index = indexOf(key);
      return index < 0 ? Reflect.get(target, key) : ids[index < place ? index : index + 1];
    },
    has: (target, key) => indexOf(key) >= 0 || Reflect.has(target, key),
  });
}

/** Whether an id is in the list. The ids are in ascending order, so binary search is used. */
function isAmong(ids: readonly NodeId[], id: NodeId): boolean {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ids[middle] as NodeId) < id) from = middle + 1;
    else to = middle;
  }
  return ids[from] === id;
}
