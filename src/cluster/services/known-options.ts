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
