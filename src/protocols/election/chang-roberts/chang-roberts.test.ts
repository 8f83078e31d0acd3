import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { eachSize } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { type ChangRoberts, changRoberts } from "./chang-roberts.ts";

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

/** Every ring of N nodes. A ring has no beginning, so the highest may as well stand first. */
const rings = (nodes: number): number[][] => permutations(range(0, nodes - 2)).map((rest) => [nodes - 1, ...rest]);

/** How many messages an election takes that these callers call at once, and that all follow the highest. */
function cost(ring: readonly NodeId[], callers: readonly NodeId[]): number {
  const sim = simulation<ChangRoberts>({ protocol: changRoberts({ ring }), nodes: ring, seed: 1, delayMs: 10 });
  for (const node of ring) sim.wake(node);
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  expect(sim.verdict()).toEqual([]);
  for (const node of ring) expect(sim.world.state(node).elected).toBe(Math.max(...ring));
  return sim.messages.total;
}

describe("chang-roberts, the paper's: what it costs", () => {
  const [highest, after, descending, ascending] = changRoberts().costs;

  eachSize(2, 64, "N = %i: 2N … 3N − 1 with one caller; all at once as ids stand", (nodes) => {
    const ring = range(0, nodes - 1);
    expect(cost(ring, [nodes - 1])).toBe(highest?.messages(nodes));
    expect(cost(ring, [0])).toBe(after?.messages(nodes));
    expect(cost(ring, ring)).toBe(ascending?.messages(nodes));
    expect(cost(ring.toReversed(), ring)).toBe(descending?.messages(nodes));
  });

  it.each([2, 3, 4, 5])("N = %i: on every ring, N·H(N) + N in the mean if all call at once", (nodes) => {
    const all = rings(nodes).map((ring) => cost(ring, ring));
    const harmonic = range(1, nodes).reduce((sum, k) => sum + 1 / k, 0);
    expect(all.reduce((sum, each) => sum + each, 0) / all.length).toBeCloseTo(nodes * harmonic + nodes, 9);
  });
});

/** Each node calls once, whenever it likes. */
const everyRun = (ring: readonly NodeId[], options: Partial<ExploreOptions<ChangRoberts>> = {}) =>
  reaching(
    explore<ChangRoberts>({
      protocol: changRoberts({ ring }),
      nodes: ring.toSorted((a, b) => a - b),
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: () => [{ type: "call" }],
      ...options,
    }),
    "elected",
  );

const shown = ({ verdict, property, path }: Exploration<ChangRoberts>) => [verdict, property?.name, path.length];

describe("chang-roberts, the paper's: every run", () => {
  it.each([
    [[0, 1, 2], 188],
    [[2, 1, 0], 206],
    [[3, 1, 2, 0], 1_309],
  ] as const)("on the ring %j, where each calls once, keeps E1 and E2", (ring, states) => {
    expect(everyRun(ring)).toMatchObject({ verdict: "holds", states });
  });

  it("over links without order an announcement overtakes a candidate, and a node is a participant for ever: E2", () => {
    expect(shown(everyRun([0, 1, 2], { network: "bag" }))).toEqual(["violated", "E2 liveness", 9]);
  });

  it("with a crash: E2 is violated", () => {
    expect(shown(everyRun([0, 1, 2], { crashes: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });

  it("with a lost message: E2 is violated", () => {
    expect(shown(everyRun([0, 1, 2], { losses: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });
});

describe("chang-roberts, the paper's: what it refuses", () => {
  it("a ring that does not have every node once", () => {
    expect(() => changRoberts({ ring: [0, 1, 1] }).init(1, [0])).toThrow(
      "expected chang-roberts.ring to be every node once",
    );
  });

  it("options that it has not", () => {
    expect(() => changRoberts({ ranks: [] } as never)).toThrow("expected chang-roberts.ranks to be absent");
  });
});
