import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  correspondence,
  exploreSends,
  MESSAGE_MS,
  range,
  stage,
  told,
  use,
} from "../../../test/protocols/multicast-stage.ts";
import { causalTotal } from "./causal-total.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "./parts/promises.ts";

const orders = [totalOrder, fifoOrder, happenedBeforeOrder];
/** Explorations of hundreds of thousands of states, on a machine that has other work. */
const LONG_MS = 180_000;

describe("causal-total multicast: the worked example", () => {
  it("an answer reaches 2 before what is agreed of its question, and waits for that", async () => {
    const group = stage(causalTotal(), 3);
    group.send(0, "question");
    group.sim.run(2 * MESSAGE_MS - 1);
    group.sim.setLink(0, 2, { delay: 40 });
    group.sim.run(3 * MESSAGE_MS);
    expect(group.at(1)).toEqual(["question"]);
    group.send(1, "answer");
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["question", "answer"]);
    expect(group.sim.violations).toEqual([]);
    await expect(group.story()).toMatchFileSnapshot("stories/causal-total-answer.txt");
  });
});

describe("causal-total multicast: what it costs", () => {
  it.each(range(1, 64))("N = %i: 3(N − 1) messages a multicast", (nodes) => {
    const group = stage(causalTotal(), nodes);
    group.send(0, "hello");
    group.send(nodes - 1, "hello");
    group.sim.run();
    expect(group.sim.messages.total).toBe(2 * 3 * (nodes - 1));
    expect(causalTotal().costs[0]?.messages(nodes)).toBe(3 * (nodes - 1));
    expect(group.sim.violations).toEqual([]);
  });

  it("three message times until the others deliver, two until its sender does", () => {
    const group = stage(causalTotal(), 4);
    group.send(0, "hello");
    group.sim.run();
    expect(group.times("hello")).toEqual([2, 3, 3, 3].map((delays) => delays * MESSAGE_MS));
  });
});

describe("causal-total multicast: what it promises", () => {
  const demand = fc.array(fc.record({ node: fc.nat(4), at: fc.nat(60), messages: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 8,
  });

  it("C6, C5 and so C4: any senders, any delays", () => {
    fc.assert(
      fc.property(fc.nat(), demand, (seed, demands) => {
        const sim = correspondence(causalTotal(), { nodes: 5, seed, orders, user: { pauseMs: 1 } });
        for (const { node, at, messages } of demands.toSorted((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(messages));
        }
        sim.run();
        expect(sim.violations).toEqual([]);
        const count = demands.reduce((sum, { messages }) => sum + messages, 0);
        for (const node of range(0, 4)) expect(sim.world.state(node).user.delivered).toHaveLength(count);
      }),
      { numRuns: 150 },
    );
  });
});

describe("causal-total multicast: every run", () => {
  it.each([
    [[1, 1, 1], "fifo", 25_460],
    [[2, 0, 0], "bag", 161],
    [[2, 1], "bag", 1_197],
    [[3, 0, 0], "bag", 2_617],
    [[2, 1, 0], "bag", 38_211],
  ] as const)(
    "of nodes that send %j keeps C6, C5 and C4 (%s links)",
    (messages, network, states) => {
      expect(exploreSends(causalTotal(), messages, { orders, network })).toMatchObject({ verdict: "holds", states });
    },
    LONG_MS,
  );

  it(
    "of three nodes that send one each, over links without any order",
    () => {
      const found = exploreSends(causalTotal(), [1, 1, 1], { orders, network: "bag" });
      expect(found).toMatchObject({ verdict: "holds", states: 176_973 });
    },
    LONG_MS,
  );

  it("with one lost message nobody delivers, its sender neither", () => {
    const found = exploreSends(causalTotal(), [1, 0], { orders, losses: 1 });
    expect(found.property?.name).toBe("user: validity");
    expect(told(found)).toEqual(["0 is told to send", "1 lose"]);
  });

  it("with one crash of a sender, a message that is not agreed is held back for ever", () => {
    const found = exploreSends(causalTotal(), [1, 0, 0], { orders, crashes: 1 });
    expect(found.property?.name).toBe("agreement");
  });
});
