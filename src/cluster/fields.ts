/** What somebody wrote as an object of named fields: a file, or the body of a request. */
import { unexpected } from "../core/errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * What is wrong with it as a whole, in a sentence; null if nothing is. A misspelt field comes before one that is missing because of it.
 * @param within before the name of a field of it, such as `limits.`.
 */
export function strayField(
  value: unknown,
  { what, expected, known, within }: { what: string; expected: string; known: readonly string[]; within: string },
): string | null {
  if (!isFields(value)) return unexpected(what, expected, value);
  const stray = Object.keys(value).find((name) => !known.includes(name));
  return stray === undefined ? null : unexpected(`${within}${stray}`, "absent", value[stray]);
}
