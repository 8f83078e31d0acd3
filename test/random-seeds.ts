/**
 * Seeds of random runs that do not use fast-check. They are the same in every run of the tests, except under `FC_SEED`, which
 * determines others. `npm run test:random` sets one for each of its rounds.
 */
import { appendFileSync } from "node:fs";
import { expect } from "vitest";

const { FC_SEED, COTERIE_RANDOM_TESTS } = process.env;

/** Records the calling test as a random one, for `test/random-soak`. */
export function noteRandomTest(): void {
  if (COTERIE_RANDOM_TESTS === undefined) return;
  const { currentTestName = "NAME" } = expect.getState();
  appendFileSync(COTERIE_RANDOM_TESTS, `${patternOf(currentTestName)}\n`);
}

/** The pattern that makes `vitest -t` select the test of this name. */
export const patternOf = (name: string): string =>
  name.replaceAll(" > ", " ").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The first seed of a test, which counts up from there. */
export function firstSeed(): number {
  noteRandomTest();
  return FC_SEED === undefined ? 1 : 1_000 + (((Number(FC_SEED) * 1_000) % 2 ** 31) >>> 0);
}
