/** One time for several runs: the moments at which something happens in any of them, and where each stands then. */
import type { ShownRun } from "./engine/answers.ts";

type Timed = Pick<ShownRun, "steps">;

/** Ascending, each once, in milliseconds. */
export function momentsOf(runs: readonly Timed[]): number[] {
  const times = new Set(runs.flatMap(({ steps }) => steps.map(({ at }) => at)));
  return [...times].toSorted((a, b) => a - b);
}

/** The last step up to a time; −1 before the first. */
export function stepAt({ steps }: Timed, at: number): number {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((steps[middle]?.at ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
