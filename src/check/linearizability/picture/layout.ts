/**
 * Where everything stands in a picture, in the units of the drawing (pixels, characters).
 *
 * Time runs to the right, but not to scale: every moment at which something is called or returns is a column, as wide as
 * what has to be read there. A point where an operation takes effect stands between its call and its return, and right of
 * the point before it.
 */
import type { Effect, Finding } from "../check.ts";
import type { Operation, Process, Remark } from "../history.ts";
import { show } from "../model.ts";
import { type Selection, select } from "./selection.ts";

export interface Metrics {
  /** The width of a text. */
  text(content: string): number;
  /** Between two columns at least; a point takes as much. */
  readonly gap: number;
  /** What a bar takes besides its label. */
  readonly padding: number;
}

export type Standing = "placed" | "unplaced" | "culprit";

export interface Bar {
  readonly operation: Operation;
  readonly label: string;
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly standing: Standing;
}

export interface Point {
  readonly x: number;
  readonly row: number;
  readonly number: number;
  /** The state from here on, where it is another. */
  readonly state: string | null;
}

export interface Layout {
  /** One or more rows per process: what a process left open does not cover what it did afterwards. */
  readonly rows: readonly { readonly process: Process }[];
  readonly bars: readonly Bar[];
  readonly points: readonly Point[];
  readonly remarks: readonly { readonly x: number; readonly text: string }[];
  readonly width: number;
  readonly left: Selection["left"];
}

const MAX_LABEL = 28;
const MAX_STATE = 20;

export function layOut(finding: Finding, remarks: readonly Remark[], maxOperations: number, metrics: Metrics): Layout {
  const selection = select(finding, maxOperations);
  const { operations } = selection;
  const times = moments(operations);
  const bases = pointBases(selection.effects, times);
  const xs = columns(selection, times, bases, metrics);
  const width = xs.at(-1) ?? 0;
  const rows: { process: Process; until: number }[] = [];
  const bars = operations.map((operation): Bar => {
    const [from, to] = [
      xs[times.call(operation)] ?? 0,
      operation.return === null ? width : (xs[times.end(operation)] ?? 0),
    ];
    return {
      operation,
      label: label(operation),
      row: rowFor(operation, rows),
      from,
      to,
      standing: standing(operation, selection),
    };
  });
  const order = rowOrder(rows);
  const placed = bars.map((bar) => ({ ...bar, row: order.indexOf(bar.row) }));
  return {
    rows: order.map((row) => ({ process: rows[row]?.process ?? 0 })),
    bars: placed,
    points: pointsOf(selection, placed, bases, xs),
    remarks: remarksWithin(remarks, operations, times, xs),
    width,
    left: selection.left,
  };
}

/** The columns: calls and returns by time, calls before returns where times are equal. */
function moments(operations: readonly Operation[]) {
  const all = new Map<string, { at: number; isReturn: number }>();
  const name = (at: number, isReturn: number): string => `${at} ${isReturn}`;
  for (const { call, return: end } of operations) {
    all.set(name(call, 0), { at: call, isReturn: 0 });
    if (end !== null) all.set(name(end, 1), { at: end, isReturn: 1 });
  }
  const sorted = [...all.values()].sort((a, b) => a.at - b.at || a.isReturn - b.isReturn);
  const columnOf = new Map(sorted.map(({ at, isReturn }, column) => [name(at, isReturn), column]));
  return {
    count: sorted.length,
    call: (operation: Operation): number => columnOf.get(name(operation.call, 0)) ?? 0,
    end: (operation: Operation): number => columnOf.get(name(operation.return ?? 0, 1)) ?? sorted.length,
    before: (at: number): number => sorted.filter((moment) => moment.at < at).length,
  };
}

type Moments = ReturnType<typeof moments>;

/** Each point stands behind the latest call so far, which is before the return of every operation still to be placed. */
function pointBases(effects: readonly Effect[], times: Moments): number[] {
  let base = 0;
  return effects.map(({ operation }) => {
    base = Math.max(base, times.call(operation));
    return base;
  });
}

/** The place of each column, and of the right edge. */
function columns(
  { operations, effects }: Selection,
  times: Moments,
  bases: readonly number[],
  metrics: Metrics,
): number[] {
  const stateWidth = (effect: Selection["effects"][number]): number =>
    effect.isChange ? metrics.text(shortened(effect.state, MAX_STATE)) + metrics.gap / 2 : 0;
  const widths = new Array<number>(times.count + 1).fill(metrics.gap);
  for (const [at, effect] of effects.entries())
    (widths[bases[at] ?? 0] as number) += Math.max(metrics.gap, stateWidth(effect));
  const ending = new Map<number, Operation[]>();
  for (const operation of operations) {
    const column = operation.return === null ? times.count : times.end(operation);
    ending.set(column, [...(ending.get(column) ?? []), operation]);
  }
  const xs: number[] = [0];
  for (let column = 1; column <= times.count; column++) {
    let x = (xs[column - 1] ?? 0) + (widths[column - 1] ?? 0);
    for (const operation of ending.get(column) ?? [])
      x = Math.max(x, (xs[times.call(operation)] ?? 0) + metrics.text(label(operation)) + metrics.padding);
    xs.push(x);
  }
  return xs;
}

/** The first row of this process that is free again, or a new one. */
function rowFor({ process, call, return: end }: Operation, rows: { process: Process; until: number }[]): number {
  const until = end ?? Number.POSITIVE_INFINITY;
  const free = rows.findIndex((row) => row.process === process && row.until < call);
  if (free === -1) return rows.push({ process, until }) - 1;
  (rows[free] as { until: number }).until = until;
  return free;
}

/** Processes by number, then by name. */
function rowOrder(rows: readonly { process: Process }[]): number[] {
  const weight = (process: Process): number => (typeof process === "number" ? process : Number.POSITIVE_INFINITY);
  const compare = (a: Process, b: Process): number =>
    weight(a) === weight(b) ? String(a).localeCompare(String(b), "en") : weight(a) - weight(b);
  return [...rows.keys()].sort((a, b) => compare(rows[a]?.process ?? 0, rows[b]?.process ?? 0) || a - b);
}

function standing(operation: Operation, { culprit, effects }: Selection): Standing {
  if (operation === culprit) return "culprit";
  return effects.some((effect) => effect.operation === operation) ? "placed" : "unplaced";
}

function pointsOf(
  { effects }: Selection,
  bars: readonly Bar[],
  bases: readonly number[],
  xs: readonly number[],
): Point[] {
  return effects.map(({ operation, number, state, isChange }, at) => {
    const base = bases[at] ?? 0;
    const [first, last] = [bases.indexOf(base), bases.lastIndexOf(base)];
    const [from, to] = [xs[base] ?? 0, xs[base + 1] ?? 0];
    const x = from + ((to - from) * (at - first + 1)) / (last - first + 2);
    const row = bars.find((bar) => bar.operation === operation)?.row ?? 0;
    return { x, row, number, state: isChange ? shortened(state, MAX_STATE) : null };
  });
}

function remarksWithin(
  remarks: readonly Remark[],
  operations: readonly Operation[],
  times: Moments,
  xs: readonly number[],
) {
  const from = operations[0]?.call ?? 0;
  const to = Math.max(from, ...operations.map((operation) => operation.return ?? operation.call));
  return remarks
    .filter(({ at }) => at >= from && at <= to)
    .map(({ at, text }) => {
      const column = times.before(at);
      return { text: shortened(text, MAX_LABEL), x: ((xs[column] ?? 0) + (xs[Math.max(0, column - 1)] ?? 0)) / 2 };
    });
}

const label = (operation: Operation): string => shortened(show(operation), MAX_LABEL);

export const shortened = (text: string, max: number): string =>
  text.length > max ? `${text.slice(0, max - 1)}…` : text;
