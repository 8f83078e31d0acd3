/** A run that nothing else ends has to come to rest. */
import { UsageError } from "../core/errors.ts";

/** What has more happenings has periodic timers, and never comes to rest. */
const MAX_HAPPENINGS = 10_000_000;
const MAX_HAPPENINGS_PER_NODE = 1_000;

/** To be called at each happening of a run to `untilMs`. It throws a UsageError at the first too many of a run without end. */
export function patience(
  nodes: number,
  untilMs: number,
  most = Math.max(MAX_HAPPENINGS, MAX_HAPPENINGS_PER_NODE * nodes),
): () => void {
  let left = untilMs === Number.POSITIVE_INFINITY ? most : Number.POSITIVE_INFINITY;
  return () => {
    if (left-- > 0) return;
    const remedy = "say when it ends, with until in a scenario, --until on the command line or run(untilMs) in code";
    throw new UsageError(
      "no-rest",
      `expected the run to come to rest within ${most} happenings, but it goes on: ${remedy}`,
    );
  };
}
