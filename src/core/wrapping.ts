/**
 * Messages, events, records and commands of a part of an assembly are wrapped in the part's name: `{ type: "election", body: {
 * type: "answer" } }` is an `answer` of the part `election`. A part that is itself an assembly adds one more wrapping. The
 * functions below look inside.
 */
import type { Tagged } from "./protocol.ts";

/** Removes one wrapping. Null if there is none. */
export function bodyOf(said: Tagged): Tagged | null {
  const { body } = said as { body?: unknown };
  const isTagged = typeof body === "object" && body !== null && typeof (body as Partial<Tagged>).type === "string";
  return isTagged ? (body as Tagged) : null;
}

/** The innermost value, without the names of the parts around it. */
export function unwrapped(said: Tagged): Tagged & Record<string, unknown> {
  let inner = said;
  for (let next = bodyOf(inner); next !== null; next = bodyOf(inner)) inner = next;
  return inner;
}

/** The names of the parts from the outermost in, then the type of the value. */
export function pathOf(said: Tagged): string[] {
  const path = [said.type];
  for (let inner = bodyOf(said); inner !== null; inner = bodyOf(inner)) path.push(inner.type);
  return path;
}

/** Other contents in the same wrapping. */
export function rewrapped(said: Tagged, contents: object): Tagged {
  const body = bodyOf(said);
  return body === null ? (contents as Tagged) : ({ ...said, body: rewrapped(body, contents) } as Tagged);
}
