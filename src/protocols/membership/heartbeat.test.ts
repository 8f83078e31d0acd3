import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NodeId } from "../../core/protocol.ts";
import { type Simulation, simulation } from "../../sim/simulation.ts";
import { logLine } from "../../trace/log.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "./heartbeat.ts";

const options: HeartbeatOptions = { intervalMs: 100, minMisses: 3, maxMisses: 6, calmBeats: 20 };

function stage(nodes: number, delayMs: number | readonly [number, number] = 5, seed = 1) {
  const story: string[] = [];
  const sim = simulation<Heartbeat>({
    protocol: heartbeat(options),
    nodes: Array.from({ length: nodes }, (_, i) => i),
    seed,
    delayMs,
    trace: (entry) => entry.kind === "event" && story.push(logLine(entry)),
  });
  for (let node = 0; node < nodes; node++) sim.start(node);
  return { sim, story };
}

const suspects = (sim: Simulation<Heartbeat>, node: NodeId): NodeId[] =>
  Object.entries(sim.world.state(node).peers)
    .filter(([, watch]) => watch.status === "suspected")
    .map(([peer]) => Number(peer));

describe("heartbeat", () => {
  it("suspects a crashed node and restores it when it recovers", async () => {
    const { sim, story } = stage(3);
    sim.run(250);
    sim.crash(2);
    sim.run(1_000);
    expect(suspects(sim, 0)).toEqual([2]);
    sim.start(2);
    sim.run(1_300);
    expect(suspects(sim, 0)).toEqual([]);
    expect(sim.verdict()).toEqual([]);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("stories/heartbeat-crash-and-recovery.txt");
  });

  it("suspects a node at once when it announces its departure, and restores it when it returns", () => {
    const { sim } = stage(3);
    sim.run(250);
    sim.command(2, { type: "leave" });
    sim.run(256);
    expect([suspects(sim, 0), suspects(sim, 1)]).toEqual([[2], [2]]);
    sim.crash(2);
    sim.start(2);
    sim.run(1_300);
    expect(suspects(sim, 0)).toEqual([]);
    expect(sim.verdict()).toEqual([]);
  });

  it("strong completeness: all nodes suspect a crash within maxMisses + 1 heartbeats", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 999 }), (seed, crashAt) => {
        const { sim } = stage(4, [1, 50], seed);
        sim.run(1_000 + crashAt);
        sim.crash(3);
        sim.run(1_000 + crashAt + (options.maxMisses + 1) * options.intervalMs + 50);
        for (const node of [0, 1, 2]) expect(suspects(sim, node)).toEqual([3]);
        expect(sim.verdict()).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  it("eventual strong accuracy: suspicions end once maxMisses exceeds the bound on delay", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        // Temporarily cut links cause false suspicions. After they are restored, no node is suspected.
        const { sim } = stage(4, [1, 90], seed);
        sim.run(500);
        sim.cut(0, 1);
        sim.cut(2, 1);
        sim.run(1_500);
        expect(suspects(sim, 1)).toEqual([0, 2]);
        sim.mend(0, 1);
        sim.mend(2, 1);
        sim.run(3_000);
        expect(sim.verdict()).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  it("is not accurate while the bound is violated: an alive node is suspected", () => {
    const { sim } = stage(3);
    sim.cut(0, 1);
    sim.run(1_000);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["eventual strong accuracy"]);
  });

  it("a mistake raises the tolerance, a restart does not, and a calm stretch lowers it again", () => {
    const { sim } = stage(2);
    const tolerated = () => sim.world.state(0).peers[1]?.tolerated;
    sim.run(500);
    sim.cut(1, 0);
    sim.run(1_200);
    sim.mend(1, 0);
    sim.run(1_400);
    expect(tolerated()).toBe(options.minMisses + 1);
    sim.crash(1);
    sim.run(2_400);
    sim.start(1);
    sim.run(2_600);
    expect(tolerated()).toBe(options.minMisses + 1);
    sim.run(2_600 + (options.calmBeats + 2) * options.intervalMs);
    expect(tolerated()).toBe(options.minMisses);
  });

  it("accepts another part's report of a crash, and the node's own heartbeat against it", () => {
    const { sim } = stage(2);
    sim.run(450);
    sim.command(0, { type: "suspect", node: 1 });
    expect(suspects(sim, 0)).toEqual([1]);
    sim.run(600);
    expect(suspects(sim, 0)).toEqual([]);
  });

  it("costs N(N − 1) messages per heartbeat", () => {
    for (const nodes of [2, 3, 5, 16]) {
      const { sim } = stage(nodes);
      sim.run(950);
      expect(sim.messages.total).toBe(10 * (heartbeat().costs[0]?.messages(nodes) ?? 0));
    }
  });
});
