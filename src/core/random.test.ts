import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { next, random, seeded } from "./random.ts";

/** xoroshiro128+ as its authors define it, on 64-bit words. */
function reference(state: [bigint, bigint]): bigint {
  const mask = (1n << 64n) - 1n;
  const rotl = (word: bigint, by: bigint): bigint => ((word << by) | (word >> (64n - by))) & mask;
  const [s0, s1] = state;
  const x = s0 ^ s1;
  state[0] = rotl(s0, 24n) ^ x ^ ((x << 16n) & mask);
  state[1] = rotl(x, 37n);
  return (s0 + s1) & mask;
}

const word = (hi: number, lo: number): bigint => (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);

describe("random", () => {
  it("follows the definition of xoroshiro128+ on 64-bit words", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const state = seeded(seed);
        const words: [bigint, bigint] = [word(state.hi0, state.lo0), word(state.hi1, state.lo1)];
        for (let i = 0; i < 50; i++) expect(BigInt(next(state))).toBe(reference(words) & 0xffffffffn);
      }),
    );
  });

  it("equal seeds give equal sequences, and neighboring seeds give different ones", () => {
    const draw = (seed: number) => Array.from({ length: 20 }, random(seed).bits);
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it("a stream depends only on the seed and its purpose", () => {
    const fresh = random(1);
    const used = random(1);
    for (let i = 0; i < 100; i++) used.bits();
    expect(used.stream("delays").bits()).toBe(fresh.stream("delays").bits());
    expect(fresh.stream("delays").bits()).not.toBe(fresh.stream("timers").bits());
  });

  it("draws evenly below a bound", () => {
    const source = random(3);
    const tally = Array.from({ length: 6 }, () => 0);
    for (let i = 0; i < 60_000; i++) tally[source.below(6)]! += 1;
    // Chi-squared with 5 degrees of freedom: one in a thousand seeds exceeds 20.5.
    const chi = tally.reduce((sum, seen) => sum + (seen - 10_000) ** 2 / 10_000, 0);
    expect(chi).toBeLessThan(20.5);
  });

  it("a choice with one option draws no randomness", () => {
    const a = random(5);
    const b = random(5);
    a.pick(["only"]);
    expect(a.bits()).toBe(b.bits());
  });
});
