import { describe, expect, it } from "vitest";
import { expectAllDelivered, expectCost, expectDelays } from "../../../test/protocols/multicast-expectations.ts";
import { correspondence, exploreSends, MESSAGE_MS, stage, told } from "../../../test/protocols/multicast-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "./family/properties.ts";
import { multicastWithWorkload } from "./family/workload.ts";
import { fifoTotal } from "./fifo-total.ts";

const orders = [totalOrder, fifoOrder, happenedBeforeOrder];

describe("FIFO-total multicast: the worked example", () => {
  it("F2 overtakes F1 on the way to 1, and is still proposed after it", async () => {
    const group = stage(fifoTotal(), 3, { link: { order: "none" } });
    group.sim.setLink(0, 1, { delay: 25, order: "none" });
    group.send(0, "F1");
    group.sim.setLink(0, 1, { delay: MESSAGE_MS, order: "none" });
    group.send(0, "F2");
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["F1", "F2"]);
    expect(group.sim.verdict()).toEqual([]);
    await expect(group.story()).toMatchFileSnapshot("stories/fifo-total-overtaken.txt");
  });
});

describe("FIFO-total multicast: what it costs", () => {
  const title = "N = %i: 3(N − 1) messages per multicast";
  it.each(range(1, 16))(title, (nodes) => expectCost(fifoTotal(), nodes, 3 * (nodes - 1)));
  it.each(range(17, 64))(title, { tags: ["long"] }, (nodes) => expectCost(fifoTotal(), nodes, 3 * (nodes - 1)));

  it("three message times until the others deliver, two until its sender does", () => {
    expectDelays(fifoTotal(), [2, 3, 3, 3]);
  });
});

describe("FIFO-total multicast: guarantees", () => {
  it("C6, C4 and, because senders propose too, C5: with any senders and any delays", () => {
    expectAllDelivered((seed) => correspondence(fifoTotal(), { nodes: 5, seed, orders, workload: { pauseMs: 1 } }), {
      withinMs: 60,
    });
  });
});

describe("FIFO-total multicast: under load", () => {
  it("thousands of messages that wait for one late message follow it in one step, through both layers", () => {
    const group = stage(fifoTotal(), 2, { link: { order: "none" }, properties: "at the end" });
    group.sim.setLink(0, 1, { delay: 1_000, order: "none" });
    group.send(0, "late");
    group.sim.setLink(0, 1, { delay: MESSAGE_MS, order: "none" });
    for (const n of range(1, 3_000)) group.send(0, `${n}`);
    group.sim.run();
    expect(group.sim.verdict()).toEqual([]);
    for (const node of [0, 1]) expect(group.at(node)).toEqual(["late", ...range(1, 3_000).map(String)]);
  });
});

describe("FIFO-total multicast: every run", () => {
  type Run = readonly [messages: readonly number[], network: "fifo" | "bag", states: number];
  const some: readonly Run[] = [
    [[2, 0, 0], "bag", 161],
    [[2, 1], "bag", 773],
    [[3, 0, 0], "bag", 2_617],
  ];
  const others: readonly Run[] = [
    [[1, 1, 1], "fifo", 42_594],
    [[2, 1, 0], "bag", 34_234],
  ];
  const title = "C6, C4 and C5 hold for nodes that send %j (%s links)";
  it.each(some)(title, (...run) => holds(...run));
  it.each(others)(title, { tags: ["long"] }, (...run) => holds(...run));

  function holds(...[messages, network, states]: Run): void {
    expect(exploreSends(fifoTotal(), messages, { orders, network })).toMatchObject({ verdict: "holds", states });
  }

  it("with one lost message no node delivers, not even its sender", () => {
    const found = exploreSends(fifoTotal(), [1, 0], { orders, losses: 1 });
    expect(found.property?.name).toBe("workload: validity");
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });

  it("if a sender crashes, a message that is not agreed is held back forever", () => {
    const { properties } = multicastWithWorkload(fifoTotal(), []);
    const found = exploreSends(fifoTotal(), [1, 0, 0], { orders, crashes: 1, properties });
    expect(found.property?.name).toBe("agreement");
  });
});
