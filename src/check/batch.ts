/** Successors that wait to go into the store. */
import type { StateStore } from "./state-store.ts";

/** Takes a successor of state `parent`, whose words begin at `at`, and their hash. True ends the search. */
export type Arrival = (parent: number, words: Int32Array, at: number, hash: number) => boolean;

export class Batch {
  /** How many are waiting. */
  size = 0;
  words = new Int32Array(1 << 12);
  #parents = new Int32Array(1 << 9);
  #hashes = new Int32Array(1 << 9);

  /** Adds a copy of the state `parent`, whose words are `from`, to be changed into a successor. Where it begins. */
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

  /** Hands all over, in their order, until the answer is true. */
  settle(store: StateStore, arrive: Arrival): boolean {
    const { size, words } = this;
    const hashes = this.#hashes;
    const width = store.packing.words;
    this.size = 0;
    // Where each will be looked up is read beforehand: the processor waits for many independent reads at once.
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
