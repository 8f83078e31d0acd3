import { describe, expect, it } from "vitest";
import { electionStage, everyElection, rings } from "../../../../test/protocols/election-stage.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import type { Exploration, ExploreOptions } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type ChangRoberts, changRoberts } from "./chang-roberts.ts";

/**
 * Counts the messages of an election that these nodes call at the same time. Checks that all nodes follow the highest
 * node.
 */
function cost(ring: readonly NodeId[], callers: readonly NodeId[]): number {
  const { sim } = electionStage(changRoberts({ ring }), { nodes: ring });
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  expect(sim.verdict()).toEqual([]);
  for (const node of ring) expect(sim.world.state(node).elected).toBe(Math.max(...ring));
  return sim.messages.total;
}

describe("chang-roberts, the paper's: what it costs", () => {
  const [highest, after, descending, ascending] = changRoberts().costs;

  eachSize(
    2,
    64,
    "N = %i: 2N … 3N − 1 with one caller, and the exact cost for ascending and descending ids if all call at once",
    (nodes) => {
      const ring = range(0, nodes - 1);
      expect(cost(ring, [nodes - 1])).toBe(highest?.messages(nodes));
      expect(cost(ring, [0])).toBe(after?.messages(nodes));
      expect(cost(ring, ring)).toBe(ascending?.messages(nodes));
      expect(cost(ring.toReversed(), ring)).toBe(descending?.messages(nodes));
    },
  );

  it.each([2, 3, 4, 5])("N = %i: on every ring, N·H(N) + N on average if all call at once", (nodes) => {
    const all = rings(nodes).map((ring) => cost(ring, ring));
    const harmonic = range(1, nodes).reduce((sum, k) => sum + 1 / k, 0);
    expect(all.reduce((sum, each) => sum + each, 0) / all.length).toBeCloseTo(nodes * harmonic + nodes, 9);
  });
});

/** Explores every run. Each node calls once, at any time. */
const everyRun = (ring: readonly NodeId[], options: Partial<ExploreOptions<ChangRoberts>> = {}) =>
  everyElection(changRoberts({ ring }), ring, options);

const shown = ({ verdict, property, path }: Exploration<ChangRoberts>) => [verdict, property?.name, path.length];

describe("chang-roberts, the paper's: every run", () => {
  it.each([
    [[0, 1, 2], 188],
    [[2, 1, 0], 206],
    [[3, 1, 2, 0], 1_309],
  ] as const)("on the ring %j, where each calls once, keeps E1 and E2", (ring, states) => {
    expect(everyRun(ring)).toMatchObject({ verdict: "holds", states });
  });

  it("on unordered links an announcement overtakes a candidate, and a node stays a participant forever: E2", () => {
    expect(shown(everyRun([0, 1, 2], { network: "bag" }))).toEqual(["violated", "E2 liveness", 9]);
  });

  it("E2 is violated by a crash", () => {
    expect(shown(everyRun([0, 1, 2], { crashes: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });

  it("E2 is violated by a lost message", () => {
    expect(shown(everyRun([0, 1, 2], { losses: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });
});

describe("chang-roberts, the paper's: invalid options", () => {
  it("rejects a ring that does not list every node once", () => {
    expect(() => changRoberts({ ring: [0, 1, 1] }).init(1, [0])).toThrow(
      "expected chang-roberts.ring to be every node once",
    );
  });
});
