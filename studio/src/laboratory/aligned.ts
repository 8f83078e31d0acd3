/** Aligns several runs on one time axis, so that simultaneous events are below each other. */
import type { ShownRun } from "./engine/answers.ts";
import type { ShownAxis } from "./engine/drawing.ts";

type Timed = Pick<ShownRun, "steps" | "drawing">;

/** The width of a moment at which each node takes one step, and the extra width for each additional step. */
const [COLUMN_PX, FURTHER_PX] = [46, 26];

export interface Aligned {
  /** One axis per run, in order. */
  readonly axes: readonly ShownAxis[];
  /** The position of each moment. */
  readonly moments: readonly number[];
}

/** Returns the aligned axes. @param moments the times of all events in any of the runs, in ascending order */
export function aligned(runs: readonly Timed[], moments: readonly number[]): Aligned {
  const columnOf = new Map(moments.map((at, column) => [at, column]));
  const ranks = runs.map(({ steps }) => ranksOf(steps));
  /**
   * For each moment, the highest index that a step has among the steps of the same node at the same time, in any of the
   * runs.
   */
  const most = moments.map(() => 0);
  for (const [index, { steps }] of runs.entries())
    for (const [place, { at }] of steps.entries()) {
      const column = columnOf.get(at) ?? 0;
      most[column] = Math.max(most[column] ?? 0, ranks[index]?.[place] ?? 0);
    }
  const starts: number[] = [];
  let end = 0;
  for (const further of most) {
    starts.push(end);
    end += COLUMN_PX + further * FURTHER_PX;
  }
  const ticks = moments.map((at, column) => ({
    at: starts[column] ?? 0,
    text: `${Number(at.toFixed(at < 100 ? 1 : 0))} ms`,
  }));
  const told = ticks.filter(({ text }, column) => text !== ticks[column - 1]?.text);
  const axes = runs.map(({ steps, drawing }, index): ShownAxis => {
    const own = steps.map(
      ({ at }, place) => (starts[columnOf.get(at) ?? 0] ?? 0) + (ranks[index]?.[place] ?? 0) * FURTHER_PX,
    );
    return { steps: own, ticks: told, breaks: [], networks: networksOn(own, drawing.axes.time), end };
  });
  return { axes, moments: starts };
}

/** Returns each step's index among the steps of the same node at the same time. */
function ranksOf(steps: Timed["steps"]): number[] {
  const counts = new Map<string, number>();
  return steps.map(({ at, node }) => {
    const key = `${at} ${node}`;
    const rank = counts.get(key) ?? 0;
    counts.set(key, rank + 1);
    return rank;
  });
}

/** Places network changes between the same steps as on the original axis. */
function networksOn(places: readonly number[], { steps, networks }: ShownAxis): ShownAxis["networks"] {
  return networks.map(({ since, words }) => {
    const next = steps.findIndex((place) => place > since);
    const before = next === -1 ? steps.length - 1 : next - 1;
    const from = places[before] ?? 0;
    return { since: next === -1 ? from : (from + (places[next] ?? from)) / 2, words };
  });
}

/** Returns the distinct times of all steps in milliseconds, in ascending order. */
export function momentsOf(runs: readonly Pick<ShownRun, "steps">[]): number[] {
  const times = new Set(runs.flatMap(({ steps }) => steps.map(({ at }) => at)));
  return [...times].toSorted((a, b) => a - b);
}

/** Returns the last step up to the given time, or −1 if there is none. */
export function stepAt({ steps }: Pick<ShownRun, "steps">, at: number): number {
  return steps.findLastIndex((step) => step.at <= at);
}
