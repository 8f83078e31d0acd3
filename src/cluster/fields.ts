/** Validates untrusted objects with named fields, such as a file or the body of a request. */
import { unexpected } from "../core/errors.ts";
import { suggestion } from "../core/suggestion.ts";

/** An object that has not been validated yet. */
export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Describes the first structural problem in a sentence, or returns null. An unknown field is reported first, since a
 * misspelled field also looks like a missing one.
 * @param within the prefix for field names, such as `limits.`
 */
export function strayField(
  value: unknown,
  { what, expected, known, within }: { what: string; expected: string; known: readonly string[]; within: string },
): string | null {
  if (!isFields(value)) return unexpected(what, expected, value);
  const stray = Object.keys(value).find((name) => !known.includes(name));
  if (stray === undefined) return null;
  return `${unexpected(`${within}${stray}`, "absent", value[stray])}${suggestion(stray, known)}`;
}
