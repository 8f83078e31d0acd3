/** What JSON would change in silence: found fast where there is nothing, and told with its path where there is. */
import { unexpected } from "../../core/errors.ts";

interface Look {
  /** Whether a field that is undefined is a fault. */
  readonly isStrict: boolean;
  /** Whether keys are that JSON drops: of an array all but its indices, and what is not enumerable. */
  readonly isThorough: boolean;
}

/** Returns the fault of a value that a caller gives as a sentence, or null. A field that is undefined is a fault. */
export function jsonFault(value: unknown, path: string): string | null {
  return faultOf(value, path, { isStrict: true, isThorough: true });
}

/**
 * Returns the fault of a result of `apply()`. Fields that are undefined are dropped: members of earlier releases drop them, and
 * all members have to reach the same result.
 */
export function resultFault(result: unknown, path: string, isThorough = true): string | null {
  return faultOf(result, path, { isStrict: false, isThorough });
}

const faultOf = (value: unknown, path: string, look: Look): string | null =>
  isPlain(value, undefined, look) ? null : faultIn(value, path, look);

/**
 * The same of a state, from which such a field would be missing once it has been saved.
 * @param checked an earlier one in which there is no fault: what the two have in common is not looked at again. Undefined: there is no such one.
 */
export function stateFault(state: unknown, checked: unknown, path: string, isThorough = true): string | null {
  const look: Look = { isStrict: true, isThorough };
  try {
    return isPlain(state, checked, look) ? null : faultIn(state, path, look);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `expected ${path} to be JSON data: it is nested too deeply`;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isPlain(value: unknown, checked: unknown, look: Look): boolean {
  if (typeof value !== "object") return isPlainText(value);
  if (value === null || value === checked) return true;
  return Array.isArray(value) ? areItemsPlain(value, checked, look) : areFieldsPlain(value as Fields, checked, look);
}

const isPlainText = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isFinite(value) && !Object.is(value, -0)
    : typeof value === "string" || typeof value === "boolean";

function areItemsPlain(items: readonly unknown[], checked: unknown, look: Look): boolean {
  if (Object.getPrototypeOf(items) !== Array.prototype) return false;
  if (look.isThorough && hasStray(items, items.length + 1, checked)) return false;
  const before: readonly unknown[] = Array.isArray(checked) ? checked : [];
  for (let at = 0; at < items.length; at++) if (!isPlain(items[at], before[at], look)) return false;
  return true;
}

function areFieldsPlain(fields: Fields, checked: unknown, look: Look): boolean {
  if (!isPlainObject(fields) || Object.getOwnPropertySymbols(fields).length > 0) return false;
  const before = typeof checked === "object" && checked !== null ? (checked as Fields) : null;
  let shown = 0;
  for (const key in fields) {
    const field = fields[key];
    const isFieldPlain = field === undefined ? !look.isStrict : isPlain(field, before?.[key], look);
    if (!isFieldPlain) return false;
    shown += 1;
  }
  return !look.isThorough || !hasStray(fields, shown, checked);
}

/** To count the keys of something long takes longer than all else. Of what takes the place of an earlier one, it waits until all is looked at. */
const MAX_COUNTED = 1_000;

const hasStray = (value: object, shown: number, checked: unknown): boolean =>
  Object.getOwnPropertySymbols(value).length > 0 ||
  ((shown <= MAX_COUNTED || checked === undefined) && Object.getOwnPropertyNames(value).length > shown);

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The first fault, in words: there is one. */
function faultIn(value: unknown, path: string, look: Look): string {
  if (typeof value === "number") {
    if (Object.is(value, -0)) return `expected ${path} to be a number that JSON keeps, got -0`;
    return unexpected(path, "a finite number", value);
  }
  if (typeof value !== "object" || value === null) return unexpected(path, "JSON data", value);
  if (Array.isArray(value) ? Object.getPrototypeOf(value) !== Array.prototype : !isPlainObject(value))
    return `expected ${path} to be a plain object, got an instance of ${value.constructor?.name ?? "a class"}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `expected ${path} to have no keys that are symbols`;
  const stray = look.isThorough ? strayIn(value) : undefined;
  if (stray !== undefined) return `expected ${path} to have no key that JSON drops, got ${path}.${stray}`;
  const pieces: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? Array.from(value, (item: unknown, at) => [`${path}[${at}]`, item])
    : Object.entries(value)
        .filter(([, field]) => look.isStrict || field !== undefined)
        .map(([key, field]) => [`${path}.${key}`, field]);
  const [at = path, piece] = pieces.find(([, each]) => !isPlain(each, undefined, look)) ?? [];
  return faultIn(piece, at, look);
}

const strayIn = (value: object): string | undefined =>
  Object.getOwnPropertyNames(value).find((name) =>
    Array.isArray(value)
      ? name !== "length" && name !== String(Number(name) >>> 0)
      : !Object.prototype.propertyIsEnumerable.call(value, name),
  );
