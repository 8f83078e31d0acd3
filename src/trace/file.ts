/**
 * Traces as files: JSON lines, with the header first and then one entry per line, each with its vector clock as `clock:
 * { "0": 3, "2": 1 }`. See docs/verify/traces.md.
 */
import { reviveChunk } from "../core/chunk.ts";
import type { VectorClock } from "../core/clocks.ts";
import { UsageError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { MessageId, TraceEntry, TraceHeader } from "./entry.ts";
import { entryProblems, headerProblem } from "./file-fields.ts";
import { clockKeeper, vectorClocks } from "./steps.ts";

export interface Trace {
  readonly header: TraceHeader;
  /** The entries, ordered by time, except that each node's order is preserved and no receipt comes before its send. */
  readonly entries: readonly TraceEntry[];
  readonly clocks: readonly VectorClock[];
}

export interface ReadTrace extends Trace {
  /** Whether the last line was incomplete because the recorder was killed. That line is omitted. */
  readonly torn: boolean;
}

export interface ReadLimits {
  /** The maximum number of entries. Default: 1,000,000. */
  readonly maxEntries?: number;
  /** The maximum length of a line, in characters. Default: 1,000,000. */
  readonly maxLineLength?: number;
  /** Called regularly with the number of entries read so far. */
  readonly onEntries?: (entries: number) => void;
}

/** The number of entries between two calls of `onEntries`. */
const REPORTED_ENTRIES = 10_000;

/**
 * The lines of a trace file, each ending with a line feed. Call `entry` with the entries in the order defined by
 * `orderOf`.
 */
export interface TraceLines {
  readonly header: string;
  entry(entry: TraceEntry): string;
}

/** Creates lines for recorders, one at a time, and computes the clocks along the way. */
export function traceLines(header: TraceHeader): TraceLines {
  const clockOf = clockKeeper();
  return {
    header: `${JSON.stringify(header)}\n`,
    entry: (entry) => entryLine(entry, clockOf(entry)),
  };
}

/**
 * Returns the text of the whole file. Clocks are computed unless they are given. They must be given for an excerpt of a
 * longer trace.
 */
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
 * Reads a file. Entries are returned in the order defined by `orderOf`, regardless of the order of the lines. If every
 * line has a clock, the clocks are taken from the file; otherwise they are computed.
 * @throws UsageError if the file is invalid. The message gives the line and the field.
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
      throw refusal(number, `expected lists and objects nested at most ${MAX_DEPTH} deep, got deeper ones`);
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

/** Yields the lines. Blank lines are skipped but counted. */
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

/** The maximum nesting depth, which is much deeper than any message or state. Code that walks values is recursive. */
const MAX_DEPTH = 500;

/** Whether a value is nested too deeply. Each level of nesting takes at least two characters. */
const isDeeper = (value: unknown, line: string): boolean =>
  line.length > 2 * MAX_DEPTH && isDeeperThan(MAX_DEPTH, value);

function isDeeperThan(most: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return most === 0 || Object.values(value).some((inner) => isDeeperThan(most - 1, inner));
}

const refusal = (line: number, problem: string): UsageError => new UsageError("bad-trace", `line ${line}: ${problem}`);

/** Returns the indexes of the entries, in order. Entries that are already in order keep their positions. */
function orderOf(entries: readonly TraceEntry[]): number[] {
  return isInOrder(entries) ? entries.map((_, index) => index) : merged(entries);
}

function isInOrder(entries: readonly TraceEntry[]): boolean {
  const early = new Set<MessageId>();
  let latest = Number.NEGATIVE_INFINITY;
  return entries.every((entry) => {
    if (entry.kind === "receive") early.add(entry.id);
    const holds = entry.at >= latest && !(entry.kind === "send" && early.has(entry.id));
    latest = entry.at;
    return holds;
  });
}

interface Lane {
  readonly indices: number[];
  next: number;
}

/** Merges one lane per node. A lane whose next entry is a receipt waits for the lane that has the send. */
function merged(entries: readonly TraceEntry[]): number[] {
  const unsent = new Set(entries.flatMap((entry) => (entry.kind === "send" ? [entry.id] : [])));
  const ready: Lane[] = [];
  const waiting = new Map<MessageId, Lane[]>();
  const order: number[] = [];
  const headOf = ({ indices, next }: Lane): number => indices[next] as number;
  const isBefore = (a: number, b: number): boolean => {
    const [first, second] = [entries[a]?.at ?? 0, entries[b]?.at ?? 0];
    return first < second || (first === second && a < b);
  };

  function admit(lane: Lane): void {
    if (lane.next === lane.indices.length) return;
    const head = headOf(lane);
    const entry = entries[head];
    if (entry?.kind === "receive" && unsent.has(entry.id))
      return void waiting.set(entry.id, [...(waiting.get(entry.id) ?? []), lane]);
    const place = ready.findLastIndex((other) => isBefore(headOf(other), head));
    ready.splice(place + 1, 0, lane);
  }

  for (const lane of lanesOf(entries)) admit(lane);
  while (order.length < entries.length) {
    const lane = ready.shift();
    if (lane === undefined) {
      // Messages wait for each other in a cycle, which no run can produce, so any of them may come first.
      const [id] = waiting.keys().next().value === undefined ? [] : [waiting.keys().next().value as MessageId];
      if (id === undefined) break;
      release(id);
      continue;
    }
    const head = headOf(lane);
    order.push(head);
    lane.next += 1;
    const entry = entries[head];
    if (entry?.kind === "send") release(entry.id);
    admit(lane);
  }
  return order;

  function release(id: MessageId): void {
    unsent.delete(id);
    const lanes = waiting.get(id) ?? [];
    waiting.delete(id);
    for (const lane of lanes) admit(lane);
  }
}

function lanesOf(entries: readonly TraceEntry[]): Lane[] {
  const lanes = new Map<NodeId, Lane>();
  for (const [index, { node }] of entries.entries()) {
    const lane = lanes.get(node) ?? { indices: [], next: 0 };
    lanes.set(node, lane);
    lane.indices.splice(placeIn(lane.indices, index, entries), 0, index);
  }
  return [...lanes.values()];
}

/**
 * Returns the position at which to insert an entry among the node's earlier ones. A fault is inserted according to its
 * time, between steps.
 */
function placeIn(indices: readonly number[], index: number, entries: readonly TraceEntry[]): number {
  const { kind, at } = entries[index] as TraceEntry;
  if (kind !== "fault") return indices.length;
  let place = indices.length;
  const before = (): TraceEntry | undefined => entries[indices[place - 1] ?? -1];
  while ((before()?.at ?? at) > at) place--;
  while (WITHIN_STEPS.has(entries[indices[place] ?? -1]?.kind ?? "start")) place++;
  return place;
}

const WITHIN_STEPS: ReadonlySet<TraceEntry["kind"]> = new Set(["send", "lost", "event", "choice", "view"]);
