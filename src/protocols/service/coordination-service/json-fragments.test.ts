import fc from "fast-check";
import { expect, it } from "vitest";
import { beginWriting, isWritten, write } from "./json-fragments.ts";

function written(value: object, chars: number): { text: string; longest: number } {
  const writing = beginWriting(value);
  let longest = 0;
  while (!isWritten(writing)) {
    const before = writing.text.length;
    write(writing, chars);
    longest = Math.max(longest, writing.text.length - before);
  }
  return { text: writing.text, longest };
}

const plain = fc.jsonValue().filter((value) => typeof value === "object" && value !== null) as fc.Arbitrary<object>;

it("is the text that JSON.stringify gives, whatever the fragments", () => {
  fc.assert(
    fc.property(plain, fc.integer({ min: 1, max: 50 }), (value, chars) => {
      expect(written(value, chars).text).toBe(JSON.stringify(value));
    }),
  );
});

it("is written in fragments, however large a list or an object is, and however deep it stands", () => {
  const table = {
    keys: Array.from({ length: 5_000 }, (_, at) => `key-${at}`),
    values: Array.from({ length: 5_000 }, (_, at) => ({ value: "x".repeat(64), revision: at, session: null })),
  };
  const lives = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`${at}`, at]));
  const data = { revision: 1, maps: { keys: ["a", "b"], values: [table, { keys: [], values: [] }] }, lives };
  const { text, longest } = written({ data, digest: 7 }, 10_000);
  expect(text).toBe(JSON.stringify({ data, digest: 7 }));
  expect(longest).toBeLessThan(20_000);
});

it("leaves out what JSON leaves out", () => {
  const value = { absent: undefined, list: [undefined, null], long: Array.from({ length: 3_000 }, () => undefined) };
  expect(written(value, 100).text).toBe(JSON.stringify(value));
});
