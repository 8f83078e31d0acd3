import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { send, stage } from "../../../../test/protocols/multicast-stage.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast.ts";

/** The nodes p, q and r of the worked cases. */
const [P, Q, R] = [0, 1, 2] as const;

/** Drops messages from `from` to `to` while `meanwhile` runs. */
function losing(stage: ReturnType<typeof group>, from: number, to: number | number[], meanwhile: () => void): void {
  for (const each of [to].flat()) stage.sim.cut(from, each);
  meanwhile();
  for (const each of [to].flat()) stage.sim.mend(from, each);
}

const group = (nodes: number, options: Partial<IpMulticastOptions> = {}, more: object = {}) =>
  stage<IpMulticast>(ipMulticast(options), nodes, more);

/** Sends the given numbers of messages from p, q and r, and runs until no node has messages left to send. */
function settled(counts: readonly number[]) {
  const entries: string[] = [];
  const staged = group(3);
  for (const [node, count] of counts.entries())
    for (const i of range(1, count)) staged.send(node, `${"pqr"[node]}${i}`);
  staged.sim.run();
  return { ...staged, entries, since: staged.story().length };
}

describe("reliable multicast over IP multicast: the worked cases", () => {
  it("r receives a number that is not the next: it has lost messages of p", async () => {
    const staged = settled([0, 6, 1]);
    losing(staged, P, R, () => {
      staged.send(P, "p1");
      staged.send(P, "p2");
    });
    staged.send(P, "m");
    staged.sim.run();
    expect(staged.at(R).slice(7)).toEqual(["p1", "p2", "m"]); // m is held back until the others have arrived.
    expect(staged.sim.messages.byType).toMatchObject({ nack: 2, repair: 4 });
    expect(staged.sim.verdict()).toEqual([]);
    await expect(staged.story().slice(staged.since)).toMatchFileSnapshot("stories/gap-in-the-next.txt");
  });

  it("r learns that q has received more of p than r itself: <3,6,1> against <2,6,1>", async () => {
    const staged = settled([2, 6, 1]);
    losing(staged, P, R, () => staged.send(P, "m"));
    while (staged.at(Q).length < 10) staged.sim.step();
    staged.send(Q, "n");
    staged.sim.run();
    expect(staged.at(R).slice(9)).toEqual(["n", "m"]); // No message from q is missing.
    expect(staged.sim.messages.byType).toMatchObject({ nack: 2, repair: 2 });
    const story = staged.story().slice(staged.since);
    expect(story).toContain("node 1  sends data view 0 number 7 stable 6 acks [3,7,1] payload n to 2");
    expect(staged.sim.verdict()).toEqual([]);
    await expect(story).toMatchFileSnapshot("stories/gap-in-an-acknowledgement.txt");
  });

  it("the loss of the last message is detected when another node acknowledges it", async () => {
    const staged = group(3);
    losing(staged, P, R, () => staged.send(P, "last"));
    staged.sim.run();
    expect(staged.at(R)).toEqual(["last"]);
    expect(staged.sim.verdict()).toEqual([]);
    await expect(staged.story()).toMatchFileSnapshot("stories/last-message.txt");
  });

  it("if all have lost it, it is detected by its sender's session message", () => {
    const staged = group(3, { sessionMs: 100 });
    losing(staged, P, [Q, R], () => staged.send(P, "last"));
    staged.sim.run();
    expect(staged.times("last")[2]).toBeGreaterThan(100);
    expect([staged.at(Q), staged.at(R)]).toEqual([["last"], ["last"]]);
  });

  it("without session messages it is not detected", () => {
    const staged = group(3, { sessions: false });
    losing(staged, P, R, () => staged.send(P, "last"));
    staged.sim.run();
    expect(staged.at(R)).toEqual([]);
    expect(staged.sim.verdict().map(({ property }) => property)).toEqual(["agreement"]);
  });

  it("another member repairs a message that its sender cannot", () => {
    const staged = group(4, { maxRepeats: 4, repairMs: 1_000, repeatMs: 3_000, maxRepeatMs: 3_000 });
    losing(staged, P, R, () => staged.send(P, "m"));
    while (staged.at(Q).length === 0) staged.sim.step();
    staged.sim.crash(P);
    staged.sim.run();
    expect(staged.at(R)).toEqual(["m"]);
    expect(staged.sim.messages.byType.repair).toBe(3); // One datagram: the other two nodes with a copy did not repair.
  });
});

describe("reliable multicast over IP multicast: what it costs", () => {
  const quick = { properties: "at the end", trace: undefined } as const;

  eachSize(3, 64, "N = %i: one datagram; after a pause each of the others acknowledges", (nodes) => {
    const { sim, send: multicast } = group(nodes, {}, quick);
    multicast(0, "m");
    sim.run(12);
    expect(sim.datagrams).toBe(1);
    expect(sim.messages.total).toBe(nodes - 1);
    sim.run();
    expect(sim.messages.byType).toEqual({ data: nodes - 1, session: (nodes - 1) ** 2 });
    expect(sim.datagrams).toBe(nodes);
    expect(ipMulticast().costs.map(({ messages }) => messages(nodes))).toEqual([nodes - 1, (nodes - 1) ** 2]);
  });

  eachSize(3, 64, "N = %i: with `promptAcks`, a message is acknowledged at once if no other is in flight", (nodes) => {
    const { sim, send: multicast } = group(nodes, { promptAcks: true }, { ...quick, delayMs: 1 });
    multicast(0, "m");
    sim.run(2);
    expect(sim.messages.byType).toEqual({ data: nodes - 1, session: (nodes - 1) ** 2 });
    expect(sim.world.state(0).streams[0]?.stable).toBe(1);
    multicast(0, "n");
    multicast(0, "o"); // The node must not be alone.
    sim.run(4);
    expect(sim.world.state(0).streams[0]?.stable).toBe(2);
    sim.run();
    expect(sim.datagrams).toBe(3 + 3 * (nodes - 1));
  });

  it.each([3, 4, 7, 16, 32, 64])("N = %i: if all nodes send, acknowledgements are piggybacked", (nodes) => {
    const { sim, send: multicast } = group(nodes, { ackEvery: 1_000 }, quick);
    const rounds = 10;
    for (const round of range(1, rounds)) {
      for (const node of range(0, nodes - 1)) multicast(node, `${round}`);
      sim.run(round * 4);
    }
    expect(sim.datagrams).toBe(rounds * nodes);
    sim.run();
    // After the last messages, each node acknowledges the last one, and may have acknowledged the previous one.
    expect(sim.datagrams).toBeGreaterThanOrEqual(rounds * nodes + nodes);
    expect(sim.datagrams).toBeLessThanOrEqual(rounds * nodes + 2 * nodes);
  });

  eachSize(3, 64, "N = %i: a loss costs one negative acknowledgement and one repair", (nodes) => {
    const staged = group(nodes, {}, quick);
    losing(staged, 0, nodes - 1, () => staged.send(0, "m"));
    staged.sim.run();
    expect(staged.at(nodes - 1)).toEqual(["m"]);
    const { data, nack, repair, session } = staged.sim.messages.byType;
    expect([data, nack, repair]).toEqual([nodes - 1, nodes - 1, nodes - 1]);
    expect(staged.sim.datagrams).toBe(1 + 1 + 1 + (session as number) / (nodes - 1));
    expect(session).toBe((nodes - 1) ** 2);
  });

  eachSize(3, 64, "N = %i: if all others lose a message, one of them requests it for all", (nodes) => {
    const patient = {
      nackMs: 10_000,
      maxSessionMs: 100_000,
      sessionMs: 50_000,
      repeatMs: 100_000,
      maxRepeatMs: 100_000,
    };
    const staged = group(nodes, patient, { ...quick, delayMs: 1 });
    losing(staged, 0, range(1, nodes - 1), () => staged.send(0, "m"));
    staged.sim.run();
    for (const node of range(1, nodes - 1)) expect(staged.at(node)).toEqual(["m"]);
    const { nack, repair } = staged.sim.messages.byType;
    expect([nack, repair]).toEqual([nodes - 1, nodes - 1]);
  });
});

describe("reliable multicast over IP multicast: lost repairs", () => {
  it.each([3, 8, 32])(
    "N = %i: when a repair is lost to all, few nodes repeat the request, and one repairs",
    (nodes) => {
      const slow = {
        sessionMs: 10_000,
        maxSessionMs: 10_000,
        nackMs: 500,
        repairMs: 50,
        repeatMs: 5_000,
        maxRepeatMs: 5_000,
      };
      const staged = group(nodes, slow, { delayMs: 1, properties: "at the end" });
      const others = range(1, nodes - 1);
      losing(staged, 0, others, () => {
        staged.send(0, "m");
      });
      losing(staged, 0, others, () => {
        staged.send(0, "n");
      });
      staged.send(0, "o");
      while ((staged.sim.messages.byType.nack ?? 0) === 0) staged.sim.step();
      losing(staged, 0, others, () => staged.sim.run(staged.sim.now + 2));
      staged.sim.run();
      for (const node of others) expect(staged.at(node)).toEqual(["m", "n", "o"]);
      const { nack, repair } = staged.sim.messages.byType;
      expect([(nack as number) / (nodes - 1), (repair as number) / (nodes - 1)]).toEqual([2, 4]);
    },
  );
});

describe("reliable multicast over IP multicast: how many datagrams are redundant", () => {
  const RECEIVERS = 2;
  /** Returns the expected number of transmissions until both receivers have a datagram, without redundant ones. */
  const least = (lossRate: number): number => 2 / (1 - lossRate) - 1 / (1 - lossRate ** RECEIVERS);

  it.each([
    [0, 3, 1, 1],
    [0.01, 3, 1.02, 1.03],
    [0.1, 3, 1.2, 1.26],
    [0.3, 3, 1.73, 1.9],
  ])("%d of all messages lost", (lossRate, nodes, atLeast, atMost) => {
    const sim = simulation<IpMulticast>({
      protocol: ipMulticast(),
      nodes: range(0, nodes - 1),
      seed: 1,
      delayMs: [1, 3],
      link: { lossRate, order: "none" },
      properties: "at the end",
    });
    for (const node of range(0, nodes - 1)) sim.wake(node);
    const messages = 1_000;
    for (const _message of range(1, messages)) for (const node of range(0, nodes - 1)) sim.command(node, send("m"));
    sim.run();
    const { data = 0, repair = 0 } = sim.messages.byType;
    const each = (data + repair) / (nodes - 1) / (messages * nodes);
    expect(least(lossRate)).toBeGreaterThan(atLeast - 0.02);
    expect(each).toBeGreaterThanOrEqual(atLeast);
    expect(each).toBeLessThanOrEqual(atMost);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("reliable multicast over IP multicast: flow control", () => {
  const told = (staged: ReturnType<typeof group>, node: number) =>
    staged.sim.events(node).flatMap((event) => (event.type === "delivered" ? [] : [event]));

  it("limits the number of unstable messages; further ones wait and are not lost", () => {
    const staged = group(3, { windowMessages: 4, maxWaiting: 6 });
    for (const i of range(1, 10)) staged.send(0, `${i}`);
    expect(staged.at(0)).toEqual(["1", "2", "3", "4"]);
    expect(staged.sim.world.state(0).waiting).toHaveLength(6);
    staged.send(0, "11");
    expect(told(staged, 0)).toEqual([{ type: "refused", payload: "11" }]);
    staged.sim.run();
    for (const node of [0, 1, 2]) expect(staged.at(node)).toEqual(range(1, 10).map(String));
    expect(told(staged, 0).at(-1)).toEqual({ type: "stable", count: 10 });
    expect(staged.sim.verdict()).toEqual([]);
  });

  it("limits the size of unstable text, but sends one message of any length", () => {
    const staged = group(2, { windowBytes: 10 });
    for (const payload of ["x".repeat(20), "1234567", "890", "1"]) staged.send(0, payload);
    expect(staged.at(0)).toEqual(["x".repeat(20)]);
    staged.sim.run(31);
    expect(staged.at(0)).toEqual(["x".repeat(20), "1234567", "890"]);
    staged.sim.run();
    expect(staged.at(1)).toEqual(["x".repeat(20), "1234567", "890", "1"]);
    expect(staged.sim.world.state(0).unstableBytes).toBe(0);
  });

  it("a paused member blocks the others when their windows are full, and catches up", () => {
    const staged = group(3, { windowMessages: 8, maxWaiting: 100 });
    staged.sim.pause(2);
    for (const i of range(1, 50)) {
      staged.send(0, `${i}`);
      staged.sim.run(i * 10);
    }
    expect(staged.at(1)).toHaveLength(8);
    staged.sim.resume(2);
    staged.sim.run();
    for (const node of [0, 1, 2]) expect(staged.at(node)).toEqual(range(1, 50).map(String));
    expect(staged.sim.verdict()).toEqual([]);
  });

  it("the size of messages from a layer above is the size of their contents", () => {
    const payload = { kind: "struct" as const, fields: {} };
    const { state } = step(
      ipMulticast<{ text: string; numbers: number[]; none: null }>({}, payload),
      { self: 0, peers: [1] },
      ipMulticast<{ text: string; numbers: number[]; none: null }>({}, payload).init(0, [1]),
      { kind: "command", command: { type: "send", payload: { text: "four", numbers: [1, 2], none: null } } },
    );
    expect(state.unstableBytes).toBe(4 + 8 + 8 + 8);
  });
});

describe("reliable multicast over IP multicast: invalid messages", () => {
  const node = { self: 0, peers: [1, 2] };
  const data = { type: "data", view: 0, number: 1, stable: 0, acks: [0, 1, 0], payload: "m" } as const;
  const nack = { type: "nack", view: 0, acks: [0, 0, 0], wanted: [{ sender: 0, from: 1, to: 1, at: 0 }] } as const;
  const session = { type: "session", view: 0, acks: [0, 0, 0], stable: [0, 0, 0], asks: false } as const;
  const wanting = (wish: object) => ({ ...nack, wanted: [{ sender: 0, from: 1, to: 1, at: 0, ...wish }] });

  it.each([
    ["of another view", 1, { ...data, view: 1 }],
    ["from a non-member", 7, data],
    ["without a number", 1, { ...data, number: 0 }],
    ["that cannot have been sent yet", 1, { ...data, number: 1_281 }],
    ["marked as stable although this node lacks it", 1, { ...data, stable: 1 }],
    ["with too few acknowledgements", 1, { ...data, acks: [0, 1] }],
    ["that acknowledges messages that this node has not sent", 1, { ...data, acks: [1, 1, 0] }],
    ["that acknowledges impossible numbers", 1, { ...data, acks: [0, 1, 1_281] }],
    ["that repairs a non-member's message", 1, { ...data, type: "repair", sender: 7 }],
    ["that requests a non-member's message", 1, wanting({ sender: 7 })],
    ["that requests number 0", 1, wanting({ from: 0 })],
    ["that requests a reversed range", 1, wanting({ from: 2 })],
    ["that requests unsent messages", 1, wanting({ to: 1 })],
    ["that requests too much", 1, wanting({ sender: 2, to: 65 })],
    ["that reports too few stable numbers", 1, { ...session, stable: [] }],
    ["that marks a missing message as stable", 1, { ...session, stable: [0, 0, 1] }],
  ])("a message %s", (_what, from, message) => {
    const protocol = ipMulticast();
    const before = protocol.init(node.self, node.peers);
    const { state, effects } = step(protocol, node, before, { kind: "receive", from, message: message as never });
    expect(effects).toEqual([]);
    expect(state).toEqual(before);
  });

  it("ignores a duplicate message", () => {
    const protocol = ipMulticast();
    const receive = (state: IpMulticast["state"]) =>
      step(protocol, node, state, { kind: "receive", from: 1, message: { ...data, acks: [...data.acks] } });
    const once = receive(protocol.init(node.self, node.peers));
    const twice = receive(once.state);
    expect(once.effects).toContainEqual({
      kind: "emit",
      event: { type: "delivered", from: 1, payload: "m", id: "1.1" },
    });
    expect(twice).toEqual({ state: once.state, effects: [] });
  });
});

describe("reliable multicast over IP multicast, under any network faults", () => {
  const conditions = fc.record({
    seed: fc.nat(),
    nodes: fc.integer({ min: 2, max: 7 }),
    lossRate: fc.constantFrom(0, 0.01, 0.1, 0.3),
    duplicateRate: fc.constantFrom(0, 0.2),
    windowMessages: fc.constantFrom(2, 8, 256),
  });
  const sends = fc.array(fc.record({ from: fc.nat(6), at: fc.nat(300) }), { minLength: 1, maxLength: 60 });

  it("all messages are delivered once, in the order of each sender, and none is kept", () => {
    fc.assert(
      fc.property(conditions, sends, ({ seed, nodes, windowMessages, ...link }, planned) => {
        const sim = simulation<IpMulticast>({
          protocol: ipMulticast({ windowMessages }),
          nodes: range(0, nodes - 1),
          seed,
          delayMs: [1, 30],
          link: { ...link, order: "none" },
        });
        for (const node of range(0, nodes - 1)) sim.wake(node);
        const sent = range(0, nodes - 1).map(() => [] as string[]);
        for (const { from, at } of planned.toSorted((a, b) => a.at - b.at)) {
          sim.run(at);
          const payload = `${sent[from % nodes]?.length}`;
          sim.command(from % nodes, send(payload));
          sent[from % nodes]?.push(payload);
        }
        sim.run();
        expect(sim.verdict()).toEqual([]);
        for (const node of range(0, nodes - 1)) {
          const came = sim.events(node).filter((event) => event.type === "delivered");
          expect(
            sent.map((_, sender) => came.filter(({ from }) => from === sender).map(({ payload }) => payload)),
          ).toEqual(sent);
          const { streams, waiting, repairs, talk } = sim.world.state(node);
          expect(streams.flatMap(({ kept }) => kept)).toEqual([]);
          expect({ waiting, repairs, talk }).toEqual({ waiting: [], repairs: [], talk: "none" });
        }
      }),
      { numRuns: 200 },
    );
  });

  it("a node that has lost its state is no longer understood: crashes need views", () => {
    const staged = group(2, { maxRepeats: 2 });
    staged.send(0, "before");
    staged.sim.run();
    staged.sim.crash(0);
    staged.sim.start(0);
    staged.sim.run();
    expect(staged.sim.verdict().map(({ property }) => property)).toContain("agreement");
    staged.send(0, "after");
    staged.sim.run();
    expect(staged.at(1)).toEqual(["before"]);
  });
});
