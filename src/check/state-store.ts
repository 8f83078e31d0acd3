/**
 * A store for the set of global states. A state is a tuple of natural numbers. It is exact (states are never dropped
 * because of equal hashes), and it numbers states in the order of discovery. Tuples are packed into words, in chunks
 * that are not copied when the store grows, and are looked up in an open-addressing table. Each slot of the table holds
 * a state's number and, in the remaining bits, part of its hash, so that few other states have to be compared.
 */
import { canonical } from "../core/plain.ts";

const CHUNK_BITS = 16;
const CHUNK = 1 << CHUNK_BITS;
/** The number of states that are moved into a new table together. */
const GROUP = 1 << 8;
/** The size below which tables grow by a factor of four, because moving states costs more than the extra memory. */
const LARGE_TABLE = 1 << 24;

/** An exact set of tuples, numbered from 0 in the order of insertion. */
export class StateStore {
  size = 0;
  /** The current packing of the tuples. */
  packing: Packing;
  /** A meaningless value. It prevents the prefetching reads from being optimized away. */
  touched = 0;
  #chunks: Int32Array[] = [];
  #mask = (1 << 12) - 1;
  /**
   * Each slot holds the number of a state plus 1 in the bits of the mask, and bits of its hash above them. 0 means
   * free.
   */
  #table = new Int32Array(1 << 12);
  /** The tuple being looked up. */
  #packed: Int32Array;
  /** The greatest value so far of each component. */
  readonly #most: Int32Array;

  constructor(width: number) {
    this.packing = new Packing(new Array<number>(width).fill(1));
    this.#packed = new Int32Array(this.packing.words);
    this.#most = new Int32Array(width);
  }

  /** The memory used by the states, in bytes. */
  get bytes(): number {
    return 4 * (this.#table.length + this.#chunks.length * CHUNK * this.packing.words);
  }

  /**
   * Adds a state. Returns its number, or ~number if the state was already known. A negative result therefore means a
   * known state.
   */
  add(tuple: Int32Array): number {
    const most = this.#most;
    for (let k = 0; k < tuple.length; k++) if ((tuple[k] as number) > (most[k] as number)) most[k] = tuple[k] as number;
    if (!this.packing.hasRoomFor(tuple)) this.widen(most);
    this.packing.pack(tuple, this.#packed, 0);
    return this.addPacked(this.#packed, 0, this.hash(this.#packed, 0));
  }

  /** Returns the number of the state, or −1 if the state is unknown. */
  find(tuple: Int32Array): number {
    if (!this.packing.hasRoomFor(tuple)) return -1;
    this.packing.pack(tuple, this.#packed, 0);
    return this.findPacked(this.#packed, 0, this.hash(this.#packed, 0));
  }

  /** Copies state `id` into `into`. */
  read(id: number, into: Int32Array): void {
    this.packing.unpack(this.#chunkOf(id), this.#placeOf(id), into);
  }

  /** Copies the words of state `id` into `into`. */
  readPacked(id: number, into: Int32Array): void {
    const chunk = this.#chunkOf(id);
    const at = this.#placeOf(id);
    for (let i = 0; i < this.packing.words; i++) into[i] = chunk[at + i] as number;
  }

  addPacked(words: Int32Array, at: number, hash: number): number {
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#table[slot] as number;
      if (entry === 0) return this.#insert(words, at, hash, slot);
      if (((entry ^ hash) & ~mask) === 0 && this.#same((entry & mask) - 1, words, at)) return ~((entry & mask) - 1);
    }
  }

  findPacked(words: Int32Array, at: number, hash: number): number {
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#table[slot] as number;
      if (entry === 0) return -1;
      if (((entry ^ hash) & ~mask) === 0 && this.#same((entry & mask) - 1, words, at)) return (entry & mask) - 1;
    }
  }

  /** Prefetches the table slot for a hash. */
  touchSlot(hash: number): void {
    this.touched ^= this.#table[hash & this.#mask] as number;
  }

  /** Prefetches the tuple that probably has this hash. */
  touchTuple(hash: number): void {
    const entry = this.#table[hash & this.#mask] as number;
    if (entry === 0 || ((entry ^ hash) & ~this.#mask) !== 0) return;
    const id = (entry & this.#mask) - 1;
    this.touched ^= this.#chunkOf(id)[this.#placeOf(id)] as number;
  }

  hash(words: Int32Array, at: number): number {
    let hash = 0x2545f491;
    for (let i = 0; i < this.packing.words; i++) {
      hash = Math.imul(hash ^ (words[at + i] as number), 0x5bd1e995);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0x2c1b3c6d);
    return hash ^ (hash >>> 13);
  }

  /** Repacks every state to make room for components up to `most`. */
  widen(most: ArrayLike<number>): void {
    const before = this.packing;
    this.packing = new Packing(Array.from(most));
    const { words } = this.packing;
    this.#packed = new Int32Array(words);
    const tuple = new Int32Array(before.width);
    for (const [c, old] of this.#chunks.entries()) {
      const chunk = new Int32Array(CHUNK * words);
      const count = Math.min(CHUNK, this.size - c * CHUNK);
      for (let i = 0; i < count; i++) {
        before.unpack(old, i * before.words, tuple);
        this.packing.pack(tuple, chunk, i * words);
      }
      this.#chunks[c] = chunk;
    }
    this.#rebuild(this.#table.length);
  }

  #insert(words: Int32Array, at: number, hash: number, slot: number): number {
    const id = this.size++;
    if ((id & (CHUNK - 1)) === 0) this.#chunks.push(new Int32Array(CHUNK * this.packing.words));
    const chunk = this.#chunkOf(id);
    const place = this.#placeOf(id);
    for (let i = 0; i < this.packing.words; i++) chunk[place + i] = words[at + i] as number;
    this.#table[slot] = (hash & ~this.#mask) | (id + 1);
    if (4 * this.size > 3 * this.#table.length) this.#grow();
    return id;
  }

  #grow(): void {
    const slots = this.#table.length;
    this.#rebuild(slots < LARGE_TABLE ? 4 * slots : 2 * slots);
  }

  #same(id: number, words: Int32Array, at: number): boolean {
    const chunk = this.#chunkOf(id);
    const place = this.#placeOf(id);
    for (let i = 0; i < this.packing.words; i++) if (chunk[place + i] !== words[at + i]) return false;
    return true;
  }

  #chunkOf(id: number): Int32Array {
    return this.#chunks[id >>> CHUNK_BITS] as Int32Array;
  }

  #placeOf(id: number): number {
    return (id & (CHUNK - 1)) * this.packing.words;
  }

  #rebuild(slots: number): void {
    const table = new Int32Array(slots);
    const mask = slots - 1;
    const hashes = new Int32Array(GROUP);
    for (let first = 0; first < this.size; first += GROUP) {
      const count = Math.min(GROUP, this.size - first);
      // Read every slot first, then write, because the processor can wait for many independent reads at once.
      for (let i = 0; i < count; i++) {
        const hash = this.hash(this.#chunkOf(first + i), this.#placeOf(first + i));
        hashes[i] = hash;
        this.touched ^= table[hash & mask] as number;
      }
      for (let i = 0; i < count; i++) {
        const hash = hashes[i] as number;
        let slot = hash & mask;
        while (table[slot] !== 0) slot = (slot + 1) & mask;
        table[slot] = (hash & ~mask) | (first + i + 1);
      }
    }
    this.#table = table;
    this.#mask = mask;
  }
}

/**
 * Packs tuples of natural numbers into as few 32-bit words as the components' widths allow. A component may span two
 * words.
 */
export class Packing {
  readonly words: number;
  /** For each component: its width, its first word, and its lowest bit in that word. */
  readonly #bits: Int32Array;
  readonly #word: Int32Array;
  readonly #shift: Int32Array;
  /** The greatest value that each component can hold. */
  readonly #room: Int32Array;

  /**
   * @param most the greatest value that each component must be able to hold. Spare bits go to the tightest components.
   */
  constructor(most: readonly number[]) {
    this.#bits = Int32Array.from(most, (value) => Math.max(1, 32 - Math.clz32(value)));
    const sum = this.#bits.reduce((a, b) => a + b, 0);
    this.words = Math.ceil(sum / 32);
    for (let spare = 32 * this.words - sum; spare > 0; spare--) {
      const filled = most.map((value, k) => (value + 1) / 2 ** (this.#bits[k] as number));
      const fullest = filled.indexOf(Math.max(...filled));
      this.#bits[fullest] = Math.min(31, (this.#bits[fullest] as number) + 1);
    }
    this.#room = this.#bits.map((bits) => 2 ** bits - 1);
    const begins: number[] = [0];
    for (const bits of this.#bits) begins.push((begins.at(-1) as number) + bits);
    this.#word = Int32Array.from(most, (_, k) => (begins[k] as number) >>> 5);
    this.#shift = Int32Array.from(most, (_, k) => (begins[k] as number) & 31);
  }

  /** The number of components in a tuple. */
  get width(): number {
    return this.#bits.length;
  }

  /** Returns the greatest value that component `k` can hold. */
  room(k: number): number {
    return this.#room[k] as number;
  }

  /** Returns component `k` of the tuple that begins at `at`. */
  get(words: Int32Array, at: number, k: number): number {
    const bits = this.#bits[k] as number;
    const shift = this.#shift[k] as number;
    const word = at + (this.#word[k] as number);
    let value = (words[word] as number) >>> shift;
    if (shift + bits > 32) value |= (words[word + 1] as number) << (32 - shift);
    return value & (this.#room[k] as number);
  }

  /** Changes component `k` from `before` to `after`. */
  change(words: Int32Array, at: number, k: number, before: number, after: number): void {
    const shift = this.#shift[k] as number;
    const word = at + (this.#word[k] as number);
    const difference = before ^ after;
    words[word] = (words[word] as number) ^ (difference << shift);
    if (shift + (this.#bits[k] as number) > 32)
      words[word + 1] = (words[word + 1] as number) ^ (difference >>> (32 - shift));
  }

  /** Packs a tuple. All of its components must fit. */
  pack(tuple: Int32Array, words: Int32Array, at: number): void {
    words.fill(0, at, at + this.words);
    for (let k = 0; k < this.#bits.length; k++) this.change(words, at, k, 0, tuple[k] as number);
  }

  unpack(words: Int32Array, at: number, tuple: Int32Array): void {
    for (let k = 0; k < this.#bits.length; k++) tuple[k] = this.get(words, at, k);
  }

  hasRoomFor(tuple: Int32Array): boolean {
    for (let k = 0; k < this.#bits.length; k++) if ((tuple[k] as number) > (this.#room[k] as number)) return false;
    return true;
  }
}

/**
 * A map from two natural numbers to a natural number, stored in a typed array: open addressing with linear probing,
 * doubled when two thirds full. Cached steps are looked up here about ten million times a second, so related data is
 * stored together.
 */
export class PairTable {
  #slots = 1 << 8;
  /** Each slot holds the two keys and the value. The first key is −1 if the slot is free. */
  #entries = new Int32Array(3 * this.#slots).fill(-1);
  #size = 0;

  get bytes(): number {
    return 4 * this.#entries.length;
  }

  /** Returns the value, or −1 if the entry does not exist. */
  get(a: number, b: number): number {
    const entries = this.#entries;
    const mask = this.#slots - 1;
    for (let slot = mix(a, b) & mask; ; slot = (slot + 1) & mask) {
      const key = entries[3 * slot];
      if (key === a && entries[3 * slot + 1] === b) return entries[3 * slot + 2] as number;
      if (key === -1) return -1;
    }
  }

  /** Adds an entry that does not exist yet. */
  add(a: number, b: number, value: number): void {
    if (3 * ++this.#size > 2 * this.#slots) this.#grow();
    this.#place(a, b, value);
  }

  #place(a: number, b: number, value: number): void {
    const mask = this.#slots - 1;
    let slot = mix(a, b) & mask;
    while (this.#entries[3 * slot] !== -1) slot = (slot + 1) & mask;
    this.#entries[3 * slot] = a;
    this.#entries[3 * slot + 1] = b;
    this.#entries[3 * slot + 2] = value;
  }

  #grow(): void {
    const old = this.#entries;
    this.#slots *= 2;
    this.#entries = new Int32Array(3 * this.#slots).fill(-1);
    for (let at = 0; at < old.length; at += 3)
      if (old[at] !== -1) this.#place(old[at] as number, old[at + 1] as number, old[at + 2] as number);
  }
}

/** Hashes two natural numbers to 32 bits (the MurmurHash3 finalizer). */
function mix(a: number, b: number): number {
  let mixed = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

/** A column with one number per state, stored in chunks that are not copied when the column grows. */

export class Column {
  readonly #chunks: Int32Array[] = [];
  #size = 0;

  get bytes(): number {
    return 4 * CHUNK * this.#chunks.length;
  }

  push(value: number): void {
    const at = this.#size++ % CHUNK;
    if (at === 0) this.#chunks.push(new Int32Array(CHUNK));
    (this.#chunks.at(-1) as Int32Array)[at] = value;
  }

  at(index: number): number {
    return (this.#chunks[Math.floor(index / CHUNK)] as Int32Array)[index % CHUNK] as number;
  }
}

/** Assigns numbers to distinct values, starting from 0. */
export interface Interner<T> {
  readonly size: number;
  idOf(value: T): number;
  valueOf(id: number): T;
  /** Whether a value is unchanged since it was assigned its number. */
  isIntact(id: number): boolean;
}

/** Creates an interner. `keyOf` must distinguish all values that `canonical`, its default, distinguishes. */
export function interner<T>(keyOf: (value: T) => string = canonical): Interner<T> {
  const ids = new Map<string, number>();
  const values: T[] = [];
  return {
    get size() {
      return values.length;
    },
    idOf(value) {
      const key = keyOf(value);
      const known = ids.get(key);
      if (known !== undefined) return known;
      ids.set(key, values.length);
      values.push(value);
      return values.length - 1;
    },
    valueOf: (id) => values[id] as T,
    isIntact: (id) => ids.get(keyOf(values[id] as T)) === id,
  };
}
