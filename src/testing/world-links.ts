/** The links between the machines of a world: how they are, and which are cut. */
import type { NodeId } from "../core/protocol.ts";
import { intoGroups, intoShape, type PartitionShape } from "../sim/links.ts";
import type { LinkModel, Machine, SimulatedNetwork } from "./simulated-network.ts";

/** Groups that cannot reach each other, or another shape. */
export type Partition = (readonly NodeId[])[] | [PartitionShape];

export class WorldLinks {
  readonly #network: SimulatedNetwork;
  /** Of links that nobody has set otherwise. */
  readonly model: LinkModel;
  /** What takes back the cuts that were asked for. */
  #cuts: (() => void)[] = [];

  /** Links all of these machines, as `model` says. */
  constructor(network: SimulatedNetwork, machines: readonly NodeId[], model: LinkModel) {
    this.#network = network;
    this.model = model;
    this.#eachPair(machines, (from, to) => this.set(from, to));
  }

  /** One more machine, linked with these others as `model` says. */
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

  /** In addition to what was cut before. */
  cut(from: NodeId, to: NodeId): void {
    this.#cuts.push(this.#network.link(from, to).cut());
  }

  /**
   * In place of what was cut before.
   * @param placeOf of one of these machines among them; throws for others
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

  /** Takes back partitions and cuts. */
  mend(): void {
    for (const mend of this.#cuts) mend();
    this.#cuts = [];
  }

  #eachPair(machines: readonly NodeId[], see: (from: NodeId, to: NodeId) => void): void {
    for (const from of machines) for (const to of machines) if (from !== to) see(from, to);
  }
}

/** The machines that it names, if it names any. */
export const namedIn = (given: Partition): readonly NodeId[] => (isShape(given) ? [] : given.flat());

const isShape = (given: Partition): given is [PartitionShape] => given[0] !== undefined && "shape" in given[0];
