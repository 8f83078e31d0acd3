/** From a trace of Chromium: what its main thread worked for each frame of the page. */

/** The categories of a trace that hold what is needed here. */
export const TRACED = ["toplevel", "devtools.timeline", "__metadata"] as const;

/** As the trace has it; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** On the clock of the thread, which stands still while others have the processor. */
  readonly tdur?: number;
}

/** One task of the main thread. */
interface Task {
  readonly to: number;
  readonly workMs: number;
}

/** In milliseconds, of each frame: the task that calls its animation frames, with all tasks since the one before. */
export function frameWork({ traceEvents }: { readonly traceEvents: readonly TraceEvent[] }): number[] {
  const thread = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const frames = traceEvents.filter(({ name }) => name === "FireAnimationFrame");
  const drawing = busiest(frames.map(thread));
  const begins = frames.filter((event) => thread(event) === drawing).map(({ ts }) => ts);
  const tasks = tasksOf(traceEvents.filter((event) => thread(event) === drawing));
  const work: number[] = [];
  let next = 0;
  let since = 0;
  for (const { to, workMs } of tasks) {
    const before = next;
    while ((begins[next] ?? Number.POSITIVE_INFINITY) < to) next += 1;
    since += workMs;
    if (next === before) continue;
    work.push(since);
    since = 0;
  }
  return work;
}

/** Without those within others, in order of time. */
function tasksOf(events: readonly TraceEvent[]): Task[] {
  const tasks: Task[] = [];
  const runs = events.filter(({ name, ph }) => ph === "X" && name.endsWith("RunTask")).sort((a, b) => a.ts - b.ts);
  for (const { ts, dur = 0, tdur = 0 } of runs)
    if (ts >= (tasks.at(-1)?.to ?? 0)) tasks.push({ to: ts + dur, workMs: tdur / 1_000 });
  return tasks;
}

/** The name that occurs most often. */
function busiest(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
