/**
 * The states found so far, and the search for more. A state is stored as a tuple: one configuration per node, followed
 * by its budgets. Successors are collected in a batch and stored together, in order, so that the processor waits for
 * memory once per batch instead of once per successor.
 */
import type { Vocabulary } from "../core/protocol.ts";
import type { Outcome } from "./local-steps.ts";
import type { Model } from "./model.ts";
import { PairTable, StateStore } from "./state-store.ts";

const BATCH = 256;
/** The number of states whose data is prefetched together before they are expanded. */
const AHEAD = 16;

/** The states found so far, and the expansion of one of them. */
export class StateSpace<V extends Vocabulary> {
  readonly #model: Model<V>;
  readonly #arrive: Arrival;
  readonly store: StateStore;
  readonly #count: number;
  readonly #configurations: readonly LocalConfigurations<V>[];
  readonly #batch = new Batch();
  /** The words of the state being expanded. The next two fields hold its configurations and budgets, and its tuple. */
  #from: Int32Array;
  readonly #now: Int32Array;
  readonly #tuple: Int32Array;
  /** The offsets of the prefetched configurations' cached steps. */
  readonly #begins: Int32Array;
  /** A meaningless value. It prevents the prefetching reads from being optimized away. */
  touched = 0;

  constructor(model: Model<V>, arrive: Arrival) {
    this.#model = model;
    this.#arrive = arrive;
    this.#count = model.options.nodes.length;
    this.#configurations = model.options.nodes.map(() => new LocalConfigurations(model));
    this.#now = new Int32Array(model.width - this.#count);
    this.#tuple = new Int32Array(model.width);
    this.#begins = new Int32Array(AHEAD * this.#count);
    this.store = new StateStore(this.#now.length);
    this.#from = new Int32Array(this.store.packing.words);
  }

  get size(): number {
    return this.store.size;
  }

  /** The memory used by states and cached steps, in bytes. */
  get bytes(): number {
    return this.#configurations.reduce((sum, configurations) => sum + configurations.bytes, this.store.bytes);
  }

  /** Adds a state by its tuple, like `StateStore.add`. */
  add(tuple: Int32Array): number {
    for (let i = 0; i < this.#now.length; i++) this.#now[i] = this.#componentOf(tuple, i);
    return this.store.add(this.#now);
  }

  /** Returns the number of a state, or −1 if the state is unknown. */
  find(tuple: Int32Array): number {
    const sought = this.#now.slice();
    for (let i = 0; i < this.#count; i++) {
      const configuration = (this.#configurations[i] as LocalConfigurations<V>).find(
        tuple[i] as number,
        tuple[this.#count + i] as number,
      );
      if (configuration < 0) return -1;
      sought[i] = configuration;
    }
    for (let i = this.#count; i < sought.length; i++) sought[i] = tuple[this.#count + i] as number;
    return this.store.find(sought);
  }

  /** Copies the tuple of state `id` into `into`. */
  read(id: number, into: Int32Array): void {
    this.store.read(id, this.#now);
    this.#spell(this.#now, into);
  }

  /** Copies the tuple of a state that was passed to `arrive`. */
  readPacked(words: Int32Array, at: number, into: Int32Array): void {
    for (let i = 0; i < this.#count; i++) {
      const configuration = this.store.packing.get(words, at, i);
      into[i] = (this.#configurations[i] as LocalConfigurations<V>).localOf(configuration);
      into[this.#count + i] = (this.#configurations[i] as LocalConfigurations<V>).contentOf(configuration);
    }
    for (let i = this.#count; i < this.#now.length; i++) into[this.#count + i] = this.store.packing.get(words, at, i);
  }

  /**
   * Finds the successors of a state. They are passed to `arrive`, either now or by `settle()`. Returns true if the
   * search has ended.
   */
  expand(id: number): boolean {
    if (id % AHEAD === 0) this.#bringNear(id + AHEAD);
    for (;;) {
      const { size } = this.#batch;
      this.store.readPacked(id, this.#from);
      this.store.packing.unpack(this.#from, 0, this.#now);
      const withTimeouts = this.#model.timersMay(() => this.#isUndisturbed());
      if (this.#isRemembered(withTimeouts) || this.#learn(withTimeouts)) this.#repeat(id, withTimeouts);
      else this.#copy(id);
      if (this.#hasRoom()) return this.#batch.size >= BATCH && this.settle();
      // A successor does not fit. The state is expanded again after widening.
      this.#batch.size = size;
      if (this.settle()) return true;
      this.#widen();
    }
  }

  /** Returns the numbers of a state's stored successors. Successors that bounds excluded are not stored. */
  successors(id: number): number[] {
    const found: number[] = [];
    this.store.read(id, this.#now);
    const withTimeouts = this.#model.timersMay(() => this.#isUndisturbed());
    if (this.#isRemembered(withTimeouts)) this.#recall(withTimeouts, found);
    else {
      this.#spell(this.#now, this.#tuple);
      this.#model.expand(this.#tuple, () => {
        const next = this.find(this.#model.next);
        if (next >= 0) found.push(next);
        return false;
      });
    }
    return found;
  }

  /** Adds the stored states that result from the cached steps of each configuration. */
  #recall(withTimeouts: boolean, found: number[]): void {
    const now = this.#now;
    const next = now.slice();
    for (let i = 0; i < this.#count; i++) {
      const configurations = this.#configurations[i] as LocalConfigurations<V>;
      const { steps } = configurations;
      let place = configurations.begin(now[i] as number, withTimeouts);
      for (let left = steps[place++] as number; left > 0; left--) {
        next[i] = steps[place++] as number;
        for (let sends = steps[place++] as number; sends > 0; sends--) {
          const to = steps[place++] as number;
          next[to] = (this.#configurations[to] as LocalConfigurations<V>).plus(
            next[to] as number,
            steps[place++] as number,
          );
        }
        const state = this.store.find(next);
        if (state >= 0) found.push(state);
        next.set(now);
      }
    }
  }

  /** Passes all waiting successors to `arrive`. Returns true if the search has ended. */
  settle(): boolean {
    return this.#batch.settle(this.store, this.#arrive);
  }

  /** Prefetches the cached data of upcoming states. The processor can wait for many independent reads at once. */
  #bringNear(first: number): void {
    const { packing, size } = this.store;
    const begins = this.#begins;
    const count = this.#count;
    const withTimeouts = this.#model.options.timers === "free";
    const states = Math.max(0, Math.min(AHEAD, size - first));
    for (let k = 0; k < states; k++) {
      this.store.readPacked(first + k, this.#from);
      for (let i = 0; i < count; i++)
        begins[k * count + i] = (this.#configurations[i] as LocalConfigurations<V>).begin(
          packing.get(this.#from, 0, i),
          withTimeouts,
        );
    }
    for (let k = 0; k < states; k++) {
      for (let i = 0; i < count; i++)
        this.touched ^= (this.#configurations[i] as LocalConfigurations<V>).steps[
          begins[k * count + i] as number
        ] as number;
    }
  }

  #componentOf(tuple: Int32Array, i: number): number {
    const beside = tuple[this.#count + i] as number;
    return i < this.#count
      ? (this.#configurations[i] as LocalConfigurations<V>).idOf(tuple[i] as number, beside)
      : beside;
  }

  #spell(components: Int32Array, tuple: Int32Array): void {
    for (let i = 0; i < components.length; i++) {
      const component = components[i] as number;
      if (i < this.#count) {
        tuple[i] = (this.#configurations[i] as LocalConfigurations<V>).localOf(component);
        tuple[this.#count + i] = (this.#configurations[i] as LocalConfigurations<V>).contentOf(component);
      } else tuple[this.#count + i] = component;
    }
  }

  #isUndisturbed(): boolean {
    for (let i = 0; i < this.#count; i++)
      if (!(this.#configurations[i] as LocalConfigurations<V>).isUndisturbed(this.#now[i] as number)) return false;
    return true;
  }

  /** Whether the steps of all configurations are cached and no other moves are possible. */
  #isRemembered(withTimeouts: boolean): boolean {
    for (let i = 0; i < this.#count; i++)
      if ((this.#configurations[i] as LocalConfigurations<V>).begin(this.#now[i] as number, withTimeouts) === 0)
        return false;
    // The same configurations may also occur in a state with a remaining fault budget.
    if (this.#now.length === this.#count) return true;
    this.#spell(this.#now, this.#tuple);
    return this.#model.isLocal(this.#tuple);
  }

  /** Adds the successors that result from the cached steps of each configuration. */
  #repeat(id: number, withTimeouts: boolean): void {
    const { packing } = this.store;
    const now = this.#now;
    const batch = this.#batch;
    for (let i = 0; i < this.#count; i++) {
      const configuration = now[i] as number;
      const configurations = this.#configurations[i] as LocalConfigurations<V>;
      const { steps } = configurations;
      let place = configurations.begin(configuration, withTimeouts);
      for (let left = steps[place++] as number; left > 0; left--) {
        const at = batch.open(id, this.#from, packing.words);
        const { words } = batch;
        const after = steps[place++] as number;
        packing.change(words, at, i, configuration, after);
        now[i] = after;
        const envelopes = steps[place++] as number;
        const end = place + 2 * envelopes;
        for (let k = place; k < end; k += 2) {
          const to = steps[k] as number;
          const before = now[to] as number;
          const sum = (this.#configurations[to] as LocalConfigurations<V>).plus(before, steps[k + 1] as number);
          packing.change(words, at, to, before, sum);
          now[to] = sum;
        }
        for (; place < end; place += 2) {
          const to = steps[place] as number;
          now[to] = packing.get(this.#from, 0, to);
        }
        now[i] = configuration;
      }
    }
  }

  /** Caches the steps of all configurations, if they do not depend on the rest of the state. */
  #learn(withTimeouts: boolean): boolean {
    this.#spell(this.#now, this.#tuple);
    if (!this.#model.isLocal(this.#tuple)) return false;
    for (let i = 0; i < this.#count; i++) {
      const configurations = this.#configurations[i] as LocalConfigurations<V>;
      const configuration = this.#now[i] as number;
      if (configurations.begin(configuration, withTimeouts) !== 0) continue;
      const steps = [0];
      this.#model.expandNode(this.#tuple, i, (_move, outcome) => {
        const { local, sends } = outcome as Outcome<V>;
        steps[0] = (steps[0] as number) + 1;
        steps.push(configurations.idOf(local, this.#model.left), sends.length);
        for (const { to, envelope } of sends) steps.push(to, envelope);
        return false;
      });
      configurations.remember(configuration, withTimeouts, steps);
    }
    return true;
  }

  /** Adds the successors of the state in `#tuple`, computed by the model. */
  #copy(id: number): void {
    const { next } = this.#model;
    const { packing } = this.store;
    this.#model.expand(this.#tuple, () => {
      const at = this.#batch.open(id, this.#from, packing.words);
      for (let i = 0; i < this.#now.length; i++)
        packing.change(this.#batch.words, at, i, this.#now[i] as number, this.#componentOf(next, i));
      return false;
    });
  }

  #hasRoom(): boolean {
    for (let i = 0; i < this.#count; i++)
      if ((this.#configurations[i] as LocalConfigurations<V>).size - 1 > this.store.packing.room(i)) return false;
    return true;
  }

  #widen(): void {
    this.store.widen([...this.#configurations.map(({ size }) => size - 1), ...this.#model.mostBeyond]);
    this.#from = new Int32Array(this.store.packing.words);
  }
}

/**
 * Receives a successor of state `parent`: its words, which begin at `at`, and their hash. Return true to end the
 * search.
 */
export type Arrival = (parent: number, words: Int32Array, at: number, hash: number) => boolean;

class Batch {
  /** The number of successors that are waiting. */
  size = 0;
  words = new Int32Array(1 << 12);
  #parents = new Int32Array(1 << 9);
  #hashes = new Int32Array(1 << 9);

  /**
   * Adds a copy of state `parent`, which has the words `from`. The caller then turns the copy into a successor. Returns
   * its offset.
   */
  open(parent: number, from: Int32Array, words: number): number {
    const at = this.size * words;
    if (at + words > this.words.length) this.words = grown(this.words);
    if (this.size === this.#parents.length) {
      this.#parents = grown(this.#parents);
      this.#hashes = grown(this.#hashes);
    }
    this.#parents[this.size++] = parent;
    for (let i = 0; i < words; i++) this.words[at + i] = from[i] as number;
    return at;
  }

  /** Passes on all successors in order, until `arrive` returns true. */
  settle(store: StateStore, arrive: Arrival): boolean {
    const { size, words } = this;
    const hashes = this.#hashes;
    const width = store.packing.words;
    this.size = 0;
    // The table slots are read first, because the processor can wait for many independent reads at once.
    for (let i = 0; i < size; i++) {
      const hash = store.hash(words, i * width);
      hashes[i] = hash;
      store.touchSlot(hash);
    }
    for (let i = 0; i < size; i++) store.touchTuple(hashes[i] as number);
    for (let i = 0; i < size; i++)
      if (arrive(this.#parents[i] as number, words, i * width, hashes[i] as number)) return true;
    return false;
  }
}

function grown(numbers: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(2 * numbers.length);
  copy.set(numbers);
  return copy;
}

/**
 * The configurations of one node. A configuration is a local state combined with the messages in flight to the node.
 */
export class LocalConfigurations<V extends Vocabulary> {
  readonly #model: Model<V>;
  /** The number of configurations that have been found. */
  size = 0;
  /**
   * Four numbers per configuration, stored together because they are read together: its local state, its content, and
   * the offsets in `steps` of its cached steps without and with timeouts. Offset 0 means not cached.
   */
  readonly #configurations = new NumberList();
  /**
   * The numbers of configurations. (local state, content) maps to the configuration; (configuration, envelope) maps to
   * the configuration with the envelope added.
   */
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

  /** Whether nothing is in flight to the node. */
  isUndisturbed(configuration: number): boolean {
    return this.#undisturbed.values[configuration] === 1;
  }

  /** Returns the number of a configuration. −1 if it has not been found yet. */
  find(local: number, content: number): number {
    return this.#ids.get(local, content);
  }

  /** Returns the configuration after an envelope has been sent to its node. */
  plus(configuration: number, envelope: number): number {
    const known = this.#sums.get(configuration, envelope);
    if (known >= 0) return known;
    const local = this.localOf(configuration);
    const content = this.contentOf(configuration);
    const sum = this.idOf(local, this.#model.contentAfter(local, content, envelope));
    this.#sums.add(configuration, envelope, sum);
    return sum;
  }

  /** The storage for all cached steps. See `begin`. */
  get steps(): Int32Array {
    return this.#steps.values;
  }

  /**
   * Returns the offset in `steps` of a configuration's steps. The entry consists of the number of steps and, for each
   * step, the resulting configuration and the number of envelopes sent, followed by the receiver's index and the
   * envelope for each of these. 0 means not cached.
   */
  begin(configuration: number, withTimeouts: boolean): number {
    return this.#configurations.values[4 * configuration + (withTimeouts ? 3 : 2)] as number;
  }

  /** Caches a configuration's steps. @param steps in the same format as `steps` */
  remember(configuration: number, withTimeouts: boolean, steps: readonly number[]): void {
    this.#configurations.values[4 * configuration + (withTimeouts ? 3 : 2)] = this.#steps.size;
    for (const number of steps) this.#steps.push(number);
  }
}

/** A growing list of 32-bit numbers. */
class NumberList {
  size = 0;
  /** The allocated storage. Values at index `size` and above are meaningless. */
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
