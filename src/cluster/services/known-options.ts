/** Options that callers give. */
import { UsageError, unexpected } from "../../core/errors.ts";

/**
 * A misspelt option would be passed over in silence: `acquire({ timeout: 5 })` would wait for ever.
 * @throws UsageError that names the first that is not known.
 */
export function requireKnown(whose: string, options: unknown, known: readonly string[]): void {
  const subject = `the options of ${whose}`;
  if (typeof options !== "object" || options === null)
    throw new UsageError("bad-option", unexpected(subject, "an object", options));
  const stray = Object.keys(options).find((name) => !known.includes(name));
  if (stray !== undefined) throw new UsageError("bad-option", unexpected(subject, `among ${known.join(", ")}`, stray));
}

/**
 * An `AbortController` in place of its signal would fail only when somebody waits for it, with a timer set already.
 * @throws UsageError for what cannot be waited for.
 */
export function requireSignal(whose: string, signal: AbortSignal | undefined): void {
  if (signal === undefined || isSignal(signal)) return;
  const what = `the signal of ${whose}`;
  const got = signal instanceof AbortController ? "an AbortController: its signal is meant" : signal;
  throw new UsageError("bad-option", unexpected(what, "an AbortSignal", got));
}

/** Or what looks like one: there are several implementations. */
function isSignal(signal: unknown): boolean {
  if (typeof signal !== "object" || signal === null) return false;
  const { aborted, addEventListener, removeEventListener } = signal as Partial<AbortSignal>;
  const listens = typeof addEventListener === "function" && typeof removeEventListener === "function";
  return typeof aborted === "boolean" && listens;
}
