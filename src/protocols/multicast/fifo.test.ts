import { describe, expect, it } from "vitest";
import { expectAllDelivered, expectCost } from "../../../test/protocols/multicast-expectations.ts";
import { correspondence, exploreSends, send, stage, told } from "../../../test/protocols/multicast-stage.ts";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { basicMulticast } from "./basic-multicast.ts";
import { fifoOrder, integrity } from "./family/properties.ts";
import { multicastWithWorkload } from "./family/workload.ts";
import { fifo } from "./fifo.ts";
import { fifoAsLectured } from "./variants/fifo-as-lectured.ts";

describe("FIFO multicast: the worked example", () => {
  it("F2 overtakes F1 on the way to 2, which holds it back", async () => {
    const group = stage(fifo(), 3, { link: { order: "none" } });
    group.sim.setLink(0, 2, { delay: 100, order: "none" });
    group.send(0, "F1");
    group.sim.setLink(0, 2, { delay: 10, order: "none" });
    group.send(0, "F2");
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["F1", "F2"]);
    expect(group.times("F2")).toEqual([0, 10, 100]);
    expect(group.sim.verdict()).toEqual([]);
    await expect(group.story()).toMatchFileSnapshot("stories/fifo-overtaken.txt");
  });

  it("messages of different senders may be delivered in any order", () => {
    const group = stage(fifo(), 3);
    group.send(0, "from 0");
    group.send(1, "from 1");
    group.sim.run();
    expect(group.at(0)).toEqual(["from 0", "from 1"]);
    expect(group.at(1)).toEqual(["from 1", "from 0"]);
  });
});

describe("FIFO multicast: what it costs", () => {
  eachSize(1, 64, "N = %i: N − 1 messages per multicast", (nodes) => {
    expectCost(fifo(), nodes, nodes - 1);
  });
});

describe("FIFO multicast: guarantees", () => {
  it("C4, integrity, validity, agreement: with any senders and any delays", () => {
    expectAllDelivered(
      (seed) => correspondence(fifo(), { nodes: 5, seed, orders: [fifoOrder], workload: { pauseMs: 1 } }),
      { most: 4 },
    );
  });

  it("a duplicate is delivered once, whether the message was delivered or is held back", () => {
    const { sim } = stage(fifo(), 2);
    const state = sim.world.state(1);
    const receive = (number: number): string[] => {
      const ids: string[] = [];
      const ctx = { self: 1, peers: [0], emit: ({ id }: { id: string }) => ids.push(id) } as never;
      fifo().receive.multicast(state, 0, { type: "multicast", number, payload: "" }, ctx);
      return ids;
    };
    expect([2, 2, 1, 1, 2, 3].map(receive)).toEqual([[], [], ["0.1", "0.2"], [], [], ["0.3"]]);
    expect(state.heldBack).toEqual([]);
  });

  it("a lost message breaks agreement: its sender's later messages are held back forever", () => {
    const { sim } = stage(fifo(), 2);
    sim.cut(0, 1);
    sim.command(0, send("lost"));
    sim.mend(0, 1);
    sim.command(0, send("waits"));
    sim.run();
    expect(sim.verdict().map(({ property }) => property)).toEqual(["agreement"]);
    expect(sim.world.state(1).heldBack).toEqual([{ from: 0, number: 2, payload: "waits" }]);
  });
});

describe("FIFO multicast: every run", () => {
  it.each([
    [[2, 1, 0], "fifo", 238],
    [[3, 2], "bag", 579],
    [[1, 1, 1], "fifo", 1_008],
    [[2, 2, 0], "bag", 3_201],
  ] as const)(
    "of nodes that send %j keeps C4, integrity, validity and agreement (%s links)",
    (messages, network, states) => {
      const found = exploreSends(fifo(), messages, { orders: [fifoOrder], network });
      expect(found).toMatchObject({ verdict: "holds", states });
    },
  );

  it("delivers a message that arrives twice once", () => {
    const found = exploreSends(fifo(), [2, 0], { orders: [fifoOrder], network: "bag", duplications: 1 });
    expect(found).toMatchObject({ verdict: "holds" });
  });

  it("C4 is violated without the rule, if messages are delivered on receipt", () => {
    const found = exploreSends(basicMulticast(), [2, 0], { orders: [fifoOrder], network: "bag" });
    expect(found.property?.name).toBe("workload: C4 FIFO order");
    expect(told(found)).toEqual(["0 receives command send", "0 times out", "1 receives multicast from 0"]);
  });

  it("integrity is violated if a sender recovers and has forgotten its messages", () => {
    const properties = multicastWithWorkload(fifo(), [integrity]).properties.filter(
      ({ name }) => name === "workload: integrity",
    );
    const found = exploreSends(fifo(), [1, 0], { orders: [], properties, crashes: 1, recoveries: 1 });
    expect(found.verdict).toBe("violated");
    expect(told(found)).toEqual(["0 receives command send", "0 crash", "0 start", "1 receives multicast from 0"]);
  });

  it("agreement is violated by one lost message", () => {
    const found = exploreSends(fifo(), [1, 0], { orders: [fifoOrder], losses: 1 });
    expect(found.property?.name).toBe("workload: agreement");
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });

  it("the variant from a lecture never delivers the first message of each sender, not even at the sender", () => {
    const found = exploreSends(fifoAsLectured(), [1, 0], { orders: [fifoOrder] });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "workload: validity"]);
    expect(told(found)).toEqual(["0 receives command send", "1 receives multicast from 0"]);
    const held = found.path.at(-1)?.states.map((state) => state?.multicast.heldBack.map(({ number }) => number));
    expect(held).toEqual([[0], [0]]);
  });

  it("in the variant from a lecture, the second message is the first delivered one", () => {
    const group = stage(fifoAsLectured(), 2);
    for (const payload of ["one", "two", "three"]) group.send(0, payload);
    group.sim.run();
    expect([group.at(0), group.at(1)]).toEqual([
      ["two", "three"],
      ["two", "three"],
    ]);
  });
});
