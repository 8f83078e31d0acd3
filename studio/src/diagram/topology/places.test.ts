import { describe, expect, test } from "vitest";
import type { ArrangedNode, Arrangement, Position, Topology } from "../../../../src/protocols/index.ts";
import { apart, centreOf, linksOf, placed } from "./places.ts";
import { wayAlongRing, wayBetween, waysOnTorus } from "./ways.ts";

const SIZE = { width: 700, height: 200 };

export function arrangement(topology: Topology, positions: readonly Position[]): Arrangement {
  const nodes = positions.map(
    (position, node): ArrangedNode => ({
      node,
      condition: "up",
      role: "",
      span: null,
      leader: null,
      heldBack: 0,
      position,
    }),
  );
  return { topology, nodes };
}

const many = (count: number, position: (node: number) => Position = () => ({})) =>
  Array.from({ length: count }, (_, node) => position(node));

/** Returns a full binary tree with the privilege at the root. */
const tree = (count: number) => many(count, (node) => ({ towards: node === 0 ? 0 : (node - 1) >> 1 }));

const cases: readonly (readonly [string, Arrangement])[] = [
  ["complete", arrangement("complete", many(9))],
  ["a ring", arrangement("ring", many(12))],
  ["voting sets", arrangement("quorums", many(7))],
  [
    "a star",
    arrangement(
      "star",
      many(6, () => ({ towards: 2 })),
    ),
  ],
  ["a tree", arrangement("tree", tree(9))],
  [
    "a line",
    arrangement(
      "tree",
      many(7, (node) => ({ towards: Math.max(0, node - 1) })),
    ),
  ],
  [
    "identifiers",
    arrangement(
      "identifier circle",
      many(10, (node) => ({ at: [0.25 + node / 1000] })),
    ),
  ],
];

describe.each(cases)("%s", (_name, shown) => {
  const { places, radius } = placed(shown, SIZE);
  const all = [...places.values()];

  test("gives every node a place on the sheet", () => {
    expect(places.size).toBe(shown.nodes.length);
    for (const { x, y } of all) {
      expect(x).toBeGreaterThanOrEqual(radius);
      expect(x).toBeLessThanOrEqual(SIZE.width - radius);
      expect(y).toBeGreaterThanOrEqual(radius);
      expect(y).toBeLessThanOrEqual(SIZE.height - radius);
    }
  });

  test("lets no node cover another", () => {
    for (const [index, a] of all.entries())
      for (const b of all.slice(index + 1)) expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(1.9 * radius);
  });
});

test("places a ring clockwise from the top, in the order of its nodes", () => {
  const { places } = placed(arrangement("ring", many(4)), SIZE);
  const [top, right, bottom, left] = [0, 1, 2, 3].map((node) => places.get(node) ?? { x: 0, y: 0 });
  expect(top?.y).toBeLessThan(right?.y ?? 0);
  expect(right?.x).toBeGreaterThan(left?.x ?? 0);
  expect(bottom?.y).toBeGreaterThan(right?.y ?? 0);
});

test("keeps a tree in place while the privilege moves through it", () => {
  const atRoot = placed(arrangement("tree", tree(7)), SIZE).places;
  // With the privilege at node 5, all nodes on the way to it point in the opposite direction.
  const moved = tree(7).map(
    (position, node) => ({ 0: { towards: 2 }, 2: { towards: 5 }, 5: { towards: 5 } })[node] ?? position,
  );
  expect(placed(arrangement("tree", moved), SIZE).places).toEqual(atRoot);
  expect(linksOf(arrangement("tree", moved).nodes)).toHaveLength(6);
});

test("puts the most referenced node into the middle of a star, or the first one without references", () => {
  expect(centreOf(arrangement("star", [{ towards: 1 }, { towards: 1 }, { towards: 2 }]).nodes)).toBe(1);
  expect(centreOf(arrangement("star", many(3)).nodes)).toBe(0);
});

test("places nodes of a plane at their coordinates, or all in a circle without coordinates", () => {
  const at = [
    [0.1, 0.2],
    [0.9, 0.8],
    [0.5, 0.5],
  ] as const;
  const { places, ground } = placed(
    arrangement(
      "plane",
      at.map((own) => ({ at: own })),
    ),
    SIZE,
  );
  expect(ground?.kind).toBe("box");
  expect(places.get(2)).toEqual({ x: 350, y: 100 });
  expect(placed(arrangement("plane", many(3)), SIZE).ground?.kind).toBe("ellipse");
});

test("moves shares of a circle apart, also across its beginning", () => {
  const moved = apart([0, 0.01, 0.99], 0.1);
  const [a = 0, b = 0, c = 0] = moved;
  expect(b - a).toBeGreaterThan(0.095);
  expect(1 + a - c).toBeGreaterThan(0.095);
});

test("ends lines before the nodes; on a torus they leave at one edge and return at the opposite one", () => {
  const ring = placed(arrangement("ring", many(5)), SIZE);
  expect(wayAlongRing(ring, 0, 1)?.path).toMatch(/^M.*A.* 0 0 1 /);
  expect(wayAlongRing(ring, 1, 0)?.path).toMatch(/^M.*A.* 0 1 1 /);
  expect(wayBetween(ring, 0, 0)).toBeNull();
  const plane = placed(arrangement("plane", [{ at: [0.05, 0.5] }, { at: [0.95, 0.4] }, { at: [0.3, 0.6] }]), SIZE);
  expect(waysOnTorus(plane, 0, 1)).toHaveLength(2);
  expect(waysOnTorus(plane, 0, 2)).toHaveLength(1);
});
