/** Payloads as they travel: JSON, many in one multicast. */
import { UsageError, unexpected } from "../../core/errors.ts";

/** Of JSON, in UTF-8. So much fits one multicast, with what stands before it. */
export const MAX_PAYLOAD_BYTES = 60_000;

export interface Payload {
  readonly text: string;
  readonly bytes: number;
}

/** @throws UsageError for what another member would not get as it is, or what is too large. */
export function payloadOf(value: unknown): Payload {
  const text = jsonOf(value);
  const fault = jsonFault(value, "the payload");
  if (text === undefined || fault !== null)
    throw new UsageError("bad-payload", fault ?? unexpected("the payload", "JSON data", value));
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_PAYLOAD_BYTES) return { text, bytes };
  throw new UsageError(
    "payload-too-large",
    `expected the payload to be at most ${MAX_PAYLOAD_BYTES} bytes of JSON, got ${bytes}: send it in parts, or send where it is to be found`,
  );
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    const { message } = error as Error; // A cycle, a bigint, or nested too deeply.
    throw new UsageError("bad-payload", `expected the payload to be JSON data: ${message.split("\n")[0]}`);
  }
}

/** What JSON would change in silence, or null. A field that is undefined is one that is not there. */
function jsonFault(value: unknown, path: string): string | null {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return null;
  if (typeof value === "number") return Number.isFinite(value) ? null : unexpected(path, "a finite number", value);
  if (typeof value !== "object") return unexpected(path, "JSON data", value);
  if (Array.isArray(value)) return first(value, (item, index) => jsonFault(item, `${path}[${index}]`));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    return `expected ${path} to be a plain object, got an instance of ${value.constructor?.name ?? "a class"}`;
  return first(Object.entries(value), ([key, item]) => (item === undefined ? null : jsonFault(item, `${path}.${key}`)));
}

function first<T>(items: readonly T[], fault: (item: T, index: number) => string | null): string | null {
  for (let index = 0; index < items.length; index++) {
    const found = fault(items[index] as T, index);
    if (found !== null) return found;
  }
  return null;
}

/** What one multicast carries: which of its sender's it is, and so many values. */
export interface Batch {
  readonly number: number;
  readonly count: number;
  /** The JSON text of the list of values. */
  readonly json: string;
}

export const batchText = (number: number, texts: readonly string[]): string =>
  `${number} ${texts.length} [${texts.join(",")}]`;

export function readBatch(text: string): Batch {
  const afterNumber = text.indexOf(" ");
  const afterCount = text.indexOf(" ", afterNumber + 1);
  return {
    number: Number(text.slice(0, afterNumber)),
    count: Number(text.slice(afterNumber + 1, afterCount)),
    json: text.slice(afterCount + 1),
  };
}
