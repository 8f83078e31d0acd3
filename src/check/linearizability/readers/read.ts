/** A history as text, in either of the two formats. */
import { UsageError } from "../../../core/errors.ts";
import type { History } from "../history.ts";
import type { ReadingOptions } from "./events.ts";
import { readJepsenHistory } from "./jepsen.ts";
import { readJsonLinesHistory } from "./json-lines.ts";

/** @throws UsageError for what is no history, or one of no operation that may have happened */
export function readHistory(content: string, format: "edn" | "json" | "auto", options: ReadingOptions): History {
  const read = isEdn(content, format) ? readJepsenHistory : readJsonLinesHistory;
  const history = read(content, options);
  if (history.operations.length > 0) return history;
  throw new UsageError("bad-history", "expected at least one operation that did not fail, got none");
}

/** JSON lines begin with a field in quotes; EDN with a keyword, a comment or a vector of maps. */
function isEdn(content: string, format: "edn" | "json" | "auto"): boolean {
  return format === "auto" ? !/^\s*(?:\{\s*"|\{\s*\}|$)/.test(content) : format === "edn";
}
