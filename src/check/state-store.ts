/**
 * The set of global states, each a tuple of naturals: exact (no hashing away), in typed arrays, in the order in which
 * they were found. Tuples live in chunks, so growing copies nothing; an open-addressing table finds them.
 */
const CHUNK_BITS = 16;
const CHUNK = 1 << CHUNK_BITS;

export class StateStore {
  size = 0;
  readonly #width: number;
  readonly #chunks: Int32Array[] = [];
  #mask = (1 << 12) - 1;
  /** Per slot 1 + the number of a state, or 0. */
  #table = new Int32Array(1 << 12);

  constructor(width: number) {
    this.#width = width;
  }

  /** The number of the state, or ~number if it was there already: a negative answer is an old state. */
  add(tuple: Int32Array): number {
    const hash = this.#hash(tuple);
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const found = this.#table[slot] as number;
      if (found === 0) return this.#insert(tuple, slot);
      if (this.#same(found - 1, tuple)) return ~(found - 1);
    }
  }

  /** Copies state `id` into `into`. */
  read(id: number, into: Int32Array): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] as Int32Array;
    const at = (id & (CHUNK - 1)) * this.#width;
    for (let i = 0; i < this.#width; i++) into[i] = chunk[at + i] as number;
  }

  #insert(tuple: Int32Array, slot: number): number {
    const id = this.size++;
    if ((id & (CHUNK - 1)) === 0) this.#chunks.push(new Int32Array(CHUNK * this.#width));
    const chunk = this.#chunks[id >>> CHUNK_BITS] as Int32Array;
    const at = (id & (CHUNK - 1)) * this.#width;
    for (let i = 0; i < this.#width; i++) chunk[at + i] = tuple[i] as number;
    this.#table[slot] = id + 1;
    if (4 * this.size > 3 * this.#table.length) this.#grow();
    return id;
  }

  #same(id: number, tuple: Int32Array): boolean {
    const chunk = this.#chunks[id >>> CHUNK_BITS] as Int32Array;
    const at = (id & (CHUNK - 1)) * this.#width;
    for (let i = 0; i < this.#width; i++) if (chunk[at + i] !== tuple[i]) return false;
    return true;
  }

  #hash(tuple: Int32Array): number {
    let hash = 0x2545f491;
    for (let i = 0; i < this.#width; i++) {
      hash = Math.imul(hash ^ (tuple[i] as number), 0x5bd1e995);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0x2c1b3c6d);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  #grow(): void {
    const table = new Int32Array(2 * this.#table.length);
    const mask = table.length - 1;
    const tuple = new Int32Array(this.#width);
    for (let id = 0; id < this.size; id++) {
      this.read(id, tuple);
      let slot = this.#hash(tuple) & mask;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = id + 1;
    }
    this.#table = table;
    this.#mask = mask;
  }
}
