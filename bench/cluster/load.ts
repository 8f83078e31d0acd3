/** Loads in JavaScript: so many clients, each with one request under way, for so long. */
import { quantile } from "../services/figures.ts";
import type { Throughput } from "./subject.ts";

/** @param deed one request of a client; `turn` counts its requests. One that throws counts as an error. */
export async function loadOf(
  inFlight: number,
  ms: number,
  deed: (client: number, turn: number) => Promise<unknown>,
): Promise<Throughput> {
  const took: number[] = [];
  let errors = 0;
  const began = performance.now();
  const client = async (number: number): Promise<void> => {
    for (let turn = 0; performance.now() - began < ms; turn++) {
      const since = performance.now();
      try {
        await deed(number, turn);
        took.push(performance.now() - since);
      } catch {
        errors += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, number) => client(number)));
  return throughputOf(took, performance.now() - began, errors);
}

/** @param took how long each took, in milliseconds. @param ms how long all of them took */
export const throughputOf = (took: readonly number[], ms: number, errors: number): Throughput => ({
  perSecond: took.length / (ms / 1_000),
  p50: quantile(took, 0.5),
  p99: quantile(took, 0.99),
  errors,
});
