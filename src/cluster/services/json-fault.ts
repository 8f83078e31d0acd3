/**
 * Rejects values that JSON would change silently, and reports the path of the fault. Values without a fault are checked
 * quickly.
 */
import { unexpected } from "../../core/errors.ts";

/**
 * Describes a value's fault in a sentence, or returns null if there is none. Undefined fields, array keys that are not
 * indices, and keys that are not enumerable are faults.
 */
export const jsonFault = (value: unknown, path: string): string | null =>
  isPlain(value, undefined) ? null : faultIn(value, path);

/**
 * Describes a fault in a state machine's state, or returns null if there is none.
 * @param checked an earlier state without a fault, or undefined. Parts shared with it are not checked again
 */
export function stateFault(state: unknown, checked: unknown, path: string): string | null {
  try {
    return isPlain(state, checked) ? null : faultIn(state, path);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `expected ${path} to be JSON data: it is nested too deeply`;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isPlain(value: unknown, checked: unknown): boolean {
  if (typeof value !== "object") return isPlainText(value);
  if (value === null || value === checked) return true;
  return Array.isArray(value) ? areItemsPlain(value, checked) : areFieldsPlain(value as Fields, checked);
}

const isPlainText = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isFinite(value) && !Object.is(value, -0)
    : typeof value === "string" || typeof value === "boolean";

function areItemsPlain(items: readonly unknown[], checked: unknown): boolean {
  if (Object.getPrototypeOf(items) !== Array.prototype) return false;
  if (hasStray(items, items.length + 1, checked)) return false;
  const before: readonly unknown[] = Array.isArray(checked) ? checked : [];
  for (let at = 0; at < items.length; at++) if (!isPlain(items[at], before[at])) return false;
  return true;
}

function areFieldsPlain(fields: Fields, checked: unknown): boolean {
  if (!isPlainObject(fields) || Object.getOwnPropertySymbols(fields).length > 0) return false;
  const before = typeof checked === "object" && checked !== null ? (checked as Fields) : null;
  let shown = 0;
  for (const key in fields) {
    const field = fields[key];
    if (!isPlain(field, before?.[key])) return false;
    shown += 1;
  }
  return !hasStray(fields, shown, checked);
}

/**
 * Counting the keys of a large object is the slowest part of the check. It is therefore skipped for such an object if
 * an earlier state was checked. Checks without an earlier state always count the keys.
 */
const MAX_COUNTED = 1_000;

const hasStray = (value: object, shown: number, checked: unknown): boolean =>
  Object.getOwnPropertySymbols(value).length > 0 ||
  ((shown <= MAX_COUNTED || checked === undefined) && Object.getOwnPropertyNames(value).length > shown);

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Describes the first fault. The value must have one. */
function faultIn(value: unknown, path: string): string {
  if (typeof value === "number") {
    if (Object.is(value, -0)) return `expected ${path} to be a number that JSON can represent, got -0`;
    return unexpected(path, "a finite number", value);
  }
  if (typeof value !== "object" || value === null) return unexpected(path, "JSON data", value);
  if (Array.isArray(value) ? Object.getPrototypeOf(value) !== Array.prototype : !isPlainObject(value))
    return `expected ${path} to be a plain object, got an instance of ${value.constructor?.name ?? "a class"}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `expected ${path} to have no symbol keys`;
  const stray = strayIn(value);
  if (stray !== undefined) return `expected ${path} to have no key that JSON omits, got ${path}.${stray}`;
  const pieces: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? Array.from(value, (item: unknown, at) => [`${path}[${at}]`, item])
    : Object.entries(value).map(([key, field]) => [`${path}.${key}`, field]);
  const [at = path, piece] = pieces.find(([, each]) => !isPlain(each, undefined)) ?? [];
  return faultIn(piece, at);
}

const strayIn = (value: object): string | undefined =>
  Object.getOwnPropertyNames(value).find((name) =>
    Array.isArray(value)
      ? name !== "length" && name !== String(Number(name) >>> 0)
      : !Object.prototype.propertyIsEnumerable.call(value, name),
  );
