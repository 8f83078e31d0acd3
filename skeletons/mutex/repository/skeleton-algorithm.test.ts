import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  about,
  exploreUses,
  MESSAGE_MS,
  STAY_MS,
  shortestViolation,
  silent,
  stage,
  use,
} from "../../../test/protocols/mutex-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { skeletonAlgorithm } from "../skeleton-algorithm.ts";

describe("skeleton-algorithm: the worked example", () => {
  it("node 2 waits while node 1 is inside, and enters after it", async () => {
    const { sim, story, moments } = stage(skeletonAlgorithm(), [0, 1, 2]);
    sim.command(1, use(1));
    sim.run(25);
    sim.command(2, use(1));
    sim.run();
    expect(moments("entered")).toEqual([
      { node: 1, at: 2 * MESSAGE_MS },
      { node: 2, at: 2 * MESSAGE_MS + STAY_MS + 2 * MESSAGE_MS },
    ]);
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("../stories/skeleton-algorithm-one-waits.txt");
  });
});

describe("skeleton-algorithm: cost", () => {
  it.each(range(2, 64))("matches the formula for N = %i", (nodes) => {
    const { sim } = stage(skeletonAlgorithm(), range(0, nodes - 1));
    sim.command(nodes - 1, use(1));
    sim.run();
    expect(sim.messages.total).toBe(skeletonAlgorithm().costs[0]?.messages(nodes));
  });
});

describe("skeleton-algorithm: guarantees", () => {
  it("keeps ME1 and ME2 and growing tokens with random workloads and delays", () => {
    const demand = fc.array(fc.record({ node: fc.nat(4), at: fc.nat(200), entries: fc.integer({ min: 1, max: 3 }) }));
    fc.assert(
      fc.property(fc.nat(), demand, (seed, wishes) => {
        const { sim, moments } = stage(skeletonAlgorithm(), range(0, 4), { delayMs: [1, 40], seed });
        for (const { node, at, entries } of [...wishes].sort((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(entries));
        }
        sim.run();
        expect(sim.verdict()).toEqual([]);
        expect(moments("entered")).toHaveLength(wishes.reduce((sum, { entries }) => sum + entries, 0));
      }),
      { numRuns: 100 },
    );
  });

  it("ignores a repeated grant and a command out of turn", () => {
    const { sim } = stage(skeletonAlgorithm(), [0, 1, 2]);
    sim.command(1, use(1));
    sim.run(25);
    const states = () => JSON.stringify([0, 1].map((node) => sim.world.state(node)));
    const before = states();
    const { receive, command } = skeletonAlgorithm();
    const inside = sim.world.state(1).mutex;
    receive.grant(inside, 0, { type: "grant", token: 1 }, silent);
    command.enter(inside, { type: "enter" }, silent);
    command.exit(sim.world.state(0).mutex, { type: "exit" }, silent);
    expect(states()).toBe(before);
  });
});

describe("skeleton-algorithm: every run", () => {
  it.each([
    ["FIFO links", { network: "fifo" }, 130],
    ["links in any order", { network: "bag" }, 130],
  ] as const)("of 3 nodes that enter once each keeps ME1 and ME2 on %s", (_links, options, states) => {
    expect(exploreUses(skeletonAlgorithm(), 3, 1, options)).toMatchObject({ verdict: "holds", states });
  });

  it("violates ME2 if the coordinator crashes", () => {
    expect(shortestViolation(skeletonAlgorithm(), { crashes: 1 })).toEqual(["ME2 liveness", ["0 crash", "1 command"]]);
  });

  it("violates ME2 if a message is lost", () => {
    expect(shortestViolation(skeletonAlgorithm(), { losses: 1 })).toEqual([
      "ME2 liveness",
      ["1 command", "0 lose request from 1"],
    ]);
  });

  it("violates ME1 if the coordinator forgets its grants", () => {
    const forgetful = { crashes: 1, recoveries: 1 };
    const [property] = shortestViolation(skeletonAlgorithm(), {
      ...about(skeletonAlgorithm(), "ME1 safety"),
      ...forgetful,
    });
    expect(property).toBe("ME1 safety");
  });
});
