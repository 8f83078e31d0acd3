import { describe, expect, test } from "vitest";
import {
  batchText,
  boundsWithin,
  MAX_PAYLOAD_BYTES,
  readBatch,
  valuesOf,
  payloadOf as within,
} from "./channel-text.ts";

const payloadOf = (value: unknown) => within(value, MAX_PAYLOAD_BYTES);

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

describe("a payload", () => {
  test.each([null, true, 0, -1.5, "", "ä", [], [1, ["two"]], {}, { a: { b: [null] } }, Object.create(null)])(
    "may be %j",
    (value) => {
      expect(JSON.parse(payloadOf(value).text)).toEqual(value);
    },
  );

  test("that is text encodes as JSON.stringify does, with any characters", () => {
    const texts = Array.from({ length: 2 ** 16 }, (_, unit) => `a${String.fromCharCode(unit)}`);
    const wrong = texts.filter((text) => {
      const json = JSON.stringify(text);
      const made = payloadOf(text);
      return made.text !== json || made.bytes !== Buffer.byteLength(json);
    });
    expect(wrong).toEqual([]);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  test.each([
    [undefined, "expected the payload to be JSON data, got undefined"],
    [() => 1, "expected the payload to be JSON data, got function"],
    [{ when: new Date(0) }, "expected the payload.when to be a plain object, got an instance of Date"],
    [new Map(), "expected the payload to be a plain object, got an instance of Map"],
    [[1, Number.NaN], "expected the payload[1] to be a finite number, got NaN"],
    [[-0], "expected the payload[0] to be a number that JSON can represent, got -0"],
    [{ [Symbol("lost")]: 1 }, "expected the payload to have no symbol keys"],
    [new (class Odd extends Array {})(), "expected the payload to be a plain object, got an instance of Odd"],
    [[undefined], "expected the payload[0] to be JSON data, got undefined"],
    [{ a: 1, b: { c: undefined } }, "expected the payload.b.c to be JSON data, got undefined"],
    [{ toJSON: () => "other" }, "expected the payload.toJSON to be JSON data, got function"],
    [1n, "expected the payload to be JSON data: Do not know how to serialize a BigInt"],
    [cyclic, "expected the payload to be JSON data: Converting circular structure to JSON"],
    [nested(100_000), "expected the payload to be JSON data: it is nested too deeply"],
  ])("is rejected if JSON would change or lose it (%#)", (value, message) => {
    expect(() => payloadOf(value)).toThrow(expect.objectContaining({ code: "bad-payload", message }));
  });

  test("is counted in bytes of its JSON", () => {
    const most = "x".repeat(MAX_PAYLOAD_BYTES - 2); // JSON adds two quotes.
    expect(payloadOf(most).bytes).toBe(MAX_PAYLOAD_BYTES);
    expect(() => payloadOf(`${most}x`)).toThrow(
      "expected the payload to be at most 60000 bytes of JSON, got 60001: send it in parts, or send a reference to it",
    );
    expect(() => payloadOf("ä".repeat(30_000))).toThrow("got 60002");
  });
});

test("a batch decodes to the values that were encoded", () => {
  const text = batchText(7, ['{"a b":1}', '"two"']);
  const batch = readBatch(text);
  expect(batch).toEqual({ number: 7, count: 2, json: '[{"a b":1},"two"]' });
  expect(valuesOf(batch)).toEqual([{ "a b": 1 }, "two"]);
});

test.each(["", "garbage", "1 []", "1 -1 []", "1 0.5 [1]", "x 1 [1]", "1 2 [1]", "1 1 5", "1 1 {", "1 9999999 [1]"])(
  "a malformed batch, such as %j, is empty",
  (text) => {
    expect(valuesOf(readBatch(text))).toEqual([]);
  },
);

describe("the limits", () => {
  test("are 60,000 bytes, if a frame has space for them", () => {
    expect(boundsWithin(1024 * 1024, 3)).toEqual({ payloadBytes: 60_000, batchBytes: 60_000 });
    expect(boundsWithin(4096, 3)).toEqual({ payloadBytes: 3488, batchBytes: 3488 });
  });

  test("are a few datagrams, for more than one payload", () => {
    expect(boundsWithin(1024 * 1024, 3, 1_300)).toEqual({ payloadBytes: 60_000, batchBytes: 3_292 });
    expect(boundsWithin(1024 * 1024, 3, 64_900)).toEqual({ payloadBytes: 60_000, batchBytes: 60_000 });
  });
});
