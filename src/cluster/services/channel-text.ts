/** The wire format of payloads: JSON, with several payloads in one multicast. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { jsonFault } from "./json-fault.ts";

/**
 * The maximum size of a payload as JSON in UTF-8. A payload of this size still fits into one multicast, including the
 * overhead.
 */
export const MAX_PAYLOAD_BYTES = 60_000;
/** The overhead of a frame: names, numbers, and the counters that the order and its carrier keep for each member. */
const FRAME_ROOM_BYTES = 512;
const MEMBER_ROOM_BYTES = 32;
/** The maximum number of datagrams in a batch. It is small, because a batch is lost if any of its datagrams is lost. */
const FEW_DATAGRAMS = 3;

/** Size limits for a single payload and for a batch sent in one multicast. */
export interface Bounds {
  readonly payloadBytes: number;
  readonly batchBytes: number;
}

/** @param datagramBytes the capacity of a datagram, if the channel uses datagrams */
export function boundsWithin(frameBytes: number, members: number, datagramBytes = Number.POSITIVE_INFINITY): Bounds {
  const room = FRAME_ROOM_BYTES + members * MEMBER_ROOM_BYTES;
  const payloadBytes = Math.max(1, Math.min(MAX_PAYLOAD_BYTES, frameBytes - room));
  const batchBytes = Math.max(1, Math.min(payloadBytes, FEW_DATAGRAMS * datagramBytes - room));
  return { payloadBytes, batchBytes };
}

export interface Payload {
  readonly text: string;
  readonly bytes: number;
}

/** Text that JSON does not escape, with one byte per character. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Returns the JSON for such text in half the time that JSON.stringify takes, or null for other values. */
export const plainJsonOf = (value: unknown): string | null =>
  typeof value === "string" && PLAIN.test(value) ? `"${value}"` : null;

/** @throws UsageError if another member would not receive the same value, or if the payload is too large */
export function payloadOf(value: unknown, maxBytes: number): Payload {
  const plain = plainJsonOf(value);
  const text = plain ?? jsonOf(value);
  const bytes = plain === null ? Buffer.byteLength(text) : text.length;
  if (bytes <= maxBytes) return { text, bytes };
  throw new UsageError(
    "payload-too-large",
    `expected the payload to be at most ${maxBytes} bytes of JSON, got ${bytes}: send it in parts, or send a reference to it`,
  );
}

/** @throws UsageError if another member would not receive the same value */
export function jsonOf(value: unknown): string {
  const { text, fault } = attempted(value);
  if (text !== undefined && fault === null) return text;
  throw new UsageError("bad-payload", fault ?? unexpected("the payload", "JSON data", value));
}

function attempted(value: unknown): { text: string | undefined; fault: string | null } {
  try {
    return { text: JSON.stringify(value), fault: jsonFault(value, "the payload") };
  } catch (error) {
    const { message } = error as Error; // The value contains a cycle or a bigint.
    const why = error instanceof RangeError ? "it is nested too deeply" : message.split("\n")[0];
    return { text: undefined, fault: `expected the payload to be JSON data: ${why}` };
  }
}

/** The content of one multicast: the batch's number at the sender, and the values. */
export interface Batch {
  readonly number: number;
  readonly count: number;
  /** The list of values, as JSON. */
  readonly json: string;
}

export const batchText = (number: number, texts: readonly string[]): string =>
  `${number} ${texts.length} [${texts.join(",")}]`;

/** Returns an empty batch if the text is malformed. */
export function readBatch(text: string): Batch {
  const afterNumber = text.indexOf(" ");
  const afterCount = text.indexOf(" ", afterNumber + 1);
  const number = Number(text.slice(0, afterNumber));
  const count = Number(text.slice(afterNumber + 1, afterCount));
  const isSound = afterNumber > 0 && Number.isSafeInteger(number) && count > 0 && count <= text.length;
  return isSound && Number.isInteger(count) ? { number, count, json: text.slice(afterCount + 1) } : EMPTY;
}

const EMPTY: Batch = { number: 0, count: 0, json: "[]" };

/** Parses the values for one reader. Returns an empty list if there are not exactly `count` of them. */
export function valuesOf({ json, count }: Pick<Batch, "json" | "count">): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(json);
    return Array.isArray(values) && values.length === count ? values : [];
  } catch {
    return [];
  }
}
