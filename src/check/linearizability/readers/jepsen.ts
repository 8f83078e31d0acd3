/**
 * A history as Jepsen writes it, one map after another or all in a vector:
 *
 *     {:process 0, :type :invoke, :f :write, :value 3, :time 31, :index 0}
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { History, Value } from "../history.ts";
import { readEdn } from "./edn.ts";
import { type Fields, historyFrom, type ReadingOptions } from "./events.ts";

/** @throws UsageError that names line and column, what was expected there and what came. */
export function readJepsenHistory(text: string, options: ReadingOptions = {}): History {
  const log: Fields[] = [];
  for (const { value, line, column } of readEdn(text)) {
    const place = `line ${line}, column ${column}`;
    if (value === null || typeof value !== "object" || Array.isArray(value))
      throw new UsageError("bad-history", `${place}: ${unexpected("the form", "a map of an event", value)}`);
    log.push({ values: value as { readonly [field: string]: Value }, line, place });
  }
  return historyFrom(log, options);
}
