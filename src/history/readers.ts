/** Readers for histories in two text formats. */
import { UsageError, unexpected } from "../core/errors.ts";
import { readEdn } from "./edn.ts";
import {
  type EventType,
  type History,
  type HistoryEvent,
  historyOf,
  type Process,
  type Remark,
  type Value,
} from "./history.ts";
import { isPair, showValue } from "./model.ts";

/**
 * Reads a history in either format.
 * @throws UsageError if the text is not a history or does not contain any operation that may have happened
 */
export function readHistory(content: string, format: "edn" | "json" | "auto", options: ReadingOptions): History {
  const read = isEdn(content, format) ? readJepsenHistory : readJsonLinesHistory;
  const history = read(content, options);
  if (history.operations.length > 0) return history;
  throw new UsageError("bad-history", "expected at least one operation that did not fail, got none");
}

/**
 * Whether the text is EDN. JSON lines begin with a quoted field; EDN begins with a keyword, a comment or a vector of
 * maps.
 */
function isEdn(content: string, format: "edn" | "json" | "auto"): boolean {
  return format === "auto" ? !/^\s*(?:\{\s*"|\{\s*\}|$)/.test(content) : format === "edn";
}

/**
 * Reads a Jepsen history in EDN.
 *
 * @throws UsageError if the text is invalid. The message gives the line, the column, and the expected and actual
 * values.
 */
export function readJepsenHistory(text: string, options: ReadingOptions = {}): History {
  const log: Fields[] = [];
  for (const { value, line, column } of readEdn(text)) {
    const place = `line ${line}, column ${column}`;
    if (value === null || typeof value !== "object" || Array.isArray(value))
      throw new UsageError("bad-history", `${place}: ${unexpected("the form", "a map of an event", value)}`);
    log.push({ values: value as { readonly [field: string]: Value }, line, place });
  }
  return historyFrom(log, options);
}

const MAX_DEPTH = 64;
const MAX_LINE_CHARACTERS = 2 ** 20;

/**
 * Reads a history in JSON lines.
 *
 * @throws UsageError if the text is invalid. The message gives the line, the field, and the expected and actual values.
 */
export function readJsonLinesHistory(text: string, options: ReadingOptions = {}): History {
  const log = text
    .split("\n")
    .flatMap((content, index) => (content.trim() === "" ? [] : [fieldsOf(content, index + 1)]));
  return historyFrom(log, options);
}

function fieldsOf(content: string, line: number): Fields {
  const place = `line ${line}`;
  const refuse = (problem: string): UsageError => new UsageError("bad-history", `${place}: ${problem}`);
  if (content.length > MAX_LINE_CHARACTERS)
    throw refuse(`expected at most ${MAX_LINE_CHARACTERS} characters, got ${content.length}`);
  let values: unknown;
  try {
    values = JSON.parse(content);
  } catch (error) {
    throw refuse(`expected a JSON object, got invalid JSON (${(error as Error).message})`);
  }
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw refuse(unexpected("the line", "a JSON object", values));
  if (isDeeperThan(MAX_DEPTH, values))
    throw refuse(`expected values nested at most ${MAX_DEPTH} deep, got deeper ones`);
  return { values: values as { readonly [field: string]: Value }, line, place };
}

const isDeeperThan = (depth: number, value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((inner) => isDeeperThan(depth - 1, inner)));

/** Options for reading a history. */
export interface ReadingOptions {
  /**
   * Whether every value has the form `[key value]`, as written by Jepsen's `independent`. If not, the field `key` names
   * the object.
   */
  readonly keyed?: boolean;
  /** The operations that are allowed. Default: all operations. */
  readonly calls?: readonly string[];
  /**
   * How events are ordered: by their `time`, by their `index`, or by their position in the log. Default: the first of
   * these that all events have.
   */
  readonly order?: "time" | "index" | "position";
}

/** The fields of one line, with the line's position. */
export interface Fields {
  readonly values: { readonly [field: string]: Value };
  readonly line: number;
  /** The position of the line, such as `line 3, column 1`. */
  readonly place: string;
}

const EVENT_TYPES: readonly string[] = ["invoke", "ok", "fail", "info"] satisfies EventType[];
/** The process that injects faults instead of using the system. */
const NEMESIS = "nemesis";

function historyFrom(log: readonly Fields[], options: ReadingOptions): History {
  const at = clockOf(log, options.order);
  const events: HistoryEvent[] = [];
  const remarks: Remark[] = [];
  for (const [position, fields] of log.entries()) {
    if (fields.values.process === NEMESIS) remarks.push({ at: at(fields, position), text: remark(fields) });
    else events.push(eventFrom(fields, at(fields, position), options));
  }
  return historyOf(events, remarks);
}

function clockOf(
  log: readonly Fields[],
  wanted: ReadingOptions["order"],
): (fields: Fields, position: number) => number {
  const everywhere = (field: string): boolean =>
    log.every(({ values }) => values[field] !== undefined && values[field] !== null);
  const order = wanted ?? (everywhere("time") ? "time" : everywhere("index") ? "index" : "position");
  if (order === "position") return (_fields, position) => position;
  return (fields) => {
    const at = fields.values[order];
    if (typeof at !== "number" || !Number.isFinite(at)) throw wrong(fields, order, "a finite number", at);
    return at;
  };
}

function eventFrom(fields: Fields, at: number, { keyed, calls }: ReadingOptions): HistoryEvent {
  const { process, type, f, value = null, key } = fields.values;
  if (typeof process !== "string" && !Number.isSafeInteger(process))
    throw wrong(fields, "process", "a whole number or a string", process);
  if (typeof type !== "string" || !EVENT_TYPES.includes(type))
    throw wrong(fields, "type", EVENT_TYPES.join(", "), type);
  if (typeof f !== "string" || f === "") throw wrong(fields, "f", "the name of an operation", f);
  if (calls?.includes(f) === false) throw wrong(fields, "f", `one of ${calls.join(", ")}`, f);
  const event = { process: process as Process, type: type as EventType, f, at, line: fields.line };
  if (keyed !== true) return { ...event, key, value };
  // If the value was lost together with the reply, the key of the call applies.
  if (!isPair(value) && type === "invoke") throw wrong(fields, "value", "a tuple [key value]", value);
  return isPair(value) ? { ...event, key: value[0], value: value[1] } : { ...event, key: undefined, value };
}

function remark({ values: { f, value } }: Fields): string {
  return [f ?? NEMESIS, value ?? ""]
    .map((part) => (part === "" ? "" : showValue(part)))
    .join(" ")
    .trim();
}

function wrong({ place }: Fields, field: string, expected: string, got: unknown): UsageError {
  const problem =
    got === undefined ? `expected ${field} to be ${expected}, got none` : unexpected(field, expected, got);
  return new UsageError("bad-history", `${place}: ${problem}`);
}
