/** Generates load with several clients, each with one request in flight. */
import { quantile } from "./results.ts";

/** The result of one round. `p50` and `p99` are in milliseconds. */
export interface Throughput {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
}

/**
 * @param request sends one of a client's requests; `turn` counts the client's requests. A rejection counts as an error.
 */
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

/**
 * @param took the duration of each request, in milliseconds
 * @param ms the duration of all requests together
 */
export const throughputOf = (took: readonly number[], ms: number, errors = 0): Throughput => ({
  perSecond: took.length / (ms / 1_000),
  p50: quantile(took, 0.5),
  p99: quantile(took, 0.99),
  errors,
});

/** The 64-byte value that is stored under the keys returned by `keyOf`. */
export const VALUE = "x".repeat(64);
const KEYS = 100;
export const keyOf = (client: number, turn: number): string => `key-${client}-${turn % KEYS}`;
