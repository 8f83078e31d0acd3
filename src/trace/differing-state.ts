/** A state as a scenario begins with: what differs from that of a node that has just begun. */
import { clone } from "../core/plain.ts";

/** Objects are gone into, anything else is replaced. A key is one of the state's own, whatever it is called: files name them. */
export function mergeInto(state: object, differing: Readonly<Record<string, unknown>>): void {
  const target = state as Record<string, unknown>;
  for (const [field, value] of Object.entries(differing)) {
    const known = Object.hasOwn(target, field) ? target[field] : undefined;
    if (isObject(value) && isObject(known)) mergeInto(known, value);
    // What differs stays as it is. An assignment to "__proto__" would change what the state is.
    else
      Object.defineProperty(target, field, {
        value: clone(value),
        configurable: true,
        enumerable: true,
        writable: true,
      });
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
