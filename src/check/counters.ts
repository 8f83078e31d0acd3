/** Numbers that are compared and counted up, found by the names of their fields wherever they stand in plain data. */

/** The lowest of them; infinity where there is none. */
export function lowestCount(data: unknown, names: readonly string[]): number {
  if (typeof data !== "object" || data === null) return Number.POSITIVE_INFINITY;
  let lowest = Number.POSITIVE_INFINITY;
  for (const [name, value] of Object.entries(data)) {
    const count = isCounter(name, value, names) ? value : lowestCount(value, names);
    lowest = Math.min(lowest, count);
  }
  return lowest;
}

/** A copy with all of them lowered by so much. */
export const lowered = <T>(data: T, names: readonly string[], by: number): T =>
  recounted(data, names, (count) => count - by);

const isCounter = (name: string, value: unknown, names: readonly string[]): value is number =>
  typeof value === "number" && names.includes(name);

/** All of them, in no order. */
export function countsIn(data: unknown, names: readonly string[]): number[] {
  if (typeof data !== "object" || data === null) return [];
  return Object.entries(data).flatMap(([name, value]) =>
    isCounter(name, value, names) ? [value] : countsIn(value, names),
  );
}

/** A copy in which each of them is replaced. */
export function recounted<T>(data: T, names: readonly string[], as: (count: number) => number): T {
  if (typeof data !== "object" || data === null) return data;
  if (Array.isArray(data)) return data.map((item) => recounted(item, names, as)) as T;
  const copy = Object.entries(data).map(([name, value]) => [
    name,
    isCounter(name, value, names) ? as(value) : recounted(value, names, as),
  ]);
  return Object.fromEntries(copy) as T;
}

/** What each of some numbers becomes if those that follow each other by more than three do so by two or three. */
export function closedUp(counts: Iterable<number>): Map<number, number> {
  const closed = new Map<number, number>();
  let [before, after] = [0, 0];
  for (const count of [...new Set(counts)].sort((a, b) => a - b)) {
    const gap = count - before;
    after += gap > 3 ? 2 + (gap % 2) : gap;
    before = count;
    closed.set(count, after);
  }
  return closed;
}
