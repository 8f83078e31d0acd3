import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

const protocol = skeletonAlgorithm({ intervalMs: 100, maxMisses: 3 });
const range = (count: number): number[] => Array.from({ length: count }, (_, node) => node);

/** Starts nodes and logs the events that they emit. */
function stage(nodes: number, delayMs: number | readonly [number, number] = 10, seed = 1) {
  const log: string[] = [];
  const sim = simulation({
    protocol,
    nodes: range(nodes),
    seed,
    delayMs,
    trace: (entry) => entry.kind === "event" && log.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  return { sim, log };
}

describe("skeleton algorithm: the worked example", () => {
  it("suspects a crashed node, and restores it after its restart", async () => {
    const { sim, log } = stage(3);
    sim.run(250);
    sim.crash(2);
    sim.run(1_000);
    expect(sim.verdict()).toEqual([]);
    sim.start(2);
    sim.run(1_300);
    expect(sim.verdict()).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/skeleton-algorithm-crash.txt");
  });
});

describe("skeleton algorithm: cost", () => {
  it.each([2, 3, 8, 16])("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(nodes);
    sim.run(950); // Ten beats: the first one is sent at the start.
    expect(sim.messages.total).toBe(10 * (protocol.costs[0]?.messages(nodes) ?? 0));
  });
});

describe("skeleton algorithm: guarantees", () => {
  it.each(range(50))("is complete and accurate while the bound holds, seed %i", (seed) => {
    const { sim } = stage(4, [1, 50], seed);
    sim.run(1_000 + seed);
    sim.crash(3);
    sim.run(2_000);
    expect(sim.verdict()).toEqual([]);
  });

  it("is not accurate while a link is cut", () => {
    const { sim } = stage(3);
    sim.cut(0, 1);
    sim.run(1_000);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["eventual strong accuracy"]);
  });

  it("never throws in a run of 2 nodes with at most 4 timeouts", () => {
    const system = { protocol, nodes: [0, 1], network: "fifo", timers: "free", begin: "together" } as const;
    expect(explore({ ...system, maxTimeouts: 4, properties: [] })).toMatchObject({ verdict: "unknown", states: 395 });
  });
});
