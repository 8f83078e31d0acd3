import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { intoGroups, intoShape, type PartitionShape, type Separation } from "./partitions.ts";

const same = (node: number): number => node;
/** Whom each node reaches, itself included. */
const reach = (count: number, separation: Separation): number[][] =>
  Array.from({ length: count }, (_, from) =>
    Array.from({ length: count }, (_, to) => to).filter((to) => to === from || !separation(from, to)),
  );
const shaped = (count: number, shape: PartitionShape): number[][] => reach(count, intoShape(count, shape, same));

describe("partitions", () => {
  it("into groups: everybody reaches its own, and those in no group each other", () => {
    expect(reach(6, intoGroups(6, [[0, 3], [4]], same))).toEqual([
      [0, 3],
      [1, 2, 5],
      [1, 2, 5],
      [0, 3],
      [4],
      [1, 2, 5],
    ]);
  });

  it("one way", () => {
    expect(shaped(4, { shape: "one-way", from: [0, 1], to: [2, 3] })).toEqual([
      [0, 1],
      [0, 1],
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ]);
  });

  it("a bridge belongs to both halves", () => {
    expect(shaped(5, { shape: "bridge" })).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1, 2, 3, 4],
      [2, 3, 4],
      [2, 3, 4],
    ]);
    expect(shaped(5, { shape: "bridge", bridge: 0 })).toEqual([
      [0, 1, 2, 3, 4],
      [0, 1, 2],
      [0, 1, 2],
      [0, 3, 4],
      [0, 3, 4],
    ]);
  });

  it("a ring of majorities: everybody reaches a majority, both ways, no two the same, nobody everybody", () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 40 }), (count) => {
        const reached = shaped(count, { shape: "majority-ring" });
        for (const [node, others] of reached.entries()) {
          expect(others.length).toBeGreaterThan(count / 2);
          expect(others.length).toBeLessThan(count);
          for (const other of others) expect(reached[other]).toContain(node);
        }
        expect(new Set(reached.map(String)).size).toBe(count);
      }),
    );
  });

  it.each<[number, PartitionShape, string]>([
    [3, { shape: "majority-ring" }, "expected the nodes of a majority-ring to be at least 4, got 3"],
    [
      3,
      { shape: "star" } as unknown as PartitionShape,
      `expected the partition's shape to be one-way, bridge or majority-ring, got "star"`,
    ],
  ])("refuses, for %i nodes, %j", (count, shape, complaint) => {
    expect(() => intoShape(count, shape, same)).toThrow(complaint);
  });

  it("refuses groups with a node in common", () => {
    expect(() => intoGroups(3, [[0, 1], [1]], same)).toThrow("expected the groups to be without a node in common");
  });
});
