import { describe, expect, it } from "vitest";
import {
  expectEverybodyServed,
  exploreUses,
  MESSAGE_MS,
  STAY_MS,
  stage,
  use,
} from "../../../../test/protocols/mutex-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { walk } from "../../../check/search/walks.ts";
import { systemFor } from "../../../check/suite.ts";
import { maekawaSanders } from "./maekawa-sanders.ts";

describe("maekawa-sanders: the worked example of the catalogue", () => {
  it("three nodes make requests at once and enter one after the other: votes are yielded to the earlier request", async () => {
    const { sim, story, moments } = stage(maekawaSanders(), [1, 2, 3]);
    for (const node of [1, 2, 3]) sim.command(node, use(1));
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual([2, 1, 3]);
    expect(sim.verdict()).toEqual([]);
    await expect(story()).toMatchFileSnapshot("../stories/maekawa-sanders-three-at-once.txt");
  });
});

describe("maekawa-sanders: what it costs", () => {
  it.each([3, 4, 7, 9, 13, 16, 21, 25, 31, 49, 57, 64])("N = %i: 3(K − 1) messages without rivals", (nodes) => {
    const { sim } = stage(maekawaSanders(), range(0, nodes - 1));
    sim.command(0, use(1));
    sim.run();
    const others = sim.world.state(0).mutex.voters.length - 1;
    expect(sim.messages.byType).toEqual({ request: others, vote: others, release: others });
    expect(sim.messages.total).toBe(maekawaSanders().costs[0]?.messages(nodes));
  });

  it.each([3, 7, 9, 13, 16])(
    "N = %i: from 3(K − 1) to 5(K − 1) messages per entry when all nodes want to enter",
    (nodes) => {
      const { sim, moments } = stage(maekawaSanders(), range(0, nodes - 1), { delayMs: [1, 20], seed: nodes });
      for (const node of range(0, nodes - 1)) sim.command(node, use(5));
      sim.run();
      expect(moments("entered")).toHaveLength(5 * nodes);
      const others = sim.world.state(0).mutex.voters.length - 1;
      const perEntry = sim.messages.total / (5 * nodes);
      expect(perEntry).toBeGreaterThanOrEqual(3 * others);
      expect(perEntry).toBeLessThanOrEqual(5 * others);
    },
  );

  it("client delay is 2 message times, hand-over 2", () => {
    const { sim, moments } = stage(maekawaSanders(), range(0, 6));
    sim.command(0, use(1));
    sim.run(25);
    sim.command(2, use(1)); // Both need the vote of node 3.
    sim.run();
    const first = 2 * MESSAGE_MS;
    expect(moments("entered").map(({ at }) => at)).toEqual([first, first + STAY_MS + 2 * MESSAGE_MS]);
  });
});

describe("maekawa-sanders: what it guarantees", () => {
  it.each([3, 7, 9])("ME1, ME2: %i nodes, any workloads, any delays: one at a time, and all are served", (nodes) => {
    expectEverybodyServed(nodes, (links) => stage(maekawaSanders(), range(0, nodes - 1), links));
  });

  it("explored: ME1, ME2 hold for 3 nodes, two entries each, and the tokens grow", { tags: ["long"] }, () => {
    expect(exploreUses(maekawaSanders(), 3, 2)).toMatchObject({ verdict: "holds", states: 146_396 });
  });

  it("the projective plane of 7, two entries each: random runs of the checker find no violation", () => {
    const system = systemFor({ protocol: "maekawa-sanders", nodes: range(0, 6), times: 2 });
    const found = walk({ ...system, strategy: "random", runs: 25, stepsPerRun: 1_000, seed: 1 });
    expect(found).toMatchObject({ verdict: "unknown", property: null, runs: 25 });
    expect(found.transitions).toBeGreaterThan(3_000);
  });

  it("the projective plane of 7, two entries each: runs with random delays find no violation", () => {
    let messages = 0;
    for (const seed of range(1, 100)) {
      const { sim, moments } = stage(maekawaSanders(), range(0, 6), { delayMs: [1, 40], seed });
      for (const node of range(0, 6)) sim.command(node, use(2));
      sim.run();
      expect(sim.verdict()).toEqual([]);
      expect(moments("entered")).toHaveLength(14);
      messages += sim.messages.total;
    }
    expect(messages).toBeGreaterThan(8_000);
  });

  it("explored: without Sanders' correction 4 nodes wait for each other forever, in 14 steps", () => {
    const { verdict, property, path } = exploreUses(maekawaSanders({ tellsDisplaced: false }), 4, 1);
    expect([verdict, property?.name, path.length]).toEqual(["violated", "ME2 liveness", 14]);
  });
});
