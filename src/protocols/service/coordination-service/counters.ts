/** Named counters. Their values are safe integers, so sums are the same on every computer. */
import type { CounterOperation, Result } from "./operations.ts";
import { refuse } from "./operations.ts";
import { type Applying, nextRevision } from "./state.ts";
import { enter, lookUp } from "./table.ts";

export function applyToCounter({ data, limits }: Applying, operation: CounterOperation): Result {
  const before = lookUp(data.counters, operation.name);
  const given = operation.type === "add" ? operation.by : operation.to;
  if (!Number.isSafeInteger(given)) return refuse("bad-operation", `expected a whole number, got ${given}`);
  const value = operation.type === "add" ? (before ?? 0) + given : given;
  if (!Number.isSafeInteger(value))
    return refuse("overflow", `the sum of ${before} and ${given} exceeds the range of a counter`);
  if (before === null && data.counters.size >= limits.maxNames)
    return refuse("too-many", `there are already ${limits.maxNames} counters`);
  nextRevision(data);
  enter(data.counters, operation.name, value);
  return { type: "counted", value };
}
