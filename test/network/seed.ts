/** Provides seeds for random tests: a new one for every run, or the value of `SEED`. A failed test reports its seed. */
import { onTestFailed } from "vitest";
import { type Random, random } from "../../src/core/random.ts";

/** Call this within a test. */
export function seededRandom(): Random {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  onTestFailed(() => console.error(`failed with SEED=${seed}`));
  return random(seed);
}
