/** The runs of one random search, shared out by number among threads, so that each is made once, by any of them. */

/** The number of the next run, and the lowest of a run that violates something. */
export type SharedRuns = Int32Array;

const NEXT = 0;
const LOWEST = 1;
const NONE = 2 ** 31 - 1;

export function sharedRuns(): SharedRuns {
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  shared[LOWEST] = NONE;
  return shared;
}

/** Those of one thread alone: a page that nobody isolates has no shared memory. */
export function ownRuns(): SharedRuns {
  const own = new Int32Array(2);
  own[LOWEST] = NONE;
  return own;
}

/**
 * The numbers that are left, as they are asked for. Who leaves off before the end leaves none to the others: all lower
 * ones have been taken, and their runs are made to the end, so what one thread would have found first is found.
 */
export function* sharedNumbers(shared: SharedRuns, runs: number): Iterable<number> {
  const take = (): number => Atomics.add(shared, NEXT, 1);
  try {
    for (let number = take(); number < runs; number = take()) yield number;
  } finally {
    Atomics.store(shared, NEXT, runs);
  }
}

export function noteViolated(shared: SharedRuns, run: number): void {
  let seen = Atomics.load(shared, LOWEST);
  while (run < seen) {
    const before = seen;
    seen = Atomics.compareExchange(shared, LOWEST, before, run);
    if (seen === before) return;
  }
}

/** Whether no violation in an earlier run is known. */
export const isLowest = (shared: SharedRuns, run: number): boolean => Atomics.load(shared, LOWEST) >= run;
