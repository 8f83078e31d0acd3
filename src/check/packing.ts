/** Tuples of naturals in as few 32-bit words as their widths allow: a component may begin in one word and end in the next. */
export class Packing {
  /** How many words a tuple takes. */
  readonly words: number;
  /** Per component its width, the word in which it begins, and its lowest bit there. */
  readonly #bits: Int32Array;
  readonly #word: Int32Array;
  readonly #shift: Int32Array;
  /** The greatest value that it has room for. */
  readonly #room: Int32Array;

  /** @param most the greatest value that each component must have room for; spare bits go where room is scarcest. */
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

  /** How many components a tuple has. */
  get width(): number {
    return this.#bits.length;
  }

  /** The greatest value that component `k` has room for. */
  room(k: number): number {
    return this.#room[k] as number;
  }

  /** Component `k` of the tuple that begins at `at`. */
  get(words: Int32Array, at: number, k: number): number {
    const bits = this.#bits[k] as number;
    const shift = this.#shift[k] as number;
    const word = at + (this.#word[k] as number);
    let value = (words[word] as number) >>> shift;
    if (shift + bits > 32) value |= (words[word + 1] as number) << (32 - shift);
    return value & (this.#room[k] as number);
  }

  /** Turns component `k` from `before` into `after`. */
  change(words: Int32Array, at: number, k: number, before: number, after: number): void {
    const shift = this.#shift[k] as number;
    const word = at + (this.#word[k] as number);
    const difference = before ^ after;
    words[word] = (words[word] as number) ^ (difference << shift);
    if (shift + (this.#bits[k] as number) > 32)
      words[word + 1] = (words[word + 1] as number) ^ (difference >>> (32 - shift));
  }

  /** Writes a tuple whose components have room. */
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
