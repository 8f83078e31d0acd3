/**
 * A map from two naturals to a natural, in typed arrays: open addressing, linear probing, doubled at two thirds full.
 * Memoised steps and channel contents are looked up here some ten million times a second.
 */
export class PairTable {
  #slots = 1 << 10;
  #keys = new Int32Array(2 * this.#slots).fill(-1);
  #values = new Int32Array(this.#slots);
  #size = 0;

  /** The value, or −1. */
  get(a: number, b: number): number {
    const keys = this.#keys;
    const mask = this.#slots - 1;
    for (let slot = mix(a, b) & mask; ; slot = (slot + 1) & mask) {
      const key = keys[2 * slot];
      if (key === a && keys[2 * slot + 1] === b) return this.#values[slot] as number;
      if (key === -1) return -1;
    }
  }

  /** Adds an entry that is not there yet. */
  add(a: number, b: number, value: number): void {
    if (3 * ++this.#size > 2 * this.#slots) this.#grow();
    this.#place(a, b, value);
  }

  #place(a: number, b: number, value: number): void {
    const mask = this.#slots - 1;
    let slot = mix(a, b) & mask;
    while (this.#keys[2 * slot] !== -1) slot = (slot + 1) & mask;
    this.#keys[2 * slot] = a;
    this.#keys[2 * slot + 1] = b;
    this.#values[slot] = value;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#slots *= 2;
    this.#keys = new Int32Array(2 * this.#slots).fill(-1);
    this.#values = new Int32Array(this.#slots);
    for (let slot = 0; slot < values.length; slot++) {
      if (keys[2 * slot] !== -1)
        this.#place(keys[2 * slot] as number, keys[2 * slot + 1] as number, values[slot] as number);
    }
  }
}

/** Spreads two naturals over 32 bits (the finalizer of MurmurHash3). */
function mix(a: number, b: number): number {
  let mixed = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
