/** Gives equal values one number: 0, 1, 2 … in the order in which they were first seen. */
import { canonical } from "../core/plain.ts";

export interface Interner<T> {
  readonly size: number;
  idOf(value: T): number;
  valueOf(id: number): T;
  /** Whether a value is still what it was when it got its number. */
  isIntact(id: number): boolean;
}

/** `keyOf` must tell apart what `canonical` does; by default it is that. */
export function interner<T>(keyOf: (value: T) => string = canonical): Interner<T> {
  const ids = new Map<string, number>();
  const values: T[] = [];
  return {
    get size() {
      return values.length;
    },
    idOf(value) {
      const key = keyOf(value);
      const known = ids.get(key);
      if (known !== undefined) return known;
      ids.set(key, values.length);
      values.push(value);
      return values.length - 1;
    },
    valueOf: (id) => values[id] as T,
    isIntact: (id) => ids.get(keyOf(values[id] as T)) === id,
  };
}
