/** Log lines of a member. What can repeat is said once, then counted: nobody outside can fill a disk with our words. */
export interface Log {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
  /**
   * Warns the first time; later times are counted and said again, with their number, at most once a minute. What
   * outsiders may have put into the text cannot begin a new line or steer a terminal.
   */
  once(key: string, text: string): void;
}

export type LogLevel = "info" | "warn" | "error";

const REPEAT_AFTER_MS = 60_000;
/** More different keys than this share one. */
const MAX_KEYS = 1_000;

export function createLog(write: (level: LogLevel, text: string) => void): Log {
  const said = new Map<string, { at: number; since: number }>();
  const once = (given: string, raw: string): void => {
    const text = raw.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{FFFD}");
    const key = said.has(given) || said.size < MAX_KEYS ? given : "";
    const known = said.get(key);
    const now = Date.now();
    if (known === undefined) {
      said.set(key, { at: now, since: 0 });
      return write("warn", text);
    }
    known.since += 1;
    if (now - known.at < REPEAT_AFTER_MS) return;
    write("warn", `${text} (${known.since} times more in the last ${Math.round((now - known.at) / 1000)} s)`);
    said.set(key, { at: now, since: 0 });
  };
  return {
    info: (text) => write("info", text),
    warn: (text) => write("warn", text),
    error: (text) => write("error", text),
    once,
  };
}
