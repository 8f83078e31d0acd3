/**
 * A set of the configurations that have been tried. A configuration consists of the next return to reach, the state,
 * and the words that encode the operations placed so far (see entries.ts). Configurations are compared exactly; a hash
 * only selects a slot. Each configuration stores its predecessor, so evidence costs nothing until it is needed.
 */
export interface Origin {
  /** The previous configuration, or −1 if there is none. */
  readonly from: number;
  /** The operation that led from the previous configuration to this one, or −1 if there is none. */
  readonly op: number;
  /** The number of returned operations that have been placed. */
  readonly length: number;
}

/** A set of configurations with their predecessors. */
export interface Configurations {
  readonly size: number;
  /** Adds a configuration. Returns its number, or −1 if it already existed. */
  add(barrier: number, state: number, words: Int32Array, origin: Origin): number;
  /**
   * Returns configurations with this barrier: the longest one for each state, and no more than `max` in total, longest
   * first.
   */
  longest(barrier: number, max: number): number[];
  /** Returns the operations chosen on the way to a configuration. */
  route(configuration: number): number[];
}

/** Creates an empty set. @param words the number of words that encode the placed operations */
export function configurations(words: number): Configurations {
  const stride = 2 + words;
  let rows = new Int32Array(32 * stride);
  /** Three numbers per row: the previous row, the operation, and the length. */
  let origins = new Int32Array(32 * 3);
  let size = 0;
  /**
   * The hash table, which uses open addressing. A slot holds the number of a row, counting from 1, or 0 if it is free.
   */
  let slots = new Int32Array(64);

  function isSame(row: number, barrier: number, state: number, placed: Int32Array): boolean {
    let at = row * stride;
    if (rows[at++] !== barrier || rows[at++] !== state) return false;
    for (let word = 0; word < words; word++) if (rows[at++] !== placed[word]) return false;
    return true;
  }

  function hashRow(row: number): number {
    let hash = 0;
    for (let at = row * stride; at < (row + 1) * stride; at++) hash = mix(hash, rows[at] as number);
    return finish(hash);
  }

  function grow(): void {
    slots = new Int32Array(slots.length * 2);
    rows = widened(rows, (slots.length >>> 1) * stride);
    origins = widened(origins, (slots.length >>> 1) * 3);
    for (let row = 0; row < size; row++) {
      let slot = hashRow(row) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = row + 1;
    }
  }

  return {
    get size() {
      return size;
    },
    add(barrier, state, placed, { from, op, length }) {
      let hash = mix(mix(0, barrier), state);
      for (let word = 0; word < words; word++) hash = mix(hash, placed[word] as number);
      let slot = finish(hash) & (slots.length - 1);
      for (let held = slots[slot] as number; held !== 0; held = slots[slot] as number) {
        if (isSame(held - 1, barrier, state, placed)) return -1;
        slot = (slot + 1) & (slots.length - 1);
      }
      slots[slot] = size + 1;
      let at = size * stride;
      rows[at++] = barrier;
      rows[at++] = state;
      for (let word = 0; word < words; word++) rows[at++] = placed[word] as number;
      origins[3 * size] = from;
      origins[3 * size + 1] = op;
      origins[3 * size + 2] = length;
      size += 1;
      if (size * 2 >= slots.length) grow();
      return size - 1;
    },
    longest(barrier, max) {
      const lengthOf = (row: number): number => origins[3 * row + 2] as number;
      const best = new Map<number, number>();
      for (let row = 0; row < size; row++) {
        if (rows[row * stride] !== barrier) continue;
        const state = rows[row * stride + 1] as number;
        const rival = best.get(state);
        if (rival === undefined || lengthOf(row) > lengthOf(rival)) best.set(state, row);
      }
      return [...best.values()].sort((a, b) => lengthOf(b) - lengthOf(a) || a - b).slice(0, max);
    },
    route(configuration) {
      const operations: number[] = [];
      for (let row = configuration; origins[3 * row] !== -1; row = origins[3 * row] as number)
        operations.push(origins[3 * row + 1] as number);
      return operations.reverse();
    },
  };
}

function widened(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const wider = new Int32Array(length);
  wider.set(array);
  return wider;
}

function mix(hash: number, word: number): number {
  const mixed = Math.imul(hash ^ word, 0x9e3779b1);
  return (mixed << 13) | (mixed >>> 19);
}

function finish(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
