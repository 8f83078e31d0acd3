/**
 * A member's log. Messages that can repeat are logged once and then counted, so that outsiders cannot fill up a disk
 * through the log.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { callBack } from "./callers-fault.ts";

/** Receives a member's log lines. `console` works, and so do pino and winston. */
export interface Logger {
  /** Logs a normal event. */
  info(text: string, fields?: LogFields): unknown;
  /** Logs a problem that the member handles itself. */
  warn(text: string, fields?: LogFields): unknown;
  /** Logs a problem that needs an operator. */
  error(text: string, fields?: LogFields): unknown;
}

/** Structured fields of a log line: the kind of event and its details. */
export interface LogFields {
  /** A stable name, such as `peer-refused`. */
  readonly event: string;
  readonly [field: string]: string | number | boolean | null;
}

/** A logger that also limits repeated messages. */
export interface Log extends Logger {
  /**
   * Logs a warning the first time it is called with a key. Repetitions are counted, and their count is logged at most
   * once a minute. Text from outside cannot start a new line or send control sequences to a terminal.
   */
  once(key: string, text: string, fields?: LogFields): void;
}

/** The severity of a log line. */
export type LogLevel = "info" | "warn" | "error";

const REPEAT_AFTER_MS = 60_000;
/** The maximum number of keys. Any further keys share one counter. */
const MAX_KEYS = 1_000;

/**
 * Creates a log.
 *
 * @param write receives every line. `fields` describes the same event for programs, if there is anything to describe.
 * @param now returns the current time in milliseconds, used to limit repetitions
 * @example
 * const log = createLog((level, text, fields) => logger[level](fields, text));
 * const member = await join({ id, members, dataDir, log });
 * @throws UsageError `bad-option` if `write` is not a function
 */
export function createLog(
  write: (level: LogLevel, text: string, fields?: LogFields) => unknown,
  now: () => number = Date.now,
): Log {
  if (typeof write !== "function")
    throw new UsageError("bad-option", unexpected("write of createLog()", "a function", write));
  const say = (...line: Parameters<typeof write>): void => callBack(write, ...line);
  const said = new Map<string, { at: number; since: number }>();
  const once = (given: string, raw: string, rawFields?: LogFields): void => {
    const text = harmless(raw);
    const fields = rawFields && harmlessFields(rawFields);
    const key = said.has(given) || said.size < MAX_KEYS ? given : "";
    const known = said.get(key);
    const at = now();
    if (known === undefined) {
      said.set(key, { at, since: 0 });
      return say("warn", text, fields);
    }
    known.since += 1;
    if (at - known.at < REPEAT_AFTER_MS) return;
    const span = `${known.since} more times in the last ${Math.round((at - known.at) / 1000)} s`;
    say("warn", `${text} (${span})`, fields && { ...fields, times: known.since });
    said.set(key, { at, since: 0 });
  };
  return {
    info: (text, fields) => say("info", text, fields),
    warn: (text, fields) => say("warn", text, fields),
    error: (text, fields) => say("error", text, fields),
    once,
  };
}

/**
 * Converts a caller's logger, which has three levels, to a log that counts repetitions. Loggers from pino and winston
 * inherit a `once` method from `EventEmitter`, which does not count.
 */
export function logThrough(given: Logger, now: () => number): Log {
  if (Object.hasOwn(given, "once")) return given as Log;
  const write = (level: LogLevel, text: string, fields?: LogFields): unknown =>
    fields === undefined ? given[level](text) : given[level](text, fields);
  return createLog(write, now);
}

const harmless = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{FFFD}");

const harmlessFields = (fields: LogFields): LogFields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? harmless(value) : value]),
  ) as LogFields & { event: string };
