import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { agreement, integrity, validity } from "../../src/protocols/multicast/family/properties.ts";
import { multicastWithWorkload } from "../../src/protocols/multicast/family/workload.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

const protocol = multicastWithWorkload(skeletonAlgorithm(), [integrity, validity, agreement]);
const send = (messages: number) => ({ type: "workload", body: { type: "send", messages } }) as const;
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
  it("all nodes deliver the message that node 0 sends", async () => {
    const { sim, log } = stage(3);
    sim.command(0, send(1));
    sim.run();
    expect(sim.verdict()).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/skeleton-algorithm-undisturbed.txt");
  });
});

describe("skeleton algorithm: cost", () => {
  it.each([1, 2, 3, 8, 64])("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(0, send(1));
    sim.run();
    expect(sim.messages.total).toBe(skeletonAlgorithm().costs[0]?.messages(nodes));
  });
});

describe("skeleton algorithm: guarantees", () => {
  it.each(range(50))("keeps integrity, validity and agreement with random delays, seed %i", (seed) => {
    const { sim } = stage(4, [1, 40], seed);
    for (const node of range(4)) sim.command(node, send(2));
    sim.run();
    expect(sim.verdict()).toEqual([]);
    expect(range(4).map((node) => sim.world.state(node).workload.delivered.length)).toEqual([8, 8, 8, 8]);
  });

  const system = {
    protocol,
    nodes: [0, 1, 2],
    network: "bag",
    timers: "free",
    begin: "idle",
    asks: (node: number) => (node < 2 ? [send(1)] : []),
  } as const;

  it("holds in every run of 3 nodes, two of them sending one message each", () => {
    expect(explore(system)).toMatchObject({ verdict: "holds", states: 49 });
  });

  it("violates agreement if a message is lost", () => {
    const { verdict, property } = explore({ ...system, losses: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "workload: agreement"]);
  });
});
