/** Loads: several clients, each with one request in flight. */
import { quantile } from "./results.ts";

/** The result of one round: `p50` and `p99` in milliseconds. */
export interface Throughput {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
}

/** @param request sends one request of a client; `turn` counts its requests. A rejection counts as an error. */
export async function loadOf(
  inFlight: number,
  ms: number,
  request: (client: number, turn: number) => Promise<unknown>,
): Promise<Throughput> {
  const took: number[] = [];
  let errors = 0;
  const began = performance.now();
  const client = async (number: number): Promise<void> => {
    for (let turn = 0; performance.now() - began < ms; turn++) {
      const since = performance.now();
      try {
        await request(number, turn);
        took.push(performance.now() - since);
      } catch {
        errors += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, number) => client(number)));
  return throughputOf(took, performance.now() - began, errors);
}

/** @param took the duration of each request, in milliseconds. @param ms the duration of all requests */
export const throughputOf = (took: readonly number[], ms: number, errors = 0): Throughput => ({
  perSecond: took.length / (ms / 1_000),
  p50: quantile(took, 0.5),
  p99: quantile(took, 0.99),
  errors,
});

/** A value of 64 bytes, stored under the keys of `keyOf`. */
export const VALUE = "x".repeat(64);
const KEYS = 100;
export const keyOf = (client: number, turn: number): string => `key-${client}-${turn % KEYS}`;
