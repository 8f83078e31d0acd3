/** Payloads as they travel: JSON, many in one multicast. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { jsonFault } from "./json-fault.ts";

/** Of JSON, in UTF-8. So much fits one multicast, with what stands before it. */
export const MAX_PAYLOAD_BYTES = 60_000;
/** What a frame has besides: names and numbers, and counters of each member, of the order and of its carrier. */
const FRAME_ROOM_BYTES = 512;
const MEMBER_ROOM_BYTES = 32;
/** If any datagram of a batch is lost, all of it is: so it is in a few. */
const FEW_DATAGRAMS = 3;

/** What fits: a payload, and the many payloads that gather for one multicast. */
export interface Bounds {
  readonly payloadBytes: number;
  readonly batchBytes: number;
}

/** @param datagramBytes what a datagram carries, where they are used. */
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

/** Text that stands in JSON as it is, each character a byte. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Of text of that kind, in half the time that JSON.stringify takes; null for all else. */
export const plainJsonOf = (value: unknown): string | null =>
  typeof value === "string" && PLAIN.test(value) ? `"${value}"` : null;

/** @throws UsageError for what another member would not get as it is, or what is too large. */
export function payloadOf(value: unknown, maxBytes: number): Payload {
  const plain = plainJsonOf(value);
  const text = plain ?? jsonOf(value);
  const bytes = plain === null ? Buffer.byteLength(text) : text.length;
  if (bytes <= maxBytes) return { text, bytes };
  throw new UsageError(
    "payload-too-large",
    `expected the payload to be at most ${maxBytes} bytes of JSON, got ${bytes}: send it in parts, or send where it is to be found`,
  );
}

/** @throws UsageError for what another member would not get as it is. */
export function jsonOf(value: unknown): string {
  const { text, fault } = attempted(value);
  if (text !== undefined && fault === null) return text;
  throw new UsageError("bad-payload", fault ?? unexpected("the payload", "JSON data", value));
}

function attempted(value: unknown): { text: string | undefined; fault: string | null } {
  try {
    return { text: JSON.stringify(value), fault: jsonFault(value, "the payload") };
  } catch (error) {
    const { message } = error as Error; // A cycle or a bigint.
    const why = error instanceof RangeError ? "it is nested too deeply" : message.split("\n")[0];
    return { text: undefined, fault: `expected the payload to be JSON data: ${why}` };
  }
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

/** What no member of this program sends has nothing in it. */
export function readBatch(text: string): Batch {
  const afterNumber = text.indexOf(" ");
  const afterCount = text.indexOf(" ", afterNumber + 1);
  const number = Number(text.slice(0, afterNumber));
  const count = Number(text.slice(afterNumber + 1, afterCount));
  const isSound = afterNumber > 0 && Number.isSafeInteger(number) && count > 0 && count <= text.length;
  return isSound && Number.isInteger(count) ? { number, count, json: text.slice(afterCount + 1) } : EMPTY;
}

const EMPTY: Batch = { number: 0, count: 0, json: "[]" };

/** Its values, anew for each reader; none if it has not as many as it says. */
export function valuesOf({ json, count }: Pick<Batch, "json" | "count">): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(json);
    return Array.isArray(values) && values.length === count ? values : [];
  } catch {
    return [];
  }
}
