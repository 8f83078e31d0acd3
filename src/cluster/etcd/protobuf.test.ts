import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bool, bytes, code, id, list, type Message, message, number, part, string, unsignedId } from "./protobuf.ts";

const inner = message({ name: string(1), codes: list(code(2, ["NO", "YES"])) });
const outer = message({
  key: bytes(1),
  count: number(2),
  lease: id(3),
  member: unsignedId(4),
  isSo: bool(5),
  inner: part(6, () => inner),
  more: list(part(7, () => inner)),
  texts: list(string(64)),
});
const nothing = outer.decode(new Uint8Array());
const hex = (given: Uint8Array): string => Buffer.from(given).toString("hex");
const from = (given: string): Uint8Array => Buffer.from(given.replaceAll(" ", ""), "hex");

describe("Protocol Buffers messages", () => {
  /** These are the examples from https://protobuf.dev/programming-guides/encoding/. */
  it("are encoded as in the guide", () => {
    const test1 = message({ a: number(1) });
    expect(hex(test1.encode({ a: 150 }))).toBe("089601");
    expect(hex(message({ b: string(2) }).encode({ b: "testing" }))).toBe("120774657374696e67");
    expect(hex(message({ c: part(3, () => test1) }).encode({ c: { a: 150 } }))).toBe("1a03089601");
    expect(message({ e: list(number(5)) }).decode(from("2801 2802 2803"))).toEqual({ e: [1, 2, 3] });
    expect(message({ f: list(number(6)) }).decode(from("3206 03 8e02 9ea705"))).toEqual({ f: [3, 270, 86942] });
    expect(hex(test1.encode({ a: -2 }))).toBe("08feffffffffffffffff01");
  });

  it("omit absent fields, and keep an empty nested message", () => {
    expect(nothing).toEqual({
      key: "",
      count: 0,
      lease: "0",
      member: "0",
      isSo: false,
      inner: null,
      more: [],
      texts: [],
    });
    expect(outer.encode(nothing)).toHaveLength(0);
    expect(outer.decode(outer.encode({ inner: {} })).inner).toEqual({ name: "", codes: [] });
  });

  it("decode to the encoded values", () => {
    const part = fc.record({ name: fc.string(), codes: fc.array(fc.nat()) });
    const any = fc.record({
      key: fc.uint8Array().map((given) => Buffer.from(given).toString("latin1")),
      count: fc.maxSafeInteger(),
      lease: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      member: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
      isSo: fc.boolean(),
      inner: fc.option(part),
      more: fc.array(part),
      texts: fc.array(fc.string()),
    });
    fc.assert(
      fc.property(any, (value) => {
        expect(outer.decode(outer.encode(value))).toEqual(value);
      }),
    );
  });

  it("may have unknown fields", () => {
    expect(
      message({ a: number(1) }).decode(from("0805 9206 02ffff 9906 0102030405060708 9d06 01020304 a006 07")),
    ).toEqual({
      a: 5,
    });
  });

  it.each([
    ["a truncated number", "0896"],
    ["a truncated string", "0a05 6162"],
    ["a number that is too long", `10 ${"ff".repeat(11)}`],
    ["a number where a string should be", "0801"],
    ["a string where a number should be", "1201 61"],
    ["a group", "0b"],
  ])("are rejected with %s", (_what, given) => expect(() => outer.decode(from(given))).toThrow(RangeError));

  it("are rejected without other effects if they are random bytes", () => {
    const tryIt = (given: Uint8Array): void => {
      try {
        outer.decode(given);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), tryIt));
  });

  it("nest at most 32 deep", () => {
    interface Nested {
      nested: Nested | null;
    }
    const nested: Message<Nested> = message({ nested: part(1, () => nested) }) as never;
    const deep = (depth: number): Nested | null => (depth === 0 ? null : { nested: deep(depth - 1) });
    expect(() => nested.decode(nested.encode(deep(33) as Nested))).not.toThrow();
    expect(() => nested.decode(nested.encode(deep(34) as Nested))).toThrow("32 deep");
  });
});
