/**
 * Plain data: null, booleans, numbers, strings, chunks, and arrays and object literals of these. State, messages and
 * records are plain data, so a driver can copy, compare and hash them without the author's help.
 */
import { base64Of, Chunk, isSameChunk } from "./chunk.ts";
import { UsageError, unexpected } from "./errors.ts";

/** Returns a deep copy. @throws UsageError if any part of the value is not plain data */
export function clone<T>(value: T): T {
  if (!isComposite(value)) return value;
  if (Array.isArray(value)) return value.map((item) => clone(item)) as T;
  const copy: Record<string, unknown> = { ...value }; // A spread preserves an own "__proto__" key.
  for (const key in copy) if (!isSimple(copy[key])) copy[key] = clone(copy[key]);
  return copy as T;
}

const isSimple = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" || value === null;

/**
 * Returns whether two values are deeply equal, that is, whether they have the same canonical text. The order of an
 * object's keys does not matter.
 */
export function equal(a: unknown, b: unknown): boolean {
  if (a instanceof Chunk && b instanceof Chunk) return isSameChunk(a, b);
  if (!isComposite(a) || !isComposite(b) || a === b) return Object.is(a, b);
  const keys = Object.keys(a);
  const isAlike = Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length;
  return isAlike && keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
}

/** Returns the canonical text of a value. Two values have the same canonical text if and only if they are equal. */
export const canonical = (value: unknown): string => textOf(value, (keys) => keys.sort());

/**
 * Like `canonical`, but keeps the order of object keys, because a handler that iterates over an object can observe it.
 */
export const verbatim = (value: unknown): string => textOf(value, (keys) => keys);

function textOf(value: unknown, arranged: (keys: string[]) => string[]): string {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, arranged)).join(",")}]`;
  if (isComposite(value)) {
    const inner = (key: string): string => textOf(value[key], arranged);
    return `{${arranged(Object.keys(value))
      .map((key) => `${JSON.stringify(key)}:${inner(key)}`)
      .join(",")}}`;
  }
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Chunk) return `chunk ${base64Of(value.bytes)}`;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  return String(value);
}

/** Returns a 53-bit hash of the canonical text (cyrb53: two 32-bit lanes, multiplied and folded). */
export function hash(value: unknown): number {
  const text = canonical(value);
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, 2654435761);
    high = Math.imul(high ^ unit, 1597334677);
  }
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return 4294967296 * (2097151 & high) + (low >>> 0);
}

/** Returns whether the value is an array or an object. @throws UsageError if it is not plain data */
function isComposite(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null) {
    const prototype: unknown = Array.isArray(value) ? null : Object.getPrototypeOf(value);
    if (prototype === Chunk.prototype) return false; // A chunk is immutable.
    if (prototype !== Object.prototype && prototype !== null) throw notPlain(value);
    return true;
  }
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint") throw notPlain(value);
  return false;
}

function notPlain(value: unknown): UsageError {
  const got = typeof value === "object" && value !== null ? value.constructor.name : typeof value;
  return new UsageError("not-plain", unexpected("state, messages and records", "plain data", got));
}
