/** The links between a world's machines: how they behave, and which of them are cut. */
import type { NodeId } from "../core/protocol.ts";
import { intoGroups, intoShape, type PartitionShape } from "../sim/links.ts";
import type { LinkModel, Machine, SimulatedNetwork } from "./simulated-network.ts";

/** Groups that cannot reach each other, or a named shape. */
export type Partition = (readonly NodeId[])[] | [PartitionShape];

/** Sets how links behave, and cuts and restores them. */
export class WorldLinks {
  readonly #network: SimulatedNetwork;
  /** How links behave unless set individually. */
  readonly model: LinkModel;
  /** The functions that end the current cuts. */
  #cuts: (() => void)[] = [];

  /** Links all of these machines with each other, using `model`. */
  constructor(network: SimulatedNetwork, machines: readonly NodeId[], model: LinkModel) {
    this.#network = network;
    this.model = model;
    this.#eachPair(machines, (from, to) => this.set(from, to));
  }

  /** Adds a machine and links it to the others, using `model`. */
  add(machine: Machine, others: readonly NodeId[]): void {
    this.#network.add(machine);
    for (const other of others) {
      this.set(machine.id, other);
      this.set(other, machine.id);
    }
  }

  set(from: NodeId, to: NodeId, model: LinkModel = this.model): void {
    this.#network.link(from, to).set(model);
  }

  /** Cuts a link, in addition to existing cuts. */
  cut(from: NodeId, to: NodeId): void {
    this.#cuts.push(this.#network.link(from, to).cut());
  }

  /**
   * Replaces all existing cuts.
   * @param placeOf returns the index of one of these machines, and throws for any other id
   */
  partition(machines: readonly NodeId[], given: Partition, placeOf: (id: NodeId) => number): void {
    const isApart = isShape(given)
      ? intoShape(machines.length, given[0], placeOf)
      : intoGroups(machines.length, given, placeOf);
    this.mend();
    this.#eachPair(machines, (from, to) => {
      if (isApart(placeOf(from), placeOf(to))) this.cut(from, to);
    });
  }

  /** Ends partitions and cuts. */
  mend(): void {
    for (const mend of this.#cuts) mend();
    this.#cuts = [];
  }

  #eachPair(machines: readonly NodeId[], see: (from: NodeId, to: NodeId) => void): void {
    for (const from of machines) for (const to of machines) if (from !== to) see(from, to);
  }
}

/** Returns the machines named in a partition, if any. */
export const namedIn = (given: Partition): readonly NodeId[] => (isShape(given) ? [] : given.flat());

const isShape = (given: Partition): given is [PartitionShape] => given[0] !== undefined && "shape" in given[0];
