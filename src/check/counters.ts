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
export function lowered<T>(data: T, names: readonly string[], by: number): T {
  if (typeof data !== "object" || data === null) return data;
  if (Array.isArray(data)) return data.map((item) => lowered(item, names, by)) as T;
  const copy = Object.entries(data).map(([name, value]) => [
    name,
    isCounter(name, value, names) ? value - by : lowered(value, names, by),
  ]);
  return Object.fromEntries(copy) as T;
}

const isCounter = (name: string, value: unknown, names: readonly string[]): value is number =>
  typeof value === "number" && names.includes(name);
