/**
 * Seeded randomness: xoroshiro128+ (Blackman & Vigna 2018, constants 24, 16, 37), with each 64-bit word held as two
 * 32-bit halves. The state is plain data, so a checkpoint can contain it. `stream` derives an independent generator for
 * each purpose, so that adding a fault does not change any other random choice.
 */
export interface RandomState {
  /** The lower half of the first word. */
  lo0: number;
  /** The upper half of the first word. */
  hi0: number;
  /** The lower half of the second word. */
  lo1: number;
  /** The upper half of the second word. */
  hi1: number;
}

/** A source of random numbers. */
export interface Random {
  /** Returns the next 32 bits as an unsigned integer. */
  bits(): number;
  /** Returns a uniform integer in [0, bound), without bias. */
  below(bound: number): number;
  /** Returns a uniform number in [min, max). */
  between(min: number, max: number): number;
  /** Returns one of the options, chosen uniformly. */
  pick<T>(options: readonly T[]): T;
  /**
   * Returns an independent generator for this purpose. It depends only on the seed and the purpose, not on earlier
   * draws.
   */
  stream(purpose: string): Random;
}

/**
 * Creates a generator.
 *
 * @param seed equal seeds give equal sequences
 * @param bits a source of random bits to use instead of the seed
 */
export function random(seed: number, bits: Random["bits"] = bitsOf(seeded(seed))): Random {
  function below(bound: number): number {
    if (bound <= 1) return 0; // No bits are drawn for a single option.
    const limit = 2 ** 32 - (2 ** 32 % bound);
    for (;;) {
      const drawn = bits();
      if (drawn < limit) return drawn % bound; // Rejection sampling: fewer than two rounds on average.
    }
  }
  return {
    bits,
    below,
    between: (min, max) => min + (bits() / 2 ** 32) * (max - min),
    pick: (options) => options[below(options.length)] as (typeof options)[number],
    stream: (purpose) => random(mix(seed, purpose)),
  };
}

const bitsOf = (state: RandomState) => (): number => next(state);

/** Advances `state` and returns the lower 32 bits of the sum. */
export function next(state: RandomState): number {
  const { lo0, hi0 } = state;
  const sum = (lo0 + state.lo1) >>> 0;
  const lo = state.lo1 ^ lo0;
  const hi = state.hi1 ^ hi0;
  // s0 = rotl(s0, 24) ^ x ^ (x << 16), where x = s0 ^ s1.
  state.lo0 = ((lo0 << 24) | (hi0 >>> 8)) ^ lo ^ (lo << 16);
  state.hi0 = ((hi0 << 24) | (lo0 >>> 8)) ^ hi ^ ((hi << 16) | (lo >>> 16));
  // s1 = rotl(x, 37): swap the halves and rotate by 5 more bits.
  state.lo1 = (hi << 5) | (lo >>> 27);
  state.hi1 = (lo << 5) | (hi >>> 27);
  return sum;
}

/** Expands a seed into four words with splitmix32, so that neighboring seeds give unrelated sequences. */
export function seeded(seed: number): RandomState {
  let word = seed | 0;
  const draw = (): number => {
    word = (word + 0x9e3779b9) | 0;
    let mixed = Math.imul(word ^ (word >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) | 0;
  };
  return { lo0: draw(), hi0: draw(), lo1: draw(), hi1: draw() };
}

function mix(seed: number, purpose: string): number {
  let mixed = seed ^ 0x811c9dc5;
  for (let i = 0; i < purpose.length; i++) mixed = Math.imul(mixed ^ purpose.charCodeAt(i), 0x01000193);
  return mixed >>> 0;
}
