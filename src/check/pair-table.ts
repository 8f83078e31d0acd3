/**
 * A map from two naturals to a natural, in a typed array: open addressing, linear probing, doubled at two thirds full.
 * Memoised steps are looked up here some ten million times a second, so what belongs together lies together.
 */
export class PairTable {
  #slots = 1 << 8;
  /** Per slot the two keys, the first −1 where it is free, and the value. */
  #entries = new Int32Array(3 * this.#slots).fill(-1);
  #size = 0;

  get bytes(): number {
    return 4 * this.#entries.length;
  }

  /** The value, or −1. */
  get(a: number, b: number): number {
    const entries = this.#entries;
    const mask = this.#slots - 1;
    for (let slot = mix(a, b) & mask; ; slot = (slot + 1) & mask) {
      const key = entries[3 * slot];
      if (key === a && entries[3 * slot + 1] === b) return entries[3 * slot + 2] as number;
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

/** Spreads two naturals over 32 bits (the finalizer of MurmurHash3). */
function mix(a: number, b: number): number {
  let mixed = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
