import fc from "fast-check";
import { expect, it } from "vitest";
import { Packing } from "./state-store.ts";

/** The greatest values of up to twelve components, and tuples of values up to these. */
const packed = fc
  .array(fc.oneof(fc.nat(3), fc.nat(300), fc.nat(2 ** 31 - 1)), { minLength: 1, maxLength: 12 })
  .chain((most) =>
    fc.tuple(fc.constant(most), fc.array(fc.tuple(...most.map((max) => fc.nat(max))), { minLength: 2 })),
  );

it("packs tuples next to each other, gives them back, and changes one component alone", () => {
  fc.assert(
    fc.property(packed, fc.nat(), ([most, tuples], which) => {
      const packing = new Packing(most);
      const words = new Int32Array(tuples.length * packing.words).fill(-1);
      for (const [i, tuple] of tuples.entries()) packing.pack(Int32Array.from(tuple), words, i * packing.words);
      const back = new Int32Array(most.length);
      const k = which % most.length;
      const [first, second] = tuples as [number[], number[]];
      packing.change(words, 0, k, first[k] as number, second[k] as number);
      first[k] = second[k] as number;
      for (const [i, tuple] of tuples.entries()) {
        packing.unpack(words, i * packing.words, back);
        expect([...back]).toEqual(tuple);
        expect(packing.get(words, i * packing.words, k)).toBe(tuple[k]);
      }
    }),
  );
});

it("has room for what it was made for, and uses spare bits where room is scarcest", () => {
  fc.assert(
    fc.property(packed, ([most]) => {
      const packing = new Packing(most);
      expect(packing.hasRoomFor(Int32Array.from(most))).toBe(true);
      for (const [k, max] of most.entries()) expect(packing.room(k)).toBeGreaterThanOrEqual(max);
    }),
  );
  // Two components share 32 bits; the greater one needs 20 of them.
  const packing = new Packing([3, 1_000_000]);
  expect([packing.words, packing.room(0) < packing.room(1), packing.room(1) > 2 ** 20]).toEqual([1, true, true]);
});
