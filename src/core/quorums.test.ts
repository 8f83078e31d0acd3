import { describe, expect, it } from "vitest";
import { byzantineQuorum, majority, toleratedByzantine } from "./quorums.ts";

function subsets(nodes: number, size: number): number[][] {
  const all = Array.from({ length: 2 ** nodes }, (_, bits) =>
    Array.from({ length: nodes }, (_, node) => node).filter((node) => (bits >> node) & 1),
  );
  return all.filter((set) => set.length === size);
}

const intersecting = (sets: number[][]): boolean =>
  sets.every((set) => sets.every((other) => other.some((node) => set.includes(node))));

describe("quorums", () => {
  it.each([1, 2, 3, 4, 5, 6, 7])("any two majorities of %i nodes intersect, and smaller sets need not", (nodes) => {
    expect(intersecting(subsets(nodes, majority(nodes)))).toBe(true);
    if (majority(nodes) > 1) expect(intersecting(subsets(nodes, majority(nodes) - 1))).toBe(false);
  });

  it.each([4, 5, 6, 7])("any two Byzantine quorums of %i nodes intersect in more nodes than can be faulty", (nodes) => {
    const sets = subsets(nodes, byzantineQuorum(nodes));
    for (const a of sets)
      for (const b of sets)
        expect(a.filter((node) => b.includes(node)).length).toBeGreaterThan(toleratedByzantine(nodes));
  });

  it("N = 3f + 1 gives quorums of 2f + 1", () => {
    for (const f of [1, 2, 3]) expect(byzantineQuorum(3 * f + 1)).toBe(2 * f + 1);
  });

  it.each([0, -1, 1.5, Number.NaN])("rejects %d nodes", (nodes) => {
    expect(() => majority(nodes)).toThrow("expected the number of nodes to be a whole number > 0");
  });
});
