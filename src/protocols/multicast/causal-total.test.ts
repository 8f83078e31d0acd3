import { describe, expect, it } from "vitest";
import { expectAllDelivered, expectCost, expectDelays } from "../../../test/protocols/multicast-expectations.ts";
import { correspondence, exploreSends, MESSAGE_MS, stage, told } from "../../../test/protocols/multicast-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { causalTotal } from "./causal-total.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "./family/properties.ts";
import { multicastWithWorkload } from "./family/workload.ts";

const orders = [totalOrder, fifoOrder, happenedBeforeOrder];

describe("causal-total multicast: the worked example", () => {
  it("an answer reaches 2 before the agreed position of its question, and waits for it", async () => {
    const group = stage(causalTotal(), 3);
    group.send(0, "question");
    group.sim.run(2 * MESSAGE_MS - 1);
    group.sim.setLink(0, 2, { delay: 40 });
    group.sim.run(3 * MESSAGE_MS);
    expect(group.at(1)).toEqual(["question"]);
    group.send(1, "answer");
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["question", "answer"]);
    expect(group.sim.verdict()).toEqual([]);
    await expect(group.story()).toMatchFileSnapshot("stories/causal-total-answer.txt");
  });
});

describe("causal-total multicast: what it costs", () => {
  const title = "N = %i: 3(N − 1) messages per multicast";
  it.each(range(1, 16))(title, (nodes) => expectCost(causalTotal(), nodes, 3 * (nodes - 1)));
  it.each(range(17, 64))(title, { tags: ["long"] }, (nodes) => expectCost(causalTotal(), nodes, 3 * (nodes - 1)));

  it("three message times until the others deliver, two until its sender does", () => {
    expectDelays(causalTotal(), [2, 3, 3, 3]);
  });
});

describe("causal-total multicast: guarantees", () => {
  it("C6, C5 and so C4: with any senders and any delays", () => {
    expectAllDelivered((seed) => correspondence(causalTotal(), { nodes: 5, seed, orders, workload: { pauseMs: 1 } }), {
      withinMs: 60,
    });
  });
});

describe("causal-total multicast: every run", () => {
  type Run = readonly [messages: readonly number[], network: "fifo" | "bag", states: number];
  const some: readonly Run[] = [
    [[2, 0, 0], "bag", 161],
    [[2, 1], "bag", 1_197],
    [[3, 0, 0], "bag", 2_617],
  ];
  const others: readonly Run[] = [
    [[1, 1, 1], "fifo", 25_460],
    [[2, 1, 0], "bag", 38_211],
  ];
  const title = "C6, C5 and C4 hold for nodes that send %j (%s links)";
  it.each(some)(title, (...run) => holds(...run));
  it.each(others)(title, { tags: ["long"] }, (...run) => holds(...run));

  function holds(...[messages, network, states]: Run): void {
    expect(exploreSends(causalTotal(), messages, { orders, network })).toMatchObject({ verdict: "holds", states });
  }

  it("three nodes send one message each, over unordered links", { tags: ["larger"] }, () => {
    const found = exploreSends(causalTotal(), [1, 1, 1], { orders, network: "bag" });
    expect(found).toMatchObject({ verdict: "holds", states: 176_973 });
  });

  it("with one lost message no node delivers, not even its sender", () => {
    const found = exploreSends(causalTotal(), [1, 0], { orders, losses: 1 });
    expect(found.property?.name).toBe("workload: validity");
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });

  it("if a sender crashes, a message that is not agreed is held back forever", () => {
    const { properties } = multicastWithWorkload(causalTotal(), []);
    const found = exploreSends(causalTotal(), [1, 0, 0], { orders, crashes: 1, properties });
    expect(found.property?.name).toBe("agreement");
  });
});
