/**
 * Draws the history of one object as plain text:
 *
 *     process 0  ├ write 1 ──┤
 *                      1
 *     process 1                 ╞═ read → nil ✗╡
 *
 * `├ … ┤` is placed, `┆ … ┆` is not, `╞ … ╡` has no valid place, and an operation ending in `~` never returned. The
 * number under an operation marks where it takes effect.
 */
import type { Effect, Finding, Unknown } from "./check.ts";
import type { Operation, Process, Remark } from "./history.ts";
import { show, showValue } from "./model.ts";

/** Options of `drawText`. */
export interface PictureOptions {
  /** The name of the model, for use in the title. */
  readonly model: string;
  /** Events to mark at the times when they happened. Default: none. */
  readonly remarks?: readonly Remark[];
  /** The maximum number of operations to draw. If there are more, only the important part is drawn. Default: 20. */
  readonly maxOperations?: number;
}

/** The minimum distance between two columns. A point takes up the same amount of space. */
const GAP = 4;
/** The width of a bar, not including its label. */
const PADDING = 5;
const widthOf = (content: string): number => [...content].length;

const STROKES: Readonly<Record<Standing, { left: string; line: string; right: string }>> = {
  placed: { left: "├", line: "─", right: "┤" },
  unplaced: { left: "┆", line: "╌", right: "┆" },
  culprit: { left: "╞", line: "═", right: "╡" },
};

/** Draws a history as text. The text is as wide as the operations require and does not contain colors. */
export function drawText(finding: Finding, options: PictureOptions): string {
  const { title, sentences } = captionOf(finding, options.model);
  const layout = layOut(finding, options.remarks ?? [], options.maxOperations ?? 20);
  const { left, points } = layout;
  const lines = [
    title,
    ...sentences,
    ...omissions(left),
    "",
    ...rowsOf(layout),
    ...(points.length > 0 ? [stateLine(layout)] : []),
  ];
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

const margin = (words: string): string => words.padEnd(12);

function rowsOf({ rows, bars, points, width, remarks }: Layout): string[] {
  const notes = remarks.map(({ x, text }) => ({ at: Math.round(x), text: `▾ ${text}` }));
  const lines = notes.length > 0 ? [margin("") + written(notes, width)] : [];
  for (const [row, { process }] of rows.entries()) {
    const name = rows[row - 1]?.process === process ? "" : `process ${process} `;
    const own = bars.filter((bar) => bar.row === row).map((bar) => ({ at: Math.round(bar.from), text: barText(bar) }));
    const numbers = points.filter((point) => point.row === row);
    lines.push(margin(name) + written(own, width));
    lines.push(
      margin("") +
        written(
          numbers.map(({ x, number }) => ({ at: Math.round(x), text: String(number) })),
          width,
        ),
    );
  }
  return lines;
}

function barText({ from, to, label, standing, operation }: Bar): string {
  const { left, line, right } = STROKES[standing];
  const end = operation.return === null ? "~" : right;
  const mark = standing === "culprit" ? ` ${label} ✗` : ` ${label} `;
  return left + mark.padEnd(Math.round(to) - Math.round(from) - 1, line) + end;
}

function stateLine({ points, width }: Layout): string {
  const changes = points.filter(({ state }) => state !== null);
  return (
    margin("state") +
    written(
      changes.map(({ x, state }) => ({ at: Math.round(x), text: `|${state}` })),
      width,
    )
  );
}

/** Joins pieces on one line. A piece that would cover the previous one is moved to the right. */
function written(pieces: readonly { readonly at: number; readonly text: string }[], width: number): string {
  let line = "";
  for (const { at, text } of [...pieces].sort((a, b) => a.at - b.at)) {
    const gap = line === "" || line.length < at ? "" : " ";
    line = line.padEnd(at) + (line.length > at ? gap : "") + text;
  }
  return line.padEnd(Math.min(width, 1));
}

interface Caption {
  readonly title: string;
  readonly sentences: readonly string[];
}

const MAX_WORDS = 60;

const REASONS: Readonly<Record<Unknown["why"], string>> = {
  steps: "the maximum number of steps was reached",
  memory: "the maximum number of configurations was reached",
  stopped: "the search was stopped",
  settled: "another object already violates its model",
};

function captionOf(finding: Finding, model: string): Caption {
  const object = finding.key === undefined ? model : `${model} ${showValue(finding.key)}`;
  switch (finding.verdict) {
    case "holds": {
      const unseen = finding.operations.length - finding.linearization.length;
      const noted = unseen === 0 ? "" : ` ${unseen} that never returned may not have happened.`;
      return {
        title: `${object}: linearizable`,
        sentences: [`${finding.linearization.length} operations, each taking effect at its point.${noted}`],
      };
    }
    case "unknown":
      return {
        title: `${object}: unknown`,
        sentences: [
          `${finding.placed} of ${finding.returned} operations have been placed so far; ${REASONS[finding.why]}.`,
          "This is not a pass: the search has not placed the rest.",
        ],
      };
    case "violated": {
      const ends = finding.longest.map((effects) => effects.at(-1)?.state);
      const states = ends.filter((state) => state !== undefined).map((state) => shortened(state, MAX_WORDS));
      return {
        title: `${object}: not linearizable`,
        sentences: [
          `${named(finding.culprit)} cannot be placed in any order.`,
          states.length === 0
            ? "No operation that was called before it returned can be ordered first."
            : `The others can be ordered as numbered, but then the state is ${states.join(", or in other orders ")}.`,
        ],
      };
    }
  }
}

/** Names an operation, such as `read → 1 (process 2, line 7)`. */
const named = (operation: Operation): string =>
  `${show(operation)} (process ${operation.process}${operation.line === null ? "" : `, line ${operation.line}`})`;

/** Describes the operations that the picture leaves out. */
function omissions({ before, after }: Selection["left"]): string[] {
  const counted = (count: number, when: string): string[] =>
    count === 0 ? [] : [`(${count} ${when} operation${count === 1 ? "" : "s"} left out)`];
  return [...counted(before, "earlier"), ...counted(after, "later")];
}

type Standing = "placed" | "unplaced" | "culprit";

interface Bar {
  readonly operation: Operation;
  readonly label: string;
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly standing: Standing;
}

interface Point {
  readonly x: number;
  readonly row: number;
  readonly number: number;
  /** The new state if it changes here. Otherwise null. */
  readonly state: string | null;
}

interface Layout {
  /** One or more rows per process, so that a pending operation does not cover later operations of the same process. */
  readonly rows: readonly { readonly process: Process }[];
  readonly bars: readonly Bar[];
  readonly points: readonly Point[];
  readonly remarks: readonly { readonly x: number; readonly text: string }[];
  readonly width: number;
  readonly left: Selection["left"];
}

const MAX_LABEL = 28;
const MAX_STATE = 20;

function layOut(finding: Finding, remarks: readonly Remark[], maxOperations: number): Layout {
  const selection = select(finding, maxOperations);
  const { operations } = selection;
  const times = moments(operations);
  const bases = pointBases(selection.effects, times);
  const xs = columns(selection, times, bases);
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

/** Orders the columns: calls and returns by time, with calls before returns at equal times. */
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

/**
 * Returns the column of each point. It comes after the latest call so far, and therefore before the return of every
 * operation still to be placed.
 */
function pointBases(effects: readonly Effect[], times: Moments): number[] {
  let base = 0;
  return effects.map(({ operation }) => {
    base = Math.max(base, times.call(operation));
    return base;
  });
}

/** Returns the position of each column, and the position of the right edge. */
function columns({ operations, effects }: Selection, times: Moments, bases: readonly number[]): number[] {
  const stateWidth = (effect: Selection["effects"][number]): number =>
    effect.isChange ? widthOf(shortened(effect.state, MAX_STATE)) + GAP / 2 : 0;
  const widths = new Array<number>(times.count + 1).fill(GAP);
  for (const [at, effect] of effects.entries()) (widths[bases[at] ?? 0] as number) += Math.max(GAP, stateWidth(effect));
  const ending = new Map<number, Operation[]>();
  for (const operation of operations) {
    const column = operation.return === null ? times.count : times.end(operation);
    ending.set(column, [...(ending.get(column) ?? []), operation]);
  }
  const xs: number[] = [0];
  for (let column = 1; column <= times.count; column++) {
    let x = (xs[column - 1] ?? 0) + (widths[column - 1] ?? 0);
    for (const operation of ending.get(column) ?? [])
      x = Math.max(x, (xs[times.call(operation)] ?? 0) + widthOf(label(operation)) + PADDING);
    xs.push(x);
  }
  return xs;
}

/** Returns this process's first free row, or a new one. */
function rowFor({ process, call, return: end }: Operation, rows: { process: Process; until: number }[]): number {
  const until = end ?? Number.POSITIVE_INFINITY;
  const free = rows.findIndex((row) => row.process === process && row.until < call);
  if (free === -1) return rows.push({ process, until }) - 1;
  (rows[free] as { until: number }).until = until;
  return free;
}

/** Orders processes by number, then by name. */
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

const shortened = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max - 1)}…` : text);

interface Selection {
  /** The operations, in the order of their calls. */
  readonly operations: readonly Operation[];
  /**
   * The effects of the drawn operations in the longest linearization. Each has its number in the whole linearization.
   */
  readonly effects: readonly (Effect & { readonly number: number; readonly isChange: boolean })[];
  readonly culprit: Operation | null;
  /** The number of operations left out before and after the part that is drawn. */
  readonly left: { readonly before: number; readonly after: number };
}

function select(finding: Finding, maxOperations: number): Selection {
  const effects = (finding.verdict === "holds" ? finding.linearization : finding.longest[0]) ?? [];
  const culprit = finding.verdict === "violated" ? finding.culprit : null;
  const { first, end } = stretch(finding, effects, maxOperations);
  const near = finding.operations.slice(first, end);
  // The culprit may have been called long before the others.
  const operations = culprit === null || near.includes(culprit) ? near : [culprit, ...near.slice(1)];
  const drawn = new Set(operations);
  return {
    operations,
    effects: effects
      .map((effect, at) => ({ ...effect, number: at + 1 }))
      .filter(({ operation }) => drawn.has(operation))
      .map((effect, at, all) => ({ ...effect, isChange: all[at - 1]?.state !== effect.state })),
    culprit,
    left: { before: first, after: finding.operations.length - end },
  };
}

/** Selects the part to draw. For a violation or an unfinished search, it is the end; for a proof, the beginning. */
function stretch(finding: Finding, effects: readonly Effect[], max: number): { first: number; end: number } {
  const { operations, verdict } = finding;
  const atMost = Math.min(max, operations.length);
  if (verdict === "holds") return { first: 0, end: atMost };
  const to = verdict === "violated" ? finding.window.to : (effects.at(-1)?.operation.call ?? 0);
  const end = verdict === "violated" ? calledUntil(operations, to) : Math.max(calledUntil(operations, to), atMost);
  return { first: Math.max(0, end - max), end };
}

const calledUntil = (operations: readonly Operation[], to: number): number =>
  operations.filter(({ call }) => call <= to).length;
