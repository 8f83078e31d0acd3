/** Seeds of random tests: a new one in every run, or the one that `SEED` names; whoever fails says which it was. */
import { onTestFailed } from "vitest";
import { type Random, random } from "../../src/core/random.ts";

/** To be called within a test. */
export function seededRandom(): Random {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  onTestFailed(() => console.error(`failed with SEED=${seed}`));
  return random(seed);
}
