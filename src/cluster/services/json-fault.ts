/** What JSON would change in silence: found fast where there is nothing, and told with its path where there is. */
import { unexpected } from "../../core/errors.ts";

/** In a sentence, or null. A field that is undefined is one that is not there. */
export const jsonFault = (value: unknown, path: string): string | null =>
  isPlain(value, undefined, false) ? null : faultIn(value, path, false);

/**
 * The same of a state, from which such a field would be missing once it has been saved.
 * @param checked an earlier one in which there is no fault: what the two have in common is not looked at again. Undefined: there is no such one.
 */
export function stateFault(state: unknown, checked: unknown, path: string): string | null {
  try {
    return isPlain(state, checked, true) ? null : faultIn(state, path, true);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `expected ${path} to be JSON data: it is nested too deeply`;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** @param isStrict whether a field that is undefined is a fault. */
function isPlain(value: unknown, checked: unknown, isStrict: boolean): boolean {
  if (typeof value !== "object") return isPlainText(value);
  if (value === null || value === checked) return true;
  return Array.isArray(value)
    ? areItemsPlain(value, checked, isStrict)
    : areFieldsPlain(value as Fields, checked, isStrict);
}

const isPlainText = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isFinite(value) && !Object.is(value, -0)
    : typeof value === "string" || typeof value === "boolean";

function areItemsPlain(items: readonly unknown[], checked: unknown, isStrict: boolean): boolean {
  if (Object.getPrototypeOf(items) !== Array.prototype) return false;
  const before: readonly unknown[] = Array.isArray(checked) ? checked : [];
  for (let at = 0; at < items.length; at++) if (!isPlain(items[at], before[at], isStrict)) return false;
  return true;
}

function areFieldsPlain(fields: Fields, checked: unknown, isStrict: boolean): boolean {
  if (!isPlainObject(fields) || Object.getOwnPropertySymbols(fields).length > 0) return false;
  const before = typeof checked === "object" && checked !== null ? (checked as Fields) : null;
  for (const key in fields) {
    const field = fields[key];
    const isFieldPlain = field === undefined ? !isStrict : isPlain(field, before?.[key], isStrict);
    if (!isFieldPlain) return false;
  }
  return true;
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The first fault, in words: there is one. */
function faultIn(value: unknown, path: string, isStrict: boolean): string {
  if (typeof value === "number") {
    if (Object.is(value, -0)) return `expected ${path} to be a number that JSON keeps, got -0`;
    return unexpected(path, "a finite number", value);
  }
  if (typeof value !== "object" || value === null) return unexpected(path, "JSON data", value);
  if (Array.isArray(value) ? Object.getPrototypeOf(value) !== Array.prototype : !isPlainObject(value))
    return `expected ${path} to be a plain object, got an instance of ${value.constructor?.name ?? "a class"}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `expected ${path} to have no keys that are symbols`;
  const pieces: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? Array.from(value, (item: unknown, at) => [`${path}[${at}]`, item])
    : Object.entries(value)
        .filter(([, field]) => isStrict || field !== undefined)
        .map(([key, field]) => [`${path}.${key}`, field]);
  const [at = path, piece] = pieces.find(([, each]) => !isPlain(each, undefined, isStrict)) ?? [];
  return faultIn(piece, at, isStrict);
}
