/**
 * Converts values of shared state to the texts stored in the log: JSON, or bytes as base64 after a letter that never
 * begins JSON.
 */
import { EnvironmentError, UsageError, unexpected } from "../../../core/errors.ts";
import { jsonOf, plainJsonOf } from "../channel-text.ts";
import { fitsBytes, utf8Bytes } from "../utf8-bytes.ts";

const BYTES = "b";

/** @throws UsageError `bad-value` if the value is neither JSON data nor bytes, `too-large` */
export function textOf(value: unknown, what: string, maxBytes: number): string {
  const plain = plainJsonOf(value);
  if (plain !== null) return withinBounds(plain, what, maxBytes);
  if (value instanceof Uint8Array) return withinBounds(BYTES + base64Of(value), what, maxBytes);
  try {
    return withinBounds(jsonOf(value), what, maxBytes);
  } catch (error) {
    if (!(error instanceof UsageError) || error.code !== "bad-payload") throw error;
    throw new UsageError("bad-value", error.message.replaceAll("the payload", what), { cause: error });
  }
}

/**
 * @param what the value, for the error
 * @throws EnvironmentError if another program wrote the text and it is invalid
 */
export function parsedValue(text: string, what = "a value"): unknown {
  try {
    if (!text.startsWith(BYTES)) return JSON.parse(text);
    return Uint8Array.from(atob(text.slice(BYTES.length)), (unit) => unit.charCodeAt(0));
  } catch (error) {
    throw new EnvironmentError(
      "bad-value",
      unexpected(`${what} written by another program`, "JSON, or bytes in base64", text.slice(0, 40)),
      { cause: error },
    );
  }
}

/** Returns a value that another program may have written, as a list. Empty if it is invalid. */
export function readable<T>(text: string): [T] | [] {
  try {
    return [parsedValue(text) as T];
  } catch {
    return [];
  }
}

/** Encodes bytes without `Buffer`, which browsers lack. */
function base64Of(bytes: Uint8Array): string {
  let units = "";
  for (let at = 0; at < bytes.length; at += AT_ONCE) units += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE));
  return btoa(units);
}

/** The maximum number of arguments per function call. */
const AT_ONCE = 4_096;

/** @throws UsageError `too-large` */
export function withinBounds(text: string, what: string, maxBytes: number): string {
  if (fitsBytes(text, maxBytes)) return text;
  throw new UsageError(
    "too-large",
    `expected ${what} to be at most ${maxBytes} bytes, got ${utf8Bytes(text)}: store it elsewhere, and share a reference to it`,
  );
}
