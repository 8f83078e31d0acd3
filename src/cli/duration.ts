/** Times on the command line: `250ms`, `5s`, `2m`, `1h`. */
import { UsageError, unexpected } from "../core/errors.ts";

const MINUTE_MS = 60_000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: MINUTE_MS, h: 3_600_000 };
/** The longest that a timer of Node can wait, about 24 days. */
const MAX_MS = 2 ** 31 - 1;

/** A parser of times for commander, in milliseconds. @param mostMs whole minutes. @throws UsageError, in the parser. */
export function duration(option: string, mostMs: number = MAX_MS) {
  const most = mostMs === MAX_MS ? "" : `, at most ${mostMs / MINUTE_MS}m`;
  return (text: string): number => {
    const [, amount = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
    const ms = Math.round(Number(amount) * (UNIT_MS[unit] ?? 0));
    if (ms >= 1 && ms <= mostMs) return ms;
    throw new UsageError("bad-argument", unexpected(option, `a time such as 250ms, 5s or 2m${most}`, text));
  };
}
