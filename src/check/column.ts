/** A number per state, in chunks that growing does not copy. */
const CHUNK = 1 << 16;

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
