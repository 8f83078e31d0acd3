/**
 * A trace as a file: JSON lines, first the header, then one entry per line, each with its vector clock as
 * `clock: { "0": 3, "2": 1 }`. See docs/traces.md.
 */
import { reviveChunk } from "../core/chunk.ts";
import type { VectorClock } from "../core/clocks.ts";
import { UsageError } from "../core/errors.ts";
import { clockKeeper, vectorClocks } from "./causality.ts";
import type { TraceEntry } from "./entry.ts";
import { entryProblems, headerProblem } from "./file-fields.ts";
import type { TraceHeader } from "./header.ts";
import { orderOf } from "./order.ts";

export interface Trace {
  readonly header: TraceHeader;
  /** Each node's own order is kept, no receipt comes before its sending, and within these bounds time decides. */
  readonly entries: readonly TraceEntry[];
  /** Of each entry. */
  readonly clocks: readonly VectorClock[];
}

export interface ReadTrace extends Trace {
  /** Whether the last line was cut short, as its recorder was killed. It is left out. */
  readonly torn: boolean;
}

export interface ReadLimits {
  /** 1,000,000 unless told. */
  readonly maxEntries?: number;
  /** In characters. 1,000,000 unless told. */
  readonly maxLineLength?: number;
  /** Is called now and then with the number of entries read so far. */
  readonly onEntries?: (entries: number) => void;
}

/** Entries between two calls of `onEntries`. */
const REPORTED_ENTRIES = 10_000;

/** Lines of a trace file, each with its line feed. `entry` takes the entries in order, as `orderOf` has it. */
export interface TraceLines {
  readonly header: string;
  entry(entry: TraceEntry): string;
}

/** For recorders: writes line by line, and computes the clocks as it goes. */
export function traceLines(header: TraceHeader): TraceLines {
  const clockOf = clockKeeper();
  return {
    header: `${JSON.stringify(header)}\n`,
    entry: (entry) => entryLine(entry, clockOf(entry)),
  };
}

/** The whole file. Clocks are computed unless they are given, as for a part of a longer trace. */
export function writeTrace(
  header: TraceHeader,
  entries: readonly TraceEntry[],
  clocks: readonly VectorClock[] = vectorClocks(entries),
): string {
  const lines = entries.map((entry, index) => entryLine(entry, clocks[index] ?? {}));
  return `${JSON.stringify(header)}\n${lines.join("")}`;
}

const entryLine = (entry: TraceEntry, clock: VectorClock): string => `${JSON.stringify({ ...entry, clock })}\n`;

type Written = TraceEntry & { readonly clock?: VectorClock };

/**
 * Reads a file. Entries come in the order of `orderOf`, whatever the order of the lines; clocks are those of the file if
 * every line has one, and are computed otherwise.
 * @throws UsageError naming line and field
 */
export function readTrace(
  text: string,
  { maxEntries = 1_000_000, maxLineLength = 1_000_000, onEntries }: ReadLimits = {},
): ReadTrace {
  let header: TraceHeader | undefined;
  let problemOf: (value: unknown) => string | null = headerProblem;
  let torn = false;
  const written: Written[] = [];
  for (const { line, number, isUnfinished } of linesOf(text)) {
    if (line.length > maxLineLength)
      throw refusal(number, `expected at most ${maxLineLength} characters, got ${line.length}`);
    const value = parsed(line);
    if (value === undefined && isUnfinished && header !== undefined) {
      torn = true;
      break;
    }
    if (isDeeper(value, line))
      throw refusal(number, `expected at most ${MAX_DEPTH} lists and objects within each other, got more`);
    const problem = problemOf(value ?? line);
    if (problem !== null) throw refusal(number, problem);
    if (header === undefined) {
      header = value as TraceHeader;
      problemOf = entryProblems(header.nodes);
    } else if (written.length < maxEntries) {
      written.push(value as Written);
      if (written.length % REPORTED_ENTRIES === 0) onEntries?.(written.length);
    } else throw refusal(number, `expected at most ${maxEntries} entries, got more`);
  }
  if (header === undefined) throw refusal(1, "expected the header of a trace, got an empty file");
  return { header, torn, ...settled(written) };
}

function settled(written: readonly Written[]): Pick<Trace, "entries" | "clocks"> {
  const inOrder = orderOf(written).map((index) => written[index] as Written);
  const entries = inOrder.map(({ clock: _clock, ...entry }) => entry as TraceEntry);
  const known = inOrder.flatMap(({ clock }) => (clock === undefined ? [] : [clock]));
  return { entries, clocks: known.length === entries.length ? known : vectorClocks(entries) };
}

/** Blank lines are passed over, and counted. */
function* linesOf(text: string): Generator<{ line: string; number: number; isUnfinished: boolean }> {
  for (let start = 0, number = 1; start < text.length; number++) {
    const found = text.indexOf("\n", start);
    const end = found === -1 ? text.length : found;
    const line = text.slice(start, end).trimEnd();
    if (line !== "") yield { line, number, isUnfinished: found === -1 };
    start = end + 1;
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line, line.includes('"$chunk"') ? reviveChunk : undefined);
  } catch {
    return undefined;
  }
}

/** Far more than any message or state has; who goes through them goes in by calls within calls. */
const MAX_DEPTH = 500;

/** Each that is within another takes two characters of the line at least. */
const isDeeper = (value: unknown, line: string): boolean =>
  line.length > 2 * MAX_DEPTH && isDeeperThan(MAX_DEPTH, value);

function isDeeperThan(most: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return most === 0 || Object.values(value).some((inner) => isDeeperThan(most - 1, inner));
}

const refusal = (line: number, problem: string): UsageError => new UsageError("bad-trace", `line ${line}: ${problem}`);
