/** A state as a scenario begins with: what differs from that of a node that has just begun. */
import { clone } from "../core/plain.ts";

/** Objects are gone into, anything else is replaced. */
export function mergeInto(state: object, differing: Readonly<Record<string, unknown>>): void {
  const target = state as Record<string, unknown>;
  for (const [field, value] of Object.entries(differing)) {
    if (isObject(value) && isObject(target[field])) mergeInto(target[field], value);
    else target[field] = clone(value); // What differs stays as it is.
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
