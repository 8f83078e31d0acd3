import { describe, expect, it } from "vitest";
import { range } from "../../../../test/protocols/sizes.ts";
import { type VotingSets, votingSets, votingSetsProblem } from "./voting-sets.ts";

const size = (sets: VotingSets): number => sets[0]?.length ?? 0;
describe("voting sets", () => {
  const areSound = (most: number): void => {
    for (const nodes of range(1, most)) {
      const sets = votingSets(nodes);
      expect([nodes, votingSetsProblem(sets)]).toEqual([nodes, null]);
      expect(size(sets), String(nodes)).toBeLessThanOrEqual(2 * Math.ceil(Math.sqrt(nodes)) - 1 || 1);
    }
  };
  const title = "satisfy the four conditions for every number of nodes up to %i, with K ≤ 2⌈√N⌉ − 1";
  it.each([200])(title, areSound);
  it.each([1_000])(title, { tags: ["larger"] }, areSound);

  it.each([2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31])(
    "q = %i: the projective plane of q² + q + 1 nodes has K = q + 1",
    (order) => {
      const sets = votingSets(order * order + order + 1);
      expect(size(sets)).toBe(order + 1);
      expect(votingSetsProblem(sets)).toBeNull();
    },
  );

  it("of 3 nodes form the triangle, of 4 nodes have K = M = 3", () => {
    expect(votingSets(3)).toEqual([
      [0, 1],
      [1, 2],
      [0, 2],
    ]);
    expect(size(votingSets(4))).toBe(3);
  });

  it.each([4, 6, 9, 12, 16, 25, 30, 49, 64, 100])("N = %i: row and column of a grid", (nodes) => {
    const sets = votingSets(nodes, "grid");
    expect(votingSetsProblem(sets)).toBeNull();
    const columns = range(2, Math.floor(Math.sqrt(nodes))).findLast((width) => nodes % width === 0) as number;
    expect(size(sets)).toBe(columns + nodes / columns - 1);
  });

  it("the cyclic construction works if neither of the others exists", () => {
    for (const nodes of [2, 5, 11, 47, 211, 997]) expect(votingSetsProblem(votingSets(nodes, "cyclic"))).toBeNull();
  });

  it("reports the broken condition", () => {
    const sets: number[][] = [
      [0, 1],
      [1, 2],
      [0, 2],
    ];
    const with1 = (set: number[]): VotingSets => [sets[0] as number[], set, sets[2] as number[]];
    expect(votingSetsProblem(with1([0, 2]))).toBe("node 1 is not in its own set");
    expect(votingSetsProblem(with1([0, 1, 2]))).toBe("expected node 1's set to have 2 different members");
    expect(votingSetsProblem(with1([0, 1]))).toBe("expected node 0 to be in 2 sets, got 3");
    expect(votingSetsProblem([[0], [1]])).toBe("the sets of nodes 0 and 1 do not intersect");
    expect(votingSetsProblem([[0, 1], [0, 1], [2]])).toBe("the sets of nodes 0 and 2 do not intersect");
  });

  it("rejects numbers of nodes for which a construction does not exist", () => {
    expect(() => votingSets(0)).toThrow("expected the number of nodes to be a whole number from 1 to 10000, got 0");
    expect(() => votingSets(8, "plane")).toThrow("to be q² + q + 1 for a prime power q, got 8");
    expect(() => votingSets(43, "plane")).toThrow("to be q² + q + 1 for a prime power q, got 43"); // q = 6
    expect(() => votingSets(7, "grid")).toThrow("to be a product of two whole numbers > 1, got 7");
  });
});
