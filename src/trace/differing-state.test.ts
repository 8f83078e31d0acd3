import { expect, test } from "vitest";
import { mergeInto } from "./replay-node.ts";

test("merges objects and replaces anything else", () => {
  const state = { clock: { time: 1, skew: 2 }, queue: [1, 2] };
  mergeInto(state, { clock: { time: 9 }, queue: [], leader: null });
  expect(state).toEqual({ clock: { time: 9, skew: 2 }, queue: [], leader: null });
});

test("a file with a field __proto__ or constructor changes only that one state", () => {
  const state = {};
  mergeInto(
    state,
    JSON.parse('{"__proto__":{"leaked":1},"constructor":{"prototype":{"leaked":1}}}') as Readonly<
      Record<string, unknown>
    >,
  );
  try {
    expect({}).not.toHaveProperty("leaked");
    expect(Object.getPrototypeOf(state)).toBe(Object.prototype);
    expect(Object.keys(state)).toEqual(["__proto__", "constructor"]);
  } finally {
    delete (Object.prototype as { leaked?: number }).leaked;
  }
});
