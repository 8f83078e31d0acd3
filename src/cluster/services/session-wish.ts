/**
 * A program's request to hold a lock or leadership through a member: the body of `POST /locks/NAME` and
 * `POST /elections/NAME`.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { type Fields, strayField } from "../fields.ts";

/** The options in such a request. */
export interface SessionWish {
  /** The maximum time to wait. Locks only. */
  readonly timeoutMs?: number;
  /**
   * How long the caller can be silent after the grant before it is considered dead. Default: no limit while its
   * connection is open.
   */
  readonly silenceMs?: number;
}

const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const MIN_SILENCE_MS = 100;

/** @throws UsageError that names the field */
export function readWish(body: unknown): SessionWish {
  const known = ["timeoutMs", "silenceMs"];
  const stray = strayField(body, { what: "the body", expected: "an object", known, within: "" });
  if (stray !== null) throw new UsageError("bad-command", stray);
  const { timeoutMs, silenceMs } = body as Fields;
  requireMs("timeoutMs", timeoutMs, "a whole number of milliseconds", 0);
  requireMs("silenceMs", silenceMs, `a whole number of ${MIN_SILENCE_MS} or more`, MIN_SILENCE_MS);
  return body as SessionWish;
}

function requireMs(field: string, value: unknown, expected: string, least: number): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || (value as number) < least) throw wrong(field, expected, value);
  if ((value as number) > MAX_TIMEOUT_MS) throw wrong(field, "a whole number of milliseconds below 2^31", value);
}

const wrong = (field: string, expected: string, got: unknown): UsageError =>
  new UsageError("bad-command", unexpected(field, expected, got));
