/** Runs cost tests for several numbers of nodes. */
import { test } from "vitest";

const ALWAYS_UP_TO = 16;

/** Returns the integers from first to last, both included. */
export const range = (first: number, last: number): number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);

/** Defines a test for each number of nodes. The last number takes long, and the ones before it together even longer. */
export function eachSize(first: number, last: number, title: string, body: (nodes: number) => void): void {
  test.each(range(first, ALWAYS_UP_TO))(title, (nodes) => body(nodes));
  test.each(range(ALWAYS_UP_TO + 1, last - 1))(title, { tags: ["larger"] }, (nodes) => body(nodes));
  test.each([last])(title, { tags: ["long"] }, (nodes) => body(nodes));
}
