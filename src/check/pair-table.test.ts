import fc from "fast-check";
import { expect, it } from "vitest";
import { PairTable } from "./state-store.ts";

it("is a map of pairs, also after it has grown many times", () => {
  const pair = fc.tuple(fc.nat(2 ** 31 - 1), fc.nat(2 ** 31 - 1));
  fc.assert(
    fc.property(fc.uniqueArray(pair, { maxLength: 500, selector: String }), (pairs) => {
      const table = new PairTable();
      for (const [a, b] of pairs) expect(table.get(a, b)).toBe(-1);
      for (const [i, [a, b]] of pairs.entries()) table.add(a, b, i);
      for (const [i, [a, b]] of pairs.entries()) expect(table.get(a, b)).toBe(i);
    }),
  );
  const table = new PairTable();
  for (let key = 0; key < 90_000; key++) table.add(key % 300, Math.floor(key / 300), key);
  const back = Array.from({ length: 90_000 }, (_, key) => table.get(key % 300, Math.floor(key / 300)));
  expect(back).toEqual([...back.keys()]);
});
