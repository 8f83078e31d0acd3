import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

const protocol = skeletonAlgorithm();
const propose = (node: number) => ({ type: "propose", value: `from ${node}` }) as const;
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
  it("all nodes decide the value that node 1 proposes", async () => {
    const { sim, log } = stage(3);
    sim.command(1, propose(1));
    sim.run();
    expect(sim.verdict()).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/skeleton-algorithm-undisturbed.txt");
  });
});

describe("skeleton algorithm: cost", () => {
  it.each([2, 3, 8, 64])("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(nodes - 1, propose(nodes - 1));
    sim.run();
    expect(sim.messages.total).toBe(protocol.costs[0]?.messages(nodes));
  });
});

describe("skeleton algorithm: guarantees", () => {
  it.each(range(50))("keeps agreement and termination with random delays, seed %i", (seed) => {
    const { sim } = stage(5, [1, 40], seed);
    for (const node of range(5)) sim.command(node, propose(node));
    sim.run();
    expect(sim.verdict()).toEqual([]);
    const decided = range(5).map((node) => sim.world.state(node).decided);
    expect(range(5).map((node) => `from ${node}`)).toContain(decided[0]);
  });

  const system = {
    protocol,
    nodes: [0, 1, 2],
    network: "bag",
    timers: "free",
    begin: "idle",
    asks: (node: number) => [propose(node)],
  } as const;

  it("holds in every run of 3 nodes that propose once each", () => {
    expect(explore(system)).toMatchObject({ verdict: "holds", states: 109 });
  });

  it("violates termination if a node crashes", () => {
    const { verdict, property } = explore({ ...system, crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "termination"]);
  });
});
