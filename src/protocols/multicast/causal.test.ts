import { describe, expect, it } from "vitest";
import { expectAllDelivered, expectCost } from "../../../test/protocols/multicast-expectations.ts";
import { correspondence, exploreSends, send, stage, told, use } from "../../../test/protocols/multicast-stage.ts";
import { reaching } from "../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { explore } from "../../check/explore.ts";
import { systemFor } from "../../check/suite.ts";
import type { Protocol } from "../../core/protocol.ts";
import { type Causal, causal } from "./causal.ts";
import { happenedBeforeOrder } from "./family/properties.ts";
import { multicastWithWorkload } from "./family/workload.ts";

const orders = [happenedBeforeOrder];

/** The same protocol without the delivery rule: received messages are delivered at once, as in basic multicast. */
const impatient: Protocol<Causal> = {
  ...causal(),
  receive: {
    multicast(state, from, { vector, payload }, ctx) {
      const place = state.members.indexOf(from);
      state.vector[place] = (state.vector[place] ?? 0) + 1;
      ctx.emit({ type: "delivered", from, payload, id: `${from}.${vector[place]}` });
    },
  },
};

describe("causal multicast: the worked example", () => {
  it("an answer that is faster than its question is held back", async () => {
    const { sim, at, ids, send, story } = stage(causal(), 3, { delayMs: [1, 100] });
    send(0, "question");
    while (at(1).length === 0) sim.run(sim.now + 1);
    send(1, "answer");
    sim.run();
    for (const node of range(0, 2)) {
      expect(at(node)).toEqual(["question", "answer"]);
      expect(ids(node)).toEqual(["0.1", "1.1"]);
    }
    expect(sim.verdict()).toEqual([]);
    expect(story()).toContain("node 2  is now holding back");
    await expect(story()).toMatchFileSnapshot("stories/causal-answer-overtakes.txt");
  });
});

describe("causal multicast: what it costs", () => {
  eachSize(1, 64, "N = %i: N − 1 messages per multicast", (nodes) => {
    expectCost(causal(), nodes, nodes - 1);
  });
});

describe("causal multicast: guarantees", () => {
  it("C5, integrity, validity, agreement: with any senders and any delays", () => {
    expectAllDelivered((seed) => correspondence(causal(), { nodes: 5, seed, orders }), { numRuns: 200 });
  });

  it("C5 is violated without the rule, if messages are delivered on receipt", () => {
    const broken = range(1, 50).filter((seed) => {
      const sim = correspondence(impatient, { nodes: 5, seed, orders });
      for (const node of range(0, 4)) sim.command(node, use(3));
      sim.run();
      return sim.violations.some(({ property }) => property === "workload: C5 happened-before order");
    });
    expect(broken.length).toBeGreaterThan(0);
  });

  it("a lost message breaks agreement: messages that depend on it are held back forever", () => {
    const { sim } = stage(causal(), 2);
    sim.cut(0, 1);
    sim.command(0, send("lost"));
    sim.mend(0, 1);
    sim.command(0, send("waits"));
    sim.run();
    expect(sim.verdict().map(({ property }) => property)).toEqual(["agreement"]);
    expect(sim.world.state(1).heldBack).toMatchObject([{ from: 0, vector: [2, 0] }]);
  });

  it("a duplicate is delivered once", () => {
    const { sim } = stage(causal(), 2);
    sim.command(0, send("once"));
    sim.run();
    const before = JSON.stringify(sim.world.state(1));
    const silent = { self: 1, peers: [0] } as never; // Throws if the handler uses the context.
    causal().receive.multicast(sim.world.state(1), 0, { type: "multicast", vector: [1, 0], payload: "once" }, silent);
    expect(JSON.stringify(sim.world.state(1))).toBe(before);
  });

  it("explored: a message that arrives twice is delivered once, whether it was held back or delivered", () => {
    const spec = { protocol: "causal", nodes: [0, 1, 2], duplications: 1, network: "bag" } as const;
    expect(reaching(explore(systemFor(spec)), "delivered")).toMatchObject({ verdict: "holds" });
  });

  it.each([
    [
      () => multicastWithWorkload(causal(), [], { pauseMs: 0 }),
      "expected workload.pauseMs to be a finite number > 0, got 0",
    ],
  ])("rejects unknown options", (build, sentence) => {
    expect(build).toThrow(sentence);
  });
});

describe("causal multicast: every run", () => {
  it.each([
    [[1, 1, 1], "fifo", 690],
    [[1, 1, 1], "bag", 690],
    [[2, 1, 0], "bag", 301],
    [[3, 3], "fifo", 1_426],
    [[3, 3], "bag", 2_358],
  ] as const)(
    "of nodes that send %j keeps C5, integrity, validity and agreement (%s links)",
    (messages, network, states) => {
      expect(exploreSends(causal(), messages, { orders, network })).toMatchObject({ verdict: "holds", states });
    },
  );

  it("C5 is violated without the rule: 2 delivers the answer of 1 before the question of 0", () => {
    const found = exploreSends(impatient, [1, 1, 0], { orders });
    expect(found.property?.name).toBe("workload: C5 happened-before order");
    expect(told(found)).toEqual([
      "0 receives command send",
      "1 receives multicast from 0",
      "1 receives command send",
      "2 receives multicast from 1",
    ]);
  });

  it("agreement is violated by one lost message", () => {
    const found = exploreSends(causal(), [1, 0], { orders, losses: 1 });
    expect(found.property?.name).toBe("workload: agreement");
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });
});
