/**
 * What one node brings about, by number. A *local configuration* is a node's local state together with what is on its way to the node;
 * configurations are numbered node by node. Where what a node can do next depends on its configuration alone, its steps are remembered as
 * plain numbers: the configuration that is left, and which envelopes go where.
 */
import type { Vocabulary } from "../core/protocol.ts";
import type { Model } from "./model.ts";
import { PairTable } from "./pair-table.ts";

export class LocalConfigurations<V extends Vocabulary> {
  readonly #model: Model<V>;
  /** How many configurations have been met. */
  size = 0;
  /**
   * For each configuration, side by side since they are asked for together: its local state, its content, and where in `steps`
   * its known steps begin, without and with time-outs; 0: they are not known.
   */
  readonly #configurations = new NumberList();
  /** (local state, content) → configuration; (configuration, envelope) → the configuration that the envelope has been added to. */
  readonly #ids = new PairTable();
  readonly #sums = new PairTable();
  readonly #steps = new NumberList();
  readonly #undisturbed = new NumberList();

  constructor(model: Model<V>) {
    this.#model = model;
    this.#steps.push(0);
  }

  get bytes(): number {
    const lists = [this.#configurations, this.#steps, this.#undisturbed];
    return lists.reduce((sum, list) => sum + 4 * list.values.length, this.#ids.bytes + this.#sums.bytes);
  }

  idOf(local: number, content: number): number {
    const known = this.#ids.get(local, content);
    if (known >= 0) return known;
    const id = this.size++;
    this.#ids.add(local, content, id);
    for (const number of [local, content, 0, 0]) this.#configurations.push(number);
    this.#undisturbed.push(this.#model.isUndisturbed(local, content) ? 1 : 0);
    return id;
  }

  localOf(configuration: number): number {
    return this.#configurations.values[4 * configuration] as number;
  }

  contentOf(configuration: number): number {
    return this.#configurations.values[4 * configuration + 1] as number;
  }

  /** Whether nothing is on its way to the node. */
  isUndisturbed(configuration: number): boolean {
    return this.#undisturbed.values[configuration] === 1;
  }

  /** The number of a configuration that may not have been met; −1 for one that has not. */
  find(local: number, content: number): number {
    return this.#ids.get(local, content);
  }

  /** The configuration after an envelope has been sent to its node. */
  plus(configuration: number, envelope: number): number {
    const known = this.#sums.get(configuration, envelope);
    if (known >= 0) return known;
    const local = this.localOf(configuration);
    const content = this.contentOf(configuration);
    const sum = this.idOf(local, this.#model.contentAfter(local, content, envelope));
    this.#sums.add(configuration, envelope, sum);
    return sum;
  }

  /** Numbers among which are those of all steps; see `begin`. */
  get steps(): Int32Array {
    return this.#steps.values;
  }

  /**
   * Where in `steps` those of a configuration begin: how many there are, and for each the configuration that is left, how many envelopes are
   * sent, and for each of these the receiver's index and the envelope. 0: they are not known.
   */
  begin(configuration: number, withTimeouts: boolean): number {
    return this.#configurations.values[4 * configuration + (withTimeouts ? 3 : 2)] as number;
  }

  /** @param steps as they stand in `steps` */
  remember(configuration: number, withTimeouts: boolean, steps: readonly number[]): void {
    this.#configurations.values[4 * configuration + (withTimeouts ? 3 : 2)] = this.#steps.size;
    for (const number of steps) this.#steps.push(number);
  }
}

/** Numbers of 32 bits, one after the other. */
class NumberList {
  size = 0;
  /** As long as there is room; what lies beyond `size` means nothing. */
  values = new Int32Array(1 << 6);

  push(value: number): void {
    if (this.size === this.values.length) {
      const grown = new Int32Array(2 * this.size);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.size++] = value;
  }
}
