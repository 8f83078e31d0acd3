import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { mutexWithWorkload } from "../../src/protocols/mutex/family/workload.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

const protocol = mutexWithWorkload(skeletonAlgorithm, { workload: { stayMs: 30 } });
const use = { type: "workload", body: { type: "use", entries: 1 } } as const;
const range = (count: number): number[] => Array.from({ length: count }, (_, node) => node);

/** Creates a simulation of idle nodes with an empty log. */
function stage(nodes: number, delayMs: number | readonly [number, number] = 10, seed = 1) {
  const log: string[] = [];
  const sim = simulation({
    protocol,
    nodes: range(nodes),
    seed,
    delayMs,
    trace: (entry) => log.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.wake(node);
  log.length = 0;
  return { sim, log };
}

describe("skeleton algorithm: the worked example", () => {
  it("node 2 waits while node 1 is inside, and enters after it", async () => {
    const { sim, log } = stage(3);
    sim.command(1, use);
    sim.run(25);
    sim.command(2, use);
    sim.run();
    expect(sim.violations).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/skeleton-algorithm-one-waits.txt");
  });
});

describe("skeleton algorithm: cost", () => {
  it.each([2, 3, 8, 64])("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(nodes - 1, use);
    sim.run();
    expect(sim.messages.total).toBe(skeletonAlgorithm().costs[0]?.messages(nodes));
  });
});

describe("skeleton algorithm: guarantees", () => {
  it.each(range(50))("keeps ME1 and ME2 with random delays, seed %i", (seed) => {
    const { sim } = stage(5, [1, 40], seed);
    for (const node of range(5)) sim.command(node, use);
    sim.run();
    expect(sim.verdict()).toEqual([]);
    expect(range(5).map((node) => sim.world.state(node).workload.entries)).toEqual([1, 1, 1, 1, 1]);
  });

  const system = {
    protocol,
    nodes: [0, 1, 2],
    network: "bag",
    timers: "free",
    begin: "idle",
    asks: () => [use],
  } as const;

  it("holds in every run of 3 nodes that enter once each", () => {
    expect(explore(system)).toMatchObject({ verdict: "holds", states: 130 });
  });

  it("violates ME2 if a node crashes", () => {
    const { verdict, property } = explore({ ...system, crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
  });
});
