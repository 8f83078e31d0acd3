/** Values of shared state as the log carries them: JSON, or bytes in base64 behind a letter with which no JSON begins. */
import { UsageError } from "../../../core/errors.ts";
import { payloadOf } from "../channel-text.ts";

const BYTES = "b";

/** @throws UsageError `bad-value` for what is neither JSON data nor bytes, `too-large`. */
export function textOf(value: unknown, what: string, maxBytes: number): string {
  if (value instanceof Uint8Array) return withinBounds(BYTES + base64Of(value), what, maxBytes);
  try {
    return withinBounds(payloadOf(value, Number.POSITIVE_INFINITY).text, what, maxBytes);
  } catch (error) {
    if (!(error instanceof UsageError) || error.code !== "bad-payload") throw error;
    throw new UsageError("bad-value", error.message.replaceAll("the payload", what), { cause: error });
  }
}

export function parsedValue(text: string): unknown {
  if (text.startsWith(BYTES)) return new Uint8Array(Buffer.from(text.slice(BYTES.length), "base64"));
  return JSON.parse(text);
}

const base64Of = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

function withinBounds(text: string, what: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  throw new UsageError(
    "too-large",
    `expected ${what} to take at most ${maxBytes} bytes, got ${bytes}: keep it elsewhere, and share where it is to be found`,
  );
}
