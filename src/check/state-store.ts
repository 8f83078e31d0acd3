/**
 * The set of global states, each a tuple of naturals: exact (no hashing away), numbered in the order in which they were
 * found. Tuples are packed into words, in chunks that growing does not copy; an open-addressing table finds them. A slot
 * holds a state's number and, in the bits that are left, a part of its hash, so that few other states are looked at.
 */
import { Packing } from "./packing.ts";

const CHUNK_BITS = 16;
const CHUNK = 1 << CHUNK_BITS;
/** How many states move into a new table together. */
const GROUP = 1 << 8;
/** Smaller tables than this grow fourfold: moving states costs more than the memory. */
const LARGE_TABLE = 1 << 24;

export class StateStore {
  size = 0;
  /** How the tuples are packed at present. */
  packing: Packing;
  /** Means nothing, but keeps reads alive that only bring memory near. */
  touched = 0;
  #chunks: Int32Array[] = [];
  #mask = (1 << 12) - 1;
  /** Per slot 1 + the number of a state in the bits of the mask, above them those of its hash; 0 for none. */
  #table = new Int32Array(1 << 12);
  /** The tuple that is looked for. */
  #packed: Int32Array;
  /** The greatest value of each component so far. */
  readonly #most: Int32Array;

  constructor(width: number) {
    this.packing = new Packing(new Array<number>(width).fill(1));
    this.#packed = new Int32Array(this.packing.words);
    this.#most = new Int32Array(width);
  }

  /** What the states take, in bytes. */
  get bytes(): number {
    return 4 * (this.#table.length + this.#chunks.length * CHUNK * this.packing.words);
  }

  /** The number of the state, or ~number if it was there already: a negative answer is an old state. */
  add(tuple: Int32Array): number {
    const most = this.#most;
    for (let k = 0; k < tuple.length; k++) if ((tuple[k] as number) > (most[k] as number)) most[k] = tuple[k] as number;
    if (!this.packing.hasRoomFor(tuple)) this.widen(most);
    this.packing.pack(tuple, this.#packed, 0);
    return this.addPacked(this.#packed, 0, this.hash(this.#packed, 0));
  }

  /** The number of the state, or −1. */
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

  /** Reads where the state with that hash must be, so that the next look is quick. */
  touchSlot(hash: number): void {
    this.touched ^= this.#table[hash & this.#mask] as number;
  }

  /** Likewise reads the tuple that is probably the one with that hash. */
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

  /** Packs every state anew, with room for components up to `most`. */
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
      // First every slot is read, then written: the processor waits for many independent reads at once.
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
