/** What JSON would change in silence: found fast where there is nothing, and told with its path where there is. */
import { unexpected } from "../../core/errors.ts";

/** In a sentence, or null. A field that is undefined is one that is not there. */
export const jsonFault = (value: unknown, path: string): string | null => {
  const how: How = { isStrict: false };
  return faultAt(value, undefined, "", how) === null ? null : faultAt(value, undefined, path, how);
};

/**
 * The same of a state, from which such a field would be missing once it has been saved.
 * @param checked an earlier one in which there is none: what the two have in common is not looked at again. Undefined: there is no such one.
 */
export function stateFault(state: unknown, checked: unknown, path: string): string | null {
  const how: How = { isStrict: true };
  try {
    return faultAt(state, checked, "", how) === null ? null : faultAt(state, checked, path, how);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `expected ${path} to be JSON data: it is nested too deeply`;
  }
}

interface How {
  /** Whether a field that is undefined is a fault. */
  readonly isStrict: boolean;
}

/** @param path empty: nobody reads what is wrong, only whether something is. */
function faultAt(value: unknown, checked: unknown, path: string, how: How): string | null {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return null;
  if (typeof value === "number") return numberFault(value, path);
  if (typeof value !== "object") return unexpected(path, "JSON data", value);
  if (value === checked) return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(value) && prototype === Array.prototype) return itemsFault(value, checked, path, how);
  if (prototype !== Object.prototype && prototype !== null)
    return `expected ${path} to be a plain object, got an instance of ${value.constructor?.name ?? "a class"}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `expected ${path} to have no keys that are symbols`;
  return fieldsFault(value as Fields, checked, path, how);
}

type Fields = Readonly<Record<string, unknown>>;

function itemsFault(items: readonly unknown[], checked: unknown, path: string, how: How): string | null {
  const before: readonly unknown[] = Array.isArray(checked) ? checked : [];
  for (let at = 0; at < items.length; at++) {
    const found = faultAt(items[at], before[at], path && `${path}[${at}]`, how);
    if (found !== null) return found;
  }
  return null;
}

function fieldsFault(fields: Fields, checked: unknown, path: string, how: How): string | null {
  const before = typeof checked === "object" && checked !== null ? (checked as Fields) : {};
  for (const key of Object.keys(fields)) {
    const field = fields[key];
    const name = path && `${path}.${key}`;
    const found = field === undefined ? missing(name, how) : faultAt(field, before[key], name, how);
    if (found !== null) return found;
  }
  return null;
}

const missing = (path: string, { isStrict }: How): string | null =>
  isStrict ? `expected ${path} to be JSON data, got undefined: leave it out, or say null` : null;

function numberFault(value: number, path: string): string | null {
  if (Object.is(value, -0)) return `expected ${path} to be a number that JSON keeps, got -0`;
  return Number.isFinite(value) ? null : unexpected(path, "a finite number", value);
}
