import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonical, clone, equal, hash, verbatim } from "./plain.ts";

const plainData = fc.jsonValue();

/** Returns the same data with every object's keys in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]) => [key, reversed(item)])
      .reverse(),
  );
}

describe("plain data", () => {
  it("clones are equal and share nothing", () => {
    fc.assert(
      fc.property(plainData, (value) => {
        const copy = clone(value);
        expect(copy).toEqual(value);
        expect(equal(copy, value)).toBe(true);
        if (typeof value === "object" && value !== null) expect(copy).not.toBe(value);
      }),
    );
  });

  it("treats a key that names the prototype like any other key", () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    expect(clone(value)).toStrictEqual(value);
    expect(clone(value)).not.toHaveProperty("admin");
  });

  it("ignores the order of keys in equality, canonical text and hash", () => {
    fc.assert(
      fc.property(plainData, (value) => {
        expect(equal(value, reversed(value))).toBe(true);
        expect(hash(value)).toBe(hash(reversed(value)));
      }),
    );
  });

  it("keeps the order of keys in verbatim text, except for numeric keys, which JavaScript sorts", () => {
    expect(verbatim({ b: [{ d: 1, c: 2 }], a: null })).toBe('{"b":[{"d":1,"c":2}],"a":null}');
    expect(verbatim({ 2: "b", 1: "a" })).toBe(verbatim({ 1: "a", 2: "b" }));
  });

  it("equal canonical text means equal values", () => {
    fc.assert(
      fc.property(plainData, plainData, (a, b) => {
        let same = true;
        try {
          expect(a).toStrictEqual(b);
        } catch {
          same = false;
        }
        expect(canonical(a) === canonical(b)).toBe(same);
        expect(equal(a, b)).toBe(same);
      }),
    );
  });

  it.each([
    [[1, 2], [12]],
    [{ a: "1" }, { a: 1 }],
    [null, "null"],
    [0, -0],
    [[[]], []],
    [{}, []],
    [{ a: undefined }, {}],
    [{ a: undefined }, { b: undefined }],
    [JSON.parse('{"__proto__":{}}'), { a: {} }],
  ])("distinguishes %j from %j", (a, b) => {
    expect(equal(a, b)).toBe(false);
    expect(hash(a)).not.toBe(hash(b));
  });

  it("hashes 100,000 neighboring states without a collision", () => {
    const seen = new Set(Array.from({ length: 100_000 }, (_, i) => hash({ term: i, log: [i % 7] })));
    expect(seen.size).toBe(100_000);
  });

  it.each([new Map(), new Date(0), () => 0, Symbol("x"), 1n, new (class Secret {})()])(
    "rejects anything that is not plain data",
    (value) => {
      const refusal = "expected state, messages and records to be plain data";
      expect(() => clone({ value })).toThrow(refusal);
      expect(() => equal({ value }, { value })).toThrow(refusal);
    },
  );
});
