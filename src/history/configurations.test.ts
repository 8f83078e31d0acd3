import { describe, expect, it } from "vitest";
import { random } from "../core/random.ts";
import { configurations } from "./configurations.ts";

const origin = (from: number, op: number, length: number) => ({ from, op, length });

describe("configurations", () => {
  it.each([0, 1, 3])("are the same only if barrier, state and all %i words are", (words) => {
    const known = configurations(words);
    const names = new Map<string, number>();
    const chance = random(words);
    for (let i = 0; i < 20_000; i++) {
      const [barrier, state] = [chance.below(20), chance.below(20)];
      const placed = Int32Array.from({ length: words }, () => chance.below(4) << 30);
      const name = `${barrier} ${state} ${placed}`;
      const added = known.add(barrier, state, placed, origin(-1, -1, 0));
      expect(added).toBe(names.has(name) ? -1 : names.size);
      if (added >= 0) names.set(name, added);
    }
    expect(known.size).toBe(names.size);
  });

  it("know how they were reached", () => {
    const known = configurations(0);
    const none = new Int32Array(0);
    const root = known.add(1, 0, none, origin(-1, -1, 0));
    const first = known.add(1, 1, none, origin(root, 7, 1));
    const second = known.add(2, 1, none, origin(first, 9, 2));
    expect(known.route(root)).toEqual([]);
    expect(known.route(second)).toEqual([7, 9]);
  });

  it("the longest before a barrier, one per state", () => {
    const known = configurations(1);
    const add = (barrier: number, state: number, length: number) =>
      known.add(barrier, state, Int32Array.of(length), origin(-1, -1, length));
    for (const [barrier, state, length] of [
      [5, 0, 1],
      [5, 1, 3],
      [5, 0, 2],
      [4, 2, 9],
      [5, 3, 1],
    ] as const)
      add(barrier, state, length);
    expect(known.longest(5, 2)).toEqual([1, 2]);
    expect(known.longest(5, 9)).toEqual([1, 2, 4]);
    expect(known.longest(7, 9)).toEqual([]);
  });
});
