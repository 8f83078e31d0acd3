import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exploreUses, MESSAGE_MS, STAY_MS, stage, use } from "../../../test/protocols/mutex-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { mutexWithWorkload } from "./family/workload.ts";
import { maekawa } from "./maekawa.ts";
import { maekawaAsLectured } from "./variants/maekawa-as-lectured.ts";

describe("maekawa: the worked example of the catalogue", () => {
  it("three nodes make requests at once, each gets its own vote first, and all wait forever", async () => {
    const { sim, story, moments } = stage(maekawa(), [1, 2, 3]);
    for (const node of [1, 2, 3]) sim.command(node, use(1));
    sim.run();
    expect(moments("entered")).toEqual([]);
    expect(sim.world.alive.map((node) => sim.world.state(node).mutex.votes)).toEqual([[1], [2], [3]]);
    expect(sim.violations.map(({ property }) => property)).toEqual(["ME2 liveness"]);
    await expect(story()).toMatchFileSnapshot("stories/maekawa-deadlock.txt");
  });
});

describe("maekawa: what it costs", () => {
  it.each([3, 4, 7, 9, 13, 16, 21, 25, 31, 49, 57, 64])("N = %i: 3(K − 1) messages per entry", (nodes) => {
    const { sim } = stage(maekawa(), range(0, nodes - 1));
    sim.command(0, use(1));
    sim.run();
    const others = sim.world.state(0).mutex.voters.length - 1;
    expect(sim.messages.byType).toEqual({ request: others, vote: others, release: others });
    expect(sim.messages.total).toBe(maekawa().costs[0]?.messages(nodes));
  });

  it("client delay is 2 message times, hand-over 2", () => {
    const { sim, moments } = stage(maekawa(), range(0, 6));
    sim.command(0, use(1));
    sim.run(25);
    sim.command(2, use(1)); // Both need the vote of node 3.
    sim.run();
    const first = 2 * MESSAGE_MS;
    expect(moments("entered").map(({ at }) => at)).toEqual([first, first + STAY_MS + 2 * MESSAGE_MS]);
  });
});

describe("maekawa: what it guarantees", () => {
  it("ME1: any workloads, any delays: one at a time", () => {
    const demand = fc.array(fc.record({ node: fc.nat(6), at: fc.nat(200) }));
    fc.assert(
      fc.property(fc.nat(), demand, (seed, wishes) => {
        const { sim } = stage(maekawa(), range(0, 6), { delayMs: [1, 40], seed });
        for (const { node, at } of [...wishes].sort((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(1));
        }
        sim.run();
        expect(sim.violations.filter(({ property }) => property === "ME1 safety")).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it("explored: ME2 is violated; the shortest run has three requests and three votes, and no node enters", () => {
    const { verdict, property, path } = exploreUses(maekawa(), 3, 1);
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
    expect(path.map(({ move }) => move.kind).sort()).toEqual([
      ...Array(3).fill("command"),
      ...Array(3).fill("receive"),
    ]);
    expect(path.at(-1)?.states.map((state) => [state?.mutex.section, state?.mutex.votes])).toEqual([
      ["wanted", [0]],
      ["wanted", [1]],
      ["wanted", [2]],
    ]);
  });

  it("explored: ME1 holds for 3 nodes, two entries each, over unordered links", () => {
    const protocol = maekawa();
    const safe = { ...protocol, properties: protocol.properties.filter(({ name }) => name === "ME1 safety") };
    expect(exploreUses(safe, 3, 2, { network: "bag" })).toMatchObject({ verdict: "holds" });
  });

  it("tokens do not grow if a voter forgets the tokens that it has seen", () => {
    const properties = mutexWithWorkload(maekawa).properties.filter(({ name }) => name === "tokens grow");
    const { verdict, property } = exploreUses(maekawa(), 3, 1, { properties, crashes: 1, recoveries: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "tokens grow"]);
  });

  it("explored: the variant from a lecture lets two nodes inside", () => {
    const { verdict, property, path } = exploreUses(maekawaAsLectured(), 3, 1);
    expect([verdict, property?.name]).toEqual(["violated", "ME1 safety"]);
    const sections = path.at(-1)?.states.map((state) => state?.mutex.section);
    expect(sections?.filter((section) => section === "held")).toHaveLength(2);
  });
});
