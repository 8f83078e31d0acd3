/**
 * Functions that unwrap assembly values. An assembly wraps each part's messages, events, records and commands in the
 * part's name: `{ type: "election", body: { type: "answer" } }` is an `answer` from the `election` part. A part that is
 * itself an assembly adds another layer of wrapping.
 */
import type { Tagged } from "./protocol.ts";

/** Returns the value inside the outermost layer of wrapping. Null if the value is not wrapped. */
export function bodyOf(said: Tagged): Tagged | null {
  const { body } = said as { body?: unknown };
  const isTagged = typeof body === "object" && body !== null && typeof (body as Partial<Tagged>).type === "string";
  return isTagged ? (body as Tagged) : null;
}

/** Returns the innermost value, without the part names wrapped around it. */
export function unwrapped(said: Tagged): Tagged & Record<string, unknown> {
  let inner = said;
  for (let next = bodyOf(inner); next !== null; next = bodyOf(inner)) inner = next;
  return inner;
}

/** Returns the part names from the outermost to the innermost, followed by the value's type. */
export function pathOf(said: Tagged): string[] {
  const path = [said.type];
  for (let inner = bodyOf(said); inner !== null; inner = bodyOf(inner)) path.push(inner.type);
  return path;
}

/** Returns the new contents in the same layers of wrapping. */
export function rewrapped(said: Tagged, contents: object): Tagged {
  const body = bodyOf(said);
  return body === null ? (contents as Tagged) : ({ ...said, body: rewrapped(body, contents) } as Tagged);
}
