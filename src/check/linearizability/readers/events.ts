/** From the fields of a log to the events of a history: what both readers share. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import {
  type EventType,
  type History,
  type HistoryEvent,
  historyOf,
  type Process,
  type Remark,
  type Value,
} from "../history.ts";
import { isPair, showValue } from "../model.ts";

export interface ReadingOptions {
  /** Every value is `[key value]`, as Jepsen's `independent` writes it. Otherwise the field `key` names the object. */
  readonly keyed?: boolean;
  /** The operations that there are. Without it, whatever a line names is one. */
  readonly calls?: readonly string[];
  /**
   * What tells the order of events: their `time`, their `index` or their position in the log. Without this, the first of
   * these that all events have.
   */
  readonly order?: "time" | "index" | "position";
}

/** The fields of one line, and where they stand. */
export interface Fields {
  readonly values: { readonly [field: string]: Value };
  readonly line: number;
  /** `line 3, column 1` */
  readonly place: string;
}

const EVENT_TYPES: readonly string[] = ["invoke", "ok", "fail", "info"] satisfies EventType[];
/** Who acts on the system instead of using it. */
const NEMESIS = "nemesis";

export function historyFrom(log: readonly Fields[], options: ReadingOptions): History {
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
  // A value that was lost with the answer names no key: then the one of the call holds.
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
