/**
 * A history as JSON lines; `key`, `value` and `time` may be left out:
 *
 *     {"process":0,"type":"invoke","f":"write","value":3,"key":"x","time":31}
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { History, Value } from "../history.ts";
import { type Fields, historyFrom, type ReadingOptions } from "./events.ts";

const MAX_DEPTH = 64;
const MAX_LINE_CHARACTERS = 2 ** 20;

/** @throws UsageError that names the line and the field, what was expected there and what came. */
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
    throw refuse(`expected a JSON object, got what is none (${(error as Error).message})`);
  }
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw refuse(unexpected("the line", "a JSON object", values));
  if (isDeeperThan(MAX_DEPTH, values)) throw refuse(`expected at most ${MAX_DEPTH} values in each other, got more`);
  return { values: values as { readonly [field: string]: Value }, line, place };
}

const isDeeperThan = (depth: number, value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((inner) => isDeeperThan(depth - 1, inner)));
