/** Seeds of random tests: a new one in every run, or the one in `SEED`. A failed test reports its seed. */
import { onTestFailed } from "vitest";
import { type Random, random } from "../../src/core/random.ts";

/** Call it within a test. */
export function seededRandom(): Random {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  onTestFailed(() => console.error(`failed with SEED=${seed}`));
  return random(seed);
}
