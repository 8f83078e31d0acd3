/** Untrusted objects of named fields: a file, or the body of a request. */
import { unexpected } from "../core/errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns the first structural problem as a sentence, or null. An unknown field is reported first, since a misspelled field
 * also looks missing.
 * @param within the prefix of its fields' names, such as `limits.`.
 */
export function strayField(
  value: unknown,
  { what, expected, known, within }: { what: string; expected: string; known: readonly string[]; within: string },
): string | null {
  if (!isFields(value)) return unexpected(what, expected, value);
  const stray = Object.keys(value).find((name) => !known.includes(name));
  return stray === undefined ? null : unexpected(`${within}${stray}`, "absent", value[stray]);
}
