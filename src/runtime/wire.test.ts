import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Chunk } from "../core/chunk.ts";
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { equal } from "../core/plain.ts";
import {
  boolean,
  chunk,
  evolving,
  list,
  natural,
  nullable,
  oneOf,
  problem,
  real,
  type ShapeNode,
  struct,
  text,
  UNKNOWN_VARIANT,
} from "../core/shape.ts";
import { codecOf, MalformedBytes, Reader, Writer } from "./wire.ts";

const CHOICES = ["red", "green", "blue"];

const fieldName = fc.constantFrom("a", "b", "ballot", "value", "ü");

/** Generates any shape that has a wire format, up to three levels deep. */
const { shape: anyShape } = fc.letrec<{ shape: ShapeNode }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<ShapeNode>(natural, real, boolean, oneOf(...CHOICES)),
    fc.nat(100).map((maxBytes) => text(maxBytes)),
    fc.nat(100).map((maxBytes) => chunk(maxBytes)),
    tie("shape").map((value): ShapeNode => ({ kind: "nullable", value })),
    // An item in a list must take up at least one byte.
    fc
      .tuple(tie("shape"), fc.nat(5))
      .map(([shape, maxItems]): ShapeNode => ({ kind: "list", items: nullable(shape), maxItems })),
    fc.tuple(tie("shape"), fc.nat(5)).map(([value, maxNodes]): ShapeNode => ({ kind: "perNode", value, maxNodes })),
    fc.dictionary(fieldName, tie("shape"), { maxKeys: 4 }).map((fields): ShapeNode => ({ kind: "struct", fields })),
    fc
      .dictionary(
        fc.constantFrom("prepare", "promise", "nack"),
        fc.dictionary(fieldName, tie("shape"), { maxKeys: 3 }),
        {
          minKeys: 1,
        },
      )
      .chain((variants) =>
        fc.constantFrom("variants" as const, "evolving" as const).map(
          (kind): ShapeNode => ({
            kind,
            variants: Object.fromEntries(
              Object.entries(variants).map(([type, fields]) => [type, { kind: "struct", fields }]),
            ),
          }),
        ),
      ),
  ),
}));

function anyOf(shape: ShapeNode): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case "natural":
      return fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, 127, 128, 2 ** 31, 2 ** 32, 2 ** 53 - 1));
    case "real":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case "boolean":
      return fc.boolean();
    case "text":
      return fc
        .string({ unit: "binary", maxLength: shape.maxBytes })
        .filter((value) => Buffer.byteLength(value) <= shape.maxBytes);
    case "chunk":
      return fc.uint8Array({ maxLength: shape.maxBytes }).map((bytes) => new Chunk(bytes));
    case "oneOf":
      return fc.constantFrom(...shape.values);
    case "nullable":
      return fc.option(anyOf(shape.value));
    case "list":
      return fc.array(anyOf(shape.items), { maxLength: shape.maxItems });
    case "perNode":
      return fc.dictionary(fc.maxSafeNat().map(String), anyOf(shape.value), {
        maxKeys: shape.maxNodes,
        noNullPrototype: true,
      });
    case "struct":
      return recordOf(shape.fields);
    case "variants":
    case "evolving":
      return fc.oneof(
        ...Object.entries(shape.variants).map(([type, variant]) =>
          recordOf(variant.kind === "struct" ? variant.fields : {}).map((fields) => ({ type, ...fields })),
        ),
      );
  }
}

const recordOf = (fields: Readonly<Record<string, ShapeNode>>): fc.Arbitrary<object> =>
  fc.record(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, anyOf(field)])));

const shapeAndValue = anyShape.chain((shape) => fc.tuple(fc.constant(shape), anyOf(shape)));

function encoded(shape: ShapeNode, value: unknown): Buffer {
  const into = new Writer(0);
  codecOf<unknown>(shape).write(value, into);
  return into.bytes();
}

const decoded = (shape: ShapeNode, bytes: Buffer): unknown => codecOf<unknown>(shape).read(new Reader(bytes));

/** Expects either a value that has the shape, or MalformedBytes. */
function expectSound(shape: ShapeNode, bytes: Buffer): void {
  let value: unknown;
  try {
    value = decoded(shape, bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedBytes);
    return;
  }
  expect(problem(shape, value, "value")).toBeNull();
}

const natural128 = Buffer.from([0x80, 0x01]);

describe("every value of every shape", () => {
  const title = "arrives as it was sent, and the reader stops where the writer did";
  test(title, () => arrives(300));
  test(`${title}: longer`, { tags: ["larger"] }, () => arrives(3_000));

  function arrives(numRuns: number): void {
    fc.assert(
      fc.property(shapeAndValue, ([shape, value]) => {
        const bytes = encoded(shape, value);
        const reader = new Reader(bytes);
        const read = codecOf(shape).read(reader);
        expect(read).toEqual(value);
        expect(equal(read, value)).toBe(true); // This includes the bytes of chunks.
        expect(reader.position).toBe(bytes.length);
      }),
      { numRuns },
    );
  }

  test("throws MalformedBytes if truncated", () => {
    fc.assert(
      fc.property(shapeAndValue, fc.nat(), ([shape, value], cut) => {
        const bytes = encoded(shape, value);
        fc.pre(bytes.length > 0);
        expect(() => decoded(shape, bytes.subarray(0, cut % bytes.length))).toThrow(MalformedBytes);
      }),
      { numRuns: 500 },
    );
  });

  test("decodes to a value of the shape or throws MalformedBytes if mutated", () => {
    const change = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(shapeAndValue, fc.array(change, { minLength: 1, maxLength: 4 }), ([shape, value], changes) => {
        const bytes = encoded(shape, value);
        for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
        expectSound(shape, bytes);
      }),
      { numRuns: 1_000 },
    );
  });

  test("arbitrary bytes decode to a value of the shape or throw MalformedBytes", () => {
    fc.assert(
      fc.property(anyShape, fc.uint8Array({ maxLength: 200 }), (shape, bytes) =>
        expectSound(shape, Buffer.from(bytes)),
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("limits of decoding", () => {
  const cases: [string, ShapeNode, number[]][] = [
    ["a number above 2^53 - 1", natural, [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]],
    ["a number of nine bytes", natural, [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]],
    ["a number with more bytes than it needs", natural, [0x81, 0x00]],
    ["a number that does not end", natural, [0x80]],
    ["a real that is not a number", real, [...Buffer.from(Float64Array.of(Number.NaN).buffer)]],
    ["a real that is infinite", real, [...Buffer.from(Float64Array.of(Number.NEGATIVE_INFINITY).buffer)]],
    ["half a real", real, [0, 0, 0, 0]],
    ["a boolean that is 2", boolean, [2]],
    ["a choice that does not exist", oneOf(...CHOICES), [3]],
    ["a nullable that is 2", nullable(natural), [2, 0]],
    ["a text over its limit", text(4), [5, ...Buffer.from("hello")]],
    ["a text behind its end", text(9), [5, ...Buffer.from("hell")]],
    ["a text with a byte that UTF-8 does not have", text(9), [2, 0x61, 0xff]],
    ["a text with a surrogate", text(9), [3, 0xed, 0xa0, 0x80]],
    ["a text with an overlong form", text(9), [2, 0xc0, 0x80]],
    ["a list over its limit", list(natural, 2), [3, 1, 1, 1]],
    ["a list of 2^53 - 1 items", list(natural, 2 ** 53), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1]],
    ["a message type that does not exist", { kind: "variants", variants: { ping: struct({}) } }, [1]],
    ["a message of no type", { kind: "variants", variants: {} }, [0]],
  ];
  test.each(cases)("rejects %s", (_what, shape, bytes) => {
    expect(() => decoded(shape, Buffer.from(bytes))).toThrow(MalformedBytes);
  });

  test("reads 2^53 - 1", () => {
    expect(decoded(natural, encoded(natural, Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("keeps a byte order mark in text", () => {
    expect(decoded(text(9), encoded(text(9), "\u{FEFF}ü"))).toBe("\u{FEFF}ü");
  });

  test("a reader stops at its own end, not at the end of its buffer", () => {
    expect(() => codecOf(natural).read(new Reader(natural128, 0, 1))).toThrow(MalformedBytes);
    expect(() => codecOf(text(9)).read(new Reader(Buffer.from([2, 0x61, 0x62]), 0, 2))).toThrow(MalformedBytes);
  });
});

describe("values that do not have the shape are not sent", () => {
  const cases: [string, ShapeNode, unknown][] = [
    ["a negative number", natural, -1],
    ["a fraction", natural, 0.5],
    ["a number above 2^53 - 1", natural, 2 ** 53],
    ["no number at all", natural, undefined],
    ["a real that is not a number", real, Number.NaN],
    ["a real that is a text", real, "1"],
    ["a boolean that is missing", boolean, undefined],
    ["a choice that does not exist", oneOf(...CHOICES), "grey"],
    ["a text over its limit in bytes, not in characters", text(3), "üü"],
    ["a short text over its limit", text(2), "abc"],
    ["a long text over its limit", text(99), "x".repeat(100)],
    ["a text that is missing", text(9), undefined],
    ["a list over its limit", list(natural, 1), [1, 2]],
    ["a message type that does not exist", { kind: "variants", variants: { ping: struct({}) } }, { type: "pong" }],
  ];
  test.each(cases)("%s is an InvariantViolation", (_what, shape, value) => {
    expect(() => encoded(shape, value)).toThrow(InvariantViolation);
  });

  test("half of a surrogate pair arrives as U+FFFD", () => {
    expect(decoded(text(9), encoded(text(9), "a\u{D800}"))).toBe("a\u{FFFD}");
  });
});

describe("rejects shapes without a wire format", () => {
  const many = Array.from({ length: 257 }, (_, i) => `v${i}`);
  test.each<[string, ShapeNode]>([
    ["more than 256 choices", { kind: "oneOf", values: many }],
    [
      "more than 256 message types",
      { kind: "variants", variants: Object.fromEntries(many.map((v) => [v, struct({})])) },
    ],
    ["a list of items that take no bytes", list(struct({ nothing: struct({}) }), 10)],
  ])("%s", (_what, shape) => {
    expect(() => codecOf(shape)).toThrow(UsageError);
  });

  test("256 choices fit", () => {
    const shape: ShapeNode = { kind: "oneOf", values: many.slice(0, 256) };
    expect(decoded(shape, encoded(shape, "v255"))).toBe("v255");
  });
});

describe("variants that differ between releases", () => {
  type Vote = { type: "vote"; for: number } | { type: "lead"; term: number } | { type: typeof UNKNOWN_VARIANT };
  const before = struct<{ body: Vote; after: string }>({
    body: evolving({ vote: { for: natural }, lead: { term: natural } }),
    after: text(10),
  });
  const later = struct<{ body: object; after: string }>({
    body: evolving({ yield: { to: natural }, lead: { term: natural }, vote: { for: natural, weight: natural } }),
    after: text(10),
  });

  test("are read if both releases know them, at any position in the list", () => {
    const value = { body: { type: "lead", term: 7 }, after: "and on" };
    expect(decoded(before, encoded(later, value))).toEqual(value);
    expect(decoded(later, encoded(before, value))).toEqual(value);
  });

  test.each([
    { type: "yield", to: 3 },
    { type: "vote", for: 1, weight: 2 },
  ])("are skipped if they are new or have other fields, and the rest is read: %o", (body) => {
    const unknown = { body: { type: UNKNOWN_VARIANT }, after: "and on" };
    expect(decoded(before, encoded(later, { body, after: "and on" }))).toEqual(unknown);
    expect(problem(before, unknown, "value")).toBeNull();
  });

  test("must have their declared length", () => {
    const whole = encoded(before, { body: { type: "lead", term: 7 }, after: "" });
    for (const [at, size] of [
      [7, 0],
      [7, 2],
      [4, 0xff],
    ] as const) {
      const bytes = Buffer.from(whole);
      bytes[at] = size;
      expect(() => decoded(before, bytes)).toThrow(MalformedBytes);
    }
    for (let end = 0; end < whole.length; end++)
      expect(() => decoded(before, whole.subarray(0, end))).toThrow(MalformedBytes);
  });
});
