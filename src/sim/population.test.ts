import { describe, expect, it } from "vitest";
import { peersOf } from "./population.ts";

const ids = (count: number): number[] => Array.from({ length: count }, (_, i) => 2 * i);

describe("peers", () => {
  it.each([1, 3, 5_000])("of %i nodes are all other nodes, in order", (count) => {
    for (const place of [0, count >> 1, count - 1]) {
      const peers = peersOf(ids(count), place);
      const wanted = ids(count).filter((_, i) => i !== place);
      expect(peers.length).toBe(count - 1);
      expect([...peers]).toEqual(wanted);
      expect(peers.filter((peer) => peer > 4)).toEqual(wanted.filter((peer) => peer > 4));
      expect(peers.indexOf(2 * count - 2)).toBe(wanted.indexOf(2 * count - 2));
      expect(peers.at(-1)).toBe(wanted.at(-1));
      expect(peers.slice(0, 3)).toEqual(wanted.slice(0, 3));
      expect(peers[count]).toBeUndefined();
      for (const id of [-1, 0, 1, place * 2, 2 * count - 2, 2 * count])
        expect(peers.includes(id)).toBe(wanted.includes(id));
      expect(Array.isArray(peers)).toBe(true);
      expect(JSON.stringify(peers)).toBe(JSON.stringify(wanted));
    }
  });
});
