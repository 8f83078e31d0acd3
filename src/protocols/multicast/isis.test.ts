import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expectAllDelivered, expectCost, expectDelays } from "../../../test/protocols/multicast-expectations.ts";
import { correspondence, exploreSends, MESSAGE_MS, stage, told } from "../../../test/protocols/multicast-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import type { Property } from "../../core/protocol.ts";
import { causal } from "./causal.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "./family/properties.ts";
import { type MulticastWorkload, multicastWithWorkload, pastOf, senderOf } from "./family/workload.ts";
import { isis } from "./isis.ts";

const orders = [totalOrder];

describe("total order by agreement: the worked example", () => {
  it("two concurrent messages are delivered in the same order everywhere, the lower agreed number first", async () => {
    const group = stage(isis(), 3);
    group.sim.setLink(0, 2, { delay: 30 });
    group.send(0, "T1");
    group.send(2, "T2");
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["T2", "T1"]);
    expect(group.sim.verdict()).toEqual([]);
    await expect(group.story()).toMatchFileSnapshot("stories/isis-two-meet.txt");
  });

  it("ties between proposals are broken by the highest id, and equal numbers are ordered by id", () => {
    const group = stage(isis(), 2);
    group.send(0, "a");
    group.send(1, "b");
    group.sim.run();
    // Node 0 proposes 1 for a and 2 for b, and node 1 proposes 1 for b and 2 for a. So a has (2, 1), and b has (2, 0).
    for (const node of range(0, 1)) expect(group.at(node)).toEqual(["b", "a"]);
  });
});

describe("total order by agreement: what it costs", () => {
  const title = "N = %i: 3(N − 1) messages per multicast";
  it.each(range(1, 16))(title, (nodes) => expectCost(isis(), nodes, 3 * (nodes - 1)));
  it.each(range(17, 64))(title, { tags: ["long"] }, (nodes) => expectCost(isis(), nodes, 3 * (nodes - 1)));

  it("three message times until the others deliver, two until its sender does", () => {
    expectDelays(isis(), [2, 3, 3, 3]);
  });
});

describe("total order by agreement: guarantees", () => {
  it("C6, integrity, validity, agreement: with any senders and any delays", () => {
    expectAllDelivered((seed) => correspondence(isis(), { nodes: 5, seed, orders, workload: { pauseMs: 1 } }));
  });

  it("duplicates of any message, at any time, are harmless", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const group = stage(isis(), 3, { seed, delayMs: [1, 40], link: { order: "none", duplicateRate: 0.4 } });
        for (const node of range(0, 2)) for (const payload of ["x", "y"]) group.send(node, `${payload}${node}`);
        group.sim.run();
        expect(group.sim.verdict()).toEqual([]);
        expect(new Set(group.at(0)).size).toBe(6);
        for (const node of range(0, 2)) expect(group.at(node)).toEqual(group.at(0));
      }),
      { numRuns: 100 },
    );
  });

  it("keeps no state once all messages are delivered", () => {
    const group = stage(isis(), 3, { delayMs: [1, 40] });
    for (const n of range(1, 50)) group.send(n % 3, `${n}`);
    group.sim.run();
    for (const node of range(0, 2)) {
      const { heldBack, proposals, collected, received } = group.sim.world.state(node);
      expect({ heldBack, proposals, collected }).toEqual({ heldBack: [], proposals: {}, collected: {} });
      expect(received.flatMap(({ beyond }) => beyond)).toEqual([]);
    }
  });

  it("delivers in order no matter how many messages wait for one whose sender is slow", () => {
    const group = stage(isis(), 3, { properties: "at the end" });
    group.sim.setLink(0, 2, { delay: 100_000 });
    group.send(0, "slow");
    group.sim.run(MESSAGE_MS);
    for (const n of range(1, 2_000)) group.send(1, `${n}`);
    group.sim.run(50_000);
    expect(group.sim.world.state(1).heldBack).toHaveLength(2_001);
    group.sim.run();
    expect(group.sim.verdict()).toEqual([]);
    expect(group.at(1)).toHaveLength(2_001);
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(group.at(1));
  });

  it("a sender that crashes between proposal and agreement blocks the queues of all nodes", () => {
    const group = stage(isis(), 3);
    group.send(0, "orphan");
    group.sim.run(MESSAGE_MS + 1);
    group.sim.crash(0);
    group.send(1, "blocked");
    group.sim.run();
    // The crashed node sends no proposals either, so over plain links no further message can be agreed.
    expect([group.at(1), group.at(2)]).toEqual([[], []]);
    expect(group.sim.verdict().map(({ property }) => property)).toEqual(["agreement"]);
  });
});

/** Considers only messages that the sender had delivered, not messages that it had sent itself. */
const throughDeliveries: Property<MulticastWorkload> = {
  name: "happened-before through deliveries",
  claim: "a node delivers a message only after all messages from others that its sender had delivered before",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const before = new Set<string>();
      return state(node).delivered.every((letter) => {
        const { name } = letter;
        const isInOrder = pastOf(letter).every(
          (earlier) => senderOf(earlier) === senderOf(name) || before.has(earlier),
        );
        before.add(name);
        return isInOrder;
      });
    }),
};

describe("total order by agreement: every run", () => {
  type Run = readonly [messages: readonly number[], network: "fifo" | "bag", states: number];
  const some: readonly Run[] = [
    [[1, 1, 1], "fifo", 42_594],
    [[2, 1], "bag", 1_056],
    [[2, 0, 0], "bag", 460],
  ];
  const others: readonly Run[] = [
    [[2, 2], "bag", 30_586],
    [[2, 1, 0], "bag", 109_533],
  ];
  const title = "C6, integrity, validity and agreement hold for nodes that send %j (%s links)";
  it.each(some)(title, (...run) => holds(...run));
  it.each(others)(title, { tags: ["long"] }, (...run) => holds(...run));

  function holds(...[messages, network, states]: Run): void {
    expect(exploreSends(isis(), messages, { orders, network })).toMatchObject({ verdict: "holds", states });
  }

  it("three nodes send one message each, over unordered links", { tags: ["long"] }, () => {
    const found = exploreSends(isis(), [1, 1, 1], { orders, network: "bag" });
    expect(found).toMatchObject({ verdict: "holds", states: 196_960 });
  });

  it("C6 is violated without the agreement: two senders deliver their own message first", () => {
    const found = exploreSends(causal(), [1, 1], { orders });
    expect(found.property?.name).toBe("workload: C6 total order");
    expect(told(found)).toEqual(["0 receives command send", "1 receives command send", "0 receives multicast from 1"]);
  });

  it.each([
    ["C4", fifoOrder],
    ["C5", happenedBeforeOrder],
  ])("%s is violated over unordered links: the second message of a sender overtakes its first", (name, order) => {
    const found = exploreSends(isis(), [2, 0], { orders: [order], network: "bag" });
    expect(found.property?.name).toMatch(name);
    expect(told(found)).toEqual([
      "0 receives command send",
      "0 times out",
      "1 receives multicast from 0",
      "0 receives proposal from 1",
      "1 receives agreed from 0",
    ]);
    expect(found.path[2]?.move).toMatchObject({ message: { body: { type: "multicast", number: 2 } } });
  });

  it.each([
    ["C4", [2, 0], fifoOrder, 16],
    ["C5", [2, 1], happenedBeforeOrder, 189],
  ] as const)("over FIFO links %s is kept", (_name, messages, order, states) => {
    expect(exploreSends(isis(), messages, { orders: [order] })).toMatchObject({ verdict: "holds", states });
  });

  it("a node that has delivered a message proposes higher for its own: causality through deliveries is preserved", () => {
    const found = exploreSends(isis(), [2, 1], { orders: [throughDeliveries], network: "bag" });
    expect(found).toMatchObject({ verdict: "holds", states: 1_056 });
  });

  it("if a sender crashes, a message that is not agreed is held back forever", () => {
    const properties = multicastWithWorkload(isis(), []).properties.flatMap((property) =>
      property.when !== "leadsTo"
        ? []
        : {
            ...property,
            // Check only runs in which the sender, node 0, crashes.
            holds: (...of: Parameters<typeof property.holds>) => of[0].alive.includes(0) || property.holds(...of),
          },
    );
    const found = exploreSends(isis(), [1, 0, 0], { orders, crashes: 1, properties });
    expect(found.property?.name).toBe("agreement");
    expect(told(found).toSorted()).toEqual([
      "0 crash",
      "0 receives command send",
      "1 receives multicast from 0",
      "2 receives multicast from 0",
    ]);
    const held = found.path.at(-1)?.states.map((state) => state?.multicast.heldBack.map(({ isAgreed }) => isAgreed));
    expect(held).toEqual([undefined, [false], [false]]);
  });

  it("with one lost message no node delivers, not even its sender", () => {
    const found = exploreSends(isis(), [1, 0], { orders, losses: 1 });
    expect(found.property?.name).toBe("workload: validity");
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });
});
