import fc from "fast-check";
import { expect, it } from "vitest";
import { Chunk, isSameChunk, reviveChunk } from "./chunk.ts";
import { canonical, clone, equal, hash } from "./plain.ts";
import { chunk, problem } from "./shape.ts";

const bytes = fc.uint8Array({ maxLength: 20_000 });

it("treats chunks as equal if and only if they have the same bytes, wherever the bytes are stored", () => {
  fc.assert(
    fc.property(bytes, bytes, (left, right) => {
      const [one, same, other] = [new Chunk(left), Chunk.stored(left.length, () => left), new Chunk(right)];
      expect(isSameChunk(one, same)).toBe(true);
      expect(equal({ of: [one] }, { of: [same] })).toBe(true);
      expect(canonical([one])).toBe(canonical([same]));
      expect(hash([one])).toBe(hash([same]));
      const isSame = Buffer.compare(left, right) === 0;
      expect(isSameChunk(one, other)).toBe(isSame);
      expect(equal(one, other)).toBe(isSame);
      expect(canonical(one) === canonical(other)).toBe(isSame);
    }),
  );
});

it("is not equal to any text, list or object", () => {
  const one = Chunk.of("abc");
  for (const other of ["abc", [97, 98, 99], {}, null, canonical(one)]) {
    expect(equal(one, other)).toBe(false);
    expect(canonical(one)).not.toBe(canonical(other));
  }
});

it("shares a chunk between copies of a state, since chunks are immutable", () => {
  const state = { parts: [Chunk.of("one")] };
  expect(clone(state).parts[0]).toBe(state.parts[0]);
});

it("survives JSON, as does data that only looks like a chunk", () => {
  fc.assert(
    fc.property(bytes, (given) => {
      const { part } = JSON.parse(JSON.stringify({ part: new Chunk(given) }), reviveChunk) as { part: Chunk };
      expect(part).toBeInstanceOf(Chunk);
      expect([...part.bytes]).toEqual([...given]);
    }),
  );
  for (const other of [{ $chunk: 1 }, { $chunk: "YQ==", more: 1 }, { chunk: "YQ==" }])
    expect(JSON.parse(JSON.stringify(other), reviveChunk)).toEqual(other);
});

it("returns the text that it was made from", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "grapheme" }), fc.constant("\ufeffabc")), (text) => {
      expect(Chunk.of(text).text).toBe(text);
    }),
  );
});

it("reads stored bytes from their source on every access", () => {
  const one = Chunk.of("abc");
  let reads = 0;
  one.store(() => {
    reads += 1;
    return new Uint8Array([97, 98, 99]);
  });
  expect([one.text, one.text, one.length, reads]).toEqual(["abc", "abc", 3, 2]);
});

it("is bounded by its shape", () => {
  expect(problem(chunk(3), Chunk.of("abc"), "part")).toBeNull();
  expect(problem(chunk(2), Chunk.of("abc"), "part")).toContain("a chunk of at most 2 bytes");
  expect(problem(chunk(3), "abc", "part")).toContain("a chunk of at most 3 bytes");
});
