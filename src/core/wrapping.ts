/**
 * What a part of an assembly sends, emits, journals or is commanded is wrapped in its name:
 * `{ type: "election", body: { type: "answer" } }` is an `answer` of the part `election`. A part that is an assembly itself
 * wraps it once more. Whoever looks at what was said looks into it here.
 */
import type { Tagged } from "./protocol.ts";

/** One wrapping less; null where there is none. */
export function bodyOf(said: Tagged): Tagged | null {
  const { body } = said as { body?: unknown };
  const isTagged = typeof body === "object" && body !== null && typeof (body as Partial<Tagged>).type === "string";
  return isTagged ? (body as Tagged) : null;
}

/** What was said, without the names of the parts around it. */
export function unwrapped(said: Tagged): Tagged & Record<string, unknown> {
  let inner = said;
  for (let next = bodyOf(inner); next !== null; next = bodyOf(inner)) inner = next;
  return inner;
}

/** The names of the parts, from the outermost in, and the type of what was said. */
export function pathOf(said: Tagged): string[] {
  const path = [said.type];
  for (let inner = bodyOf(said); inner !== null; inner = bodyOf(inner)) path.push(inner.type);
  return path;
}

/** The same with other contents, in the same wrapping. */
export function rewrapped(said: Tagged, contents: object): Tagged {
  const body = bodyOf(said);
  return body === null ? (contents as Tagged) : ({ ...said, body: rewrapped(body, contents) } as Tagged);
}
