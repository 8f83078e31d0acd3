/** One time axis for several runs: events of the same time are placed below each other. */
import type { ShownRun } from "./engine/answers.ts";
import type { ShownAxis } from "./engine/drawing.ts";

type Timed = Pick<ShownRun, "steps" | "drawing">;

/** The width of a moment with one step per node, and of each further step. */
const [COLUMN_PX, FURTHER_PX] = [46, 26];

export interface Aligned {
  /** One axis per run, in order. */
  readonly axes: readonly ShownAxis[];
  /** The beginning of each moment. */
  readonly moments: readonly number[];
}

/** @param moments the times of all events in any of the runs, ascending */
export function aligned(runs: readonly Timed[], moments: readonly number[]): Aligned {
  const columnOf = new Map(moments.map((at, column) => [at, column]));
  const ranks = runs.map(({ steps }) => ranksOf(steps));
  /** The most steps of one node at each moment, in any of the runs. */
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

/** Each step's index among the steps of the same node at the same time. */
function ranksOf(steps: Timed["steps"]): number[] {
  const counts = new Map<string, number>();
  return steps.map(({ at, node }) => {
    const key = `${at} ${node}`;
    const rank = counts.get(key) ?? 0;
    counts.set(key, rank + 1);
    return rank;
  });
}

/** Between the same steps as on the other axis. */
function networksOn(places: readonly number[], { steps, networks }: ShownAxis): ShownAxis["networks"] {
  return networks.map(({ since, words }) => {
    const next = steps.findIndex((place) => place > since);
    const before = next === -1 ? steps.length - 1 : next - 1;
    const from = places[before] ?? 0;
    return { since: next === -1 ? from : (from + (places[next] ?? from)) / 2, words };
  });
}

/** Ascending and distinct, in milliseconds. */
export function momentsOf(runs: readonly Pick<ShownRun, "steps">[]): number[] {
  const times = new Set(runs.flatMap(({ steps }) => steps.map(({ at }) => at)));
  return [...times].toSorted((a, b) => a - b);
}

/** The last step up to a time; −1 before the first. */
export function stepAt({ steps }: Pick<ShownRun, "steps">, at: number): number {
  return steps.findLastIndex((step) => step.at <= at);
}
