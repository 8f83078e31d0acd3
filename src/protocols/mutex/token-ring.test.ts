import { describe, expect, it } from "vitest";
import { expectEverybodyServed, exploreUses, MESSAGE_MS, stage, use } from "../../../test/protocols/mutex-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { type TokenRingOptions, tokenRing } from "./token-ring.ts";

const IDLE_MS = 5;

/** Creates a ring whose first node has the token and starts. */
function ring(nodes: readonly number[], options: Partial<TokenRingOptions> = {}, links = {}) {
  const staged = stage(tokenRing(options), nodes, links);
  for (const node of nodes) {
    staged.sim.crash(node);
    staged.sim.start(node);
  }
  return staged;
}

describe("token ring: its story", () => {
  it("the node with the token enters at once; another waits until the token arrives", async () => {
    const { sim, story, moments } = ring([1, 2, 3]);
    sim.command(1, use(1));
    sim.run(15);
    sim.command(3, use(1));
    sim.run(120);
    expect(moments("entered")).toEqual([
      { node: 1, at: 0 },
      { node: 3, at: 30 + MESSAGE_MS + IDLE_MS + MESSAGE_MS },
    ]);
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/token-ring-comes-round.txt");
  });

  it("visits the nodes in the given order", () => {
    const { sim, moments } = ring([1, 2, 3, 4], { ring: [2, 4, 1, 3] });
    for (const node of [1, 2, 3, 4]) sim.command(node, use(1));
    sim.run(1_000);
    expect(moments("entered").map(({ node }) => node)).toEqual([2, 4, 1, 3]);
  });
});

describe("token ring: what it costs", () => {
  it.each([2, 3, 7, 16, 64])("N = %i: N messages per round", (nodes) => {
    const { sim } = ring(range(0, nodes - 1));
    sim.run(nodes * (MESSAGE_MS + IDLE_MS) - 1);
    expect(sim.messages.byType).toEqual({ token: nodes });
    expect(tokenRing().costs[0]?.messages(nodes)).toBe(nodes);
  });

  it.each([3, 7, 16])("N = %i: 0 … N − 1 messages until a waiting node has the token, N to re-enter", (nodes) => {
    for (const wanting of range(0, nodes - 1)) {
      const { sim, moments } = ring(range(0, nodes - 1));
      sim.command(wanting, use(1));
      while (moments("entered").length === 0) sim.run(sim.now + 1);
      expect(sim.messages.total).toBe(wanting);
    }
    const { sim, moments } = ring(range(0, nodes - 1));
    sim.command(0, use(2));
    while (moments("entered").length < 2) sim.run(sim.now + 1);
    expect(sim.messages.total).toBe(nodes);
  });
});

describe("token ring: what it guarantees", () => {
  it("ME1, ME2: any workloads, any delays: one at a time, all are served, and the tokens grow", () => {
    expectEverybodyServed(5, (links) => ring(range(0, 4), {}, links), { numRuns: 50, untilMs: 20_000 });
  });

  it("explored: ME1, ME2 hold for 3 nodes, two entries each, although the token circulates forever", () => {
    const { verdict, states } = exploreUses(tokenRing(), 3, 2, { begin: "together" });
    expect([verdict, states]).toEqual(["holds", 3_093]);
  });

  it("explored: a crash loses the token, and waiting nodes wait forever: ME2", () => {
    const { verdict, property } = exploreUses(tokenRing(), 3, 1, { begin: "together", crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
  });

  it("rejects a ring that does not list all nodes", () => {
    expect(() => ring([1, 2, 3], { ring: [1, 2] })).toThrow(
      "expected token-ring.ring to be every node once, got [1,2]",
    );
  });
});
