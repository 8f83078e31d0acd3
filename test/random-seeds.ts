/**
 * Seeds of random runs that do not draw by fast-check. They are the same in every run of the tests, except under `FC_SEED`: then they
 * are others, and the same again for the same `FC_SEED`. `npm run test:random` sets one for each of its rounds.
 */
import { appendFileSync } from "node:fs";
import { expect } from "vitest";

const { FC_SEED, COTERIE_RANDOM_TESTS } = process.env;

/** Notes the test that calls it as a random one, for `test/random-soak`. */
export function noteRandomTest(): void {
  if (COTERIE_RANDOM_TESTS === undefined) return;
  const { currentTestName = "NAME" } = expect.getState();
  appendFileSync(COTERIE_RANDOM_TESTS, `${patternOf(currentTestName)}\n`);
}

/** What `vitest -t` takes for the test of this name. */
export const patternOf = (name: string): string =>
  name.replaceAll(" > ", " ").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The first of the seeds of a test; it counts on from there. */
export function firstSeed(): number {
  noteRandomTest();
  return FC_SEED === undefined ? 1 : 1_000 + (((Number(FC_SEED) * 1_000) % 2 ** 31) >>> 0);
}
