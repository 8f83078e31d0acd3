/**
 * Provides seeds for random runs that do not use fast-check. They are the same in every run of the tests unless
 * `FC_SEED` is set. `npm run test:random` sets it to a different value for each of its rounds.
 */
import { appendFileSync } from "node:fs";
import { expect } from "vitest";

const { FC_SEED, COTERIE_RANDOM_TESTS } = process.env;

/** Records that the calling test is random, for `test/random-soak`. */
export function noteRandomTest(): void {
  if (COTERIE_RANDOM_TESTS === undefined) return;
  const { currentTestName = "NAME" } = expect.getState();
  appendFileSync(COTERIE_RANDOM_TESTS, `${patternOf(currentTestName)}\n`);
}

/** Returns the pattern that makes `vitest -t` select the test of this name. */
export const patternOf = (name: string): string =>
  name.replaceAll(" > ", " ").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Returns the first seed of a test, which counts up from it. */
export function firstSeed(): number {
  noteRandomTest();
  return FC_SEED === undefined ? 1 : 1_000 + (((Number(FC_SEED) * 1_000) % 2 ** 31) >>> 0);
}
