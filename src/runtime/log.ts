/** Log lines of a member. What can repeat is said once, then counted: nobody outside can fill a disk with our words. */
import { UsageError, unexpected } from "../core/errors.ts";
import { callBack } from "./callers-fault.ts";

/** What takes a member's log: `console` does, and so do pino and winston. */
export interface Logger {
  info(text: string, fields?: LogFields): unknown;
  warn(text: string, fields?: LogFields): unknown;
  error(text: string, fields?: LogFields): unknown;
}

/** A line of the log for programs: which kind it is, and what it speaks of. */
export interface LogFields {
  /** Stable, such as `peer-refused`. */
  readonly event: string;
  readonly [field: string]: string | number | boolean | null;
}

export interface Log extends Logger {
  /**
   * Warns the first time; later times are counted and said again, with their number, at most once a minute. What
   * outsiders may have put into the text cannot begin a new line or steer a terminal.
   */
  once(key: string, text: string, fields?: LogFields): void;
}

export type LogLevel = "info" | "warn" | "error";

const REPEAT_AFTER_MS = 60_000;
/** More different keys than this share one. */
const MAX_KEYS = 1_000;

/**
 * @param write takes every line; `fields` says the same to programs, where there is something to say.
 * @param now milliseconds, by which it is known what has been said lately.
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
    const span = `${known.since} times more in the last ${Math.round((at - known.at) / 1000)} s`;
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

/** A log that a caller brings has the three levels: repetitions are counted here. The `once` that loggers of pino and winston inherit is `EventEmitter`'s. */
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
