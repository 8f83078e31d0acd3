import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

const protocol = skeletonAlgorithm();
const call = { type: "call" } as const;
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
  it("elects node 3 when node 0 calls", async () => {
    const { sim, log } = stage(4);
    sim.command(0, call);
    sim.run();
    expect(sim.verdict()).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/skeleton-algorithm-undisturbed.txt");
  });
});

describe("skeleton algorithm: cost", () => {
  it.each([2, 3, 8, 64])("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(0, call);
    sim.run();
    expect(sim.messages.total).toBe(protocol.costs[0]?.messages(nodes));
  });
});

describe("skeleton algorithm: guarantees", () => {
  it.each(range(50))("keeps E1 and E2 with random delays and all nodes calling, seed %i", (seed) => {
    const { sim } = stage(5, [1, 40], seed);
    for (const node of range(5)) sim.command(node, call);
    sim.run();
    expect(sim.verdict()).toEqual([]);
    expect(new Set(range(5).map((node) => sim.world.state(node).leader))).toEqual(new Set([4]));
  });

  const system = {
    protocol,
    nodes: [0, 1, 2],
    network: "bag",
    timers: "free",
    begin: "idle",
    asks: () => [call],
  } as const;

  it("holds in every run of 3 nodes that call once each", () => {
    expect(explore(system)).toMatchObject({ verdict: "holds", states: 163 });
  });

  it("violates E2 if a message is lost", () => {
    const { verdict, property } = explore({ ...system, losses: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "E2 liveness"]);
  });
});
