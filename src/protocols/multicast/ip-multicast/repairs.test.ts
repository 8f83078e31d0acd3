/**
 * Checks that recurring timers, here for repeated requests, do not mask violations: a message that is never repaired is
 * reported as owed.
 */
import { describe, expect, it } from "vitest";
import { stage, use } from "../../../../test/protocols/multicast-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { contexts, withContext } from "../../contexts.ts";
import { delivery } from "../family/properties.ts";
import { multicastWithWorkload } from "../family/workload.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast.ts";
import { evenly, MAX_WANTED } from "./vocabulary.ts";

/** A faulty protocol: a node does not answer requests for messages. */
const withoutRepairs = (options: Partial<IpMulticastOptions>): Protocol<IpMulticast> =>
  withContext(
    ipMulticast(options),
    contexts((ctx) => ({
      broadcast(message) {
        if (message.type !== "repair") ctx.broadcast(message);
      },
    })),
  );

describe("reliable multicast over IP multicast without repairs", () => {
  it("sim: a node that missed a message still waits for it when the run is cut off", () => {
    const owed = (protocol: Protocol<IpMulticast>) => {
      const sim = simulation({
        protocol: multicastWithWorkload(protocol, delivery),
        nodes: [0, 1, 2],
        seed: 1,
        delayMs: 10,
      });
      for (const node of [0, 1, 2]) sim.wake(node);
      sim.cut(0, 1);
      sim.command(0, use(1));
      sim.mend(0, 1);
      sim.run(60_000);
      return sim.verdict().map(({ property, waiting }) => [property, waiting?.node]);
    };
    expect(owed(ipMulticast())).toEqual([]);
    expect(owed(withoutRepairs({}))).toEqual([
      ["workload: agreement", 1],
      ["agreement", 1],
      ["stability", 0],
    ]);
  });

  it("check: a run that repeats requests and never delivers", () => {
    const system = {
      protocol: multicastWithWorkload(withoutRepairs(evenly), delivery),
      nodes: [0, 1],
      network: "bag",
      timers: "quiet",
      begin: "idle",
      asks: (node: number) => (node === 0 ? [use(1)] : []),
      losses: 1,
    } as const;
    const found = explore(system);
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: agreement" } });
    const loop = found.path.slice(found.loop ?? 0).map(({ move }) => [move.kind, "timer" in move ? move.timer : ""]);
    expect(loop).toContainEqual(["timeout", "multicast.again"]);
    const repaired = explore({ ...system, protocol: multicastWithWorkload(ipMulticast(evenly), delivery) });
    expect(reaching(repaired, "delivered").verdict).toBe("holds");
  });
});

const group = (nodes: number, options: Partial<IpMulticastOptions> = {}) =>
  stage<IpMulticast>(ipMulticast(options), nodes, { properties: "at the end" });

describe("missing messages of more senders than fit into one request", () => {
  const MANY = MAX_WANTED + 6;
  const last = MANY - 1;
  const others = range(0, last - 1);

  /** Creates a group where each other node has sent a message that does not reach the last node. */
  function deaf(options: Partial<IpMulticastOptions>, prepare: (staged: ReturnType<typeof group>) => void) {
    const staged = group(MANY, options);
    prepare(staged);
    for (const node of others) staged.sim.cut(node, last);
    for (const node of others) staged.send(node, `of ${node}`);
    return staged;
  }

  it("are requested in several messages", () => {
    const staged = deaf({}, () => {});
    staged.sim.heal();
    staged.sim.run(3_000);
    expect(staged.at(last).toSorted()).toEqual(others.map((node) => `of ${node}`).toSorted());
    expect(staged.sim.messages.byType.nack).toBeGreaterThanOrEqual(2 * (MANY - 1));
    expect(staged.sim.verdict()).toEqual([]);
  });

  it("are requested before the group changes, too", () => {
    const members = range(0, last);
    const staged = deaf({ begin: "outside", sessions: false }, ({ sim }) => {
      for (const node of members) sim.command(node, { type: "change", view: 1, members, cut: [] });
    });
    staged.sim.run(100);
    staged.sim.heal();
    for (const node of members) staged.sim.command(node, { type: "flush", round: 1 });
    const cut = members.map((node) => (node === last ? 0 : 1));
    const holders = members.map((node) => (node === last ? last : 0));
    staged.sim.command(last, { type: "fill", round: 1, cut, holders });
    staged.sim.run(3_000);
    expect(staged.sim.events(last)).toContainEqual({ type: "filled", round: 1 });
  });
});

describe("a member that cannot receive from another", () => {
  it.each([3, 5])("gets its messages from the other members (N = %i)", (nodes) => {
    const staged = group(nodes);
    staged.sim.cut(0, nodes - 1); // Cut one way only: 0 still receives the requests.
    staged.send(0, "m");
    staged.sim.run(2_000);
    expect(staged.at(nodes - 1)).toEqual(["m"]);
    expect(staged.sim.verdict()).toEqual([]);
  });
});

type Command = IpMulticast["command"];
type Event = IpMulticast["event"];

/** Creates a group whose views the test changes, as `views` would do. */
function changing(nodes: number, options: Partial<IpMulticastOptions> = {}) {
  const staged = stage<IpMulticast>(ipMulticast({ begin: "outside", ...options }), nodes);
  const tell = (who: number[], command: Command): void => {
    for (const node of who) staged.sim.command(node, command);
  };
  return {
    ...staged,
    tell,
    install: (view: number, members: number[], cut: number[] = []) =>
      tell(members, { type: "change", view, members, cut }),
    /** Returns a node's events other than deliveries. */
    said: (node: number, type: Event["type"]) => staged.sim.events(node).filter((event) => event.type === type),
    state: (node: number) => staged.sim.world.state(node),
  };
}

/** Creates three nodes in a view. Node 2 has missed the second message from node 0, which has crashed. */
function withLoss() {
  const staged = changing(3);
  staged.install(1, [0, 1, 2]);
  staged.send(0, "a");
  staged.sim.run(120);
  staged.sim.cut(0, 2);
  staged.send(0, "b");
  staged.sim.run(staged.sim.now + 10);
  staged.sim.crash(0);
  return staged;
}

describe("ip-multicast when the group changes", () => {
  it("a node outside of every view keeps sent messages and accepts none", () => {
    const staged = changing(2);
    staged.send(0, "early");
    staged.install(1, [1]);
    staged.send(1, "alone");
    staged.sim.run(staged.sim.now + 2_000);
    expect(staged.at(0)).toEqual([]);
    expect(staged.state(0).waiting).toEqual(["early"]);
    staged.install(2, [0, 1], [1]);
    staged.sim.run(staged.sim.now + 2_000);
    expect([staged.at(0), staged.at(1)]).toEqual([["early"], ["alone", "early"]]);
    expect(staged.said(0, "installed")).toEqual([{ type: "installed", view: 2, members: [0, 1] }]);
  });

  it.each([2, 3])(
    "with %i members, a sender that missed the flush does not learn that all have its message, which is too late for the view",
    (nodes) => {
      const staged = changing(nodes);
      const all = range(0, nodes - 1);
      const others = all.slice(1);
      staged.install(1, all);
      staged.tell(others, { type: "flush", round: 1 });
      staged.send(0, "late");
      staged.sim.run(staged.sim.now + 5_000);
      expect(others.map((node) => staged.state(node).streams[0]?.acks[node])).toEqual(others.map(() => 1));
      expect(staged.said(0, "stable")).toEqual([]);
      staged.install(
        2,
        others,
        all.map(() => 0),
      );
      expect(others.map((node) => staged.at(node))).toEqual(others.map(() => []));
    },
  );

  it("a node outside has received nothing and obtains nothing", () => {
    const staged = changing(2);
    staged.tell([0], { type: "flush", round: 3 });
    staged.tell([0], { type: "fill", round: 3, cut: [5, 5], holders: [1, 1] });
    expect(staged.sim.events(0)).toEqual([
      { type: "flushed", round: 3, received: [] },
      { type: "filled", round: 3 },
    ]);
  });

  it("a flush blocks once, and reports the received messages each time", () => {
    const staged = withLoss();
    staged.tell([1, 2], { type: "flush", round: 1 });
    staged.tell([1, 2], { type: "flush", round: 2 });
    expect(staged.said(1, "blocked")).toHaveLength(1);
    expect(staged.said(1, "flushed")).toEqual([
      { type: "flushed", round: 1, received: [2, 0, 0] },
      { type: "flushed", round: 2, received: [2, 0, 0] },
    ]);
    expect(staged.said(2, "flushed").at(-1)).toEqual({ type: "flushed", round: 2, received: [1, 0, 0] });
  });

  it("a member that blocked early obtains messages up to the cut; the others continue only within their windows", () => {
    const staged = changing(3, { windowMessages: 2, maxWaiting: 2 });
    staged.install(1, [0, 1, 2]);
    staged.tell([2], { type: "flush", round: 1 });
    for (let n = 1; n <= 9; n++) {
      staged.send(0, `${n}`); // Node 2 no longer acknowledges.
      staged.sim.run(staged.sim.now + 200);
    }
    staged.tell([0, 1], { type: "flush", round: 1 });
    const [received = []] = staged.said(0, "flushed").map((event) => (event as { received: number[] }).received);
    expect(received[0]).toBe(2 + 2);
    staged.tell([2], { type: "fill", round: 1, cut: received, holders: [0, 1, 2] });
    staged.sim.run(staged.sim.now + 5_000);
    expect(staged.said(2, "filled")).toEqual([{ type: "filled", round: 1 }]);
    expect(staged.sim.violations).toEqual([]);
  });

  it("messages that waited for room belong to this view and are sent before the flush", () => {
    const staged = changing(2, { windowMessages: 2 });
    staged.install(1, [0, 1]);
    for (const payload of ["a", "b", "c", "d"]) staged.send(0, payload);
    expect(staged.state(0).waiting).toEqual(["c", "d"]);
    staged.tell([0], { type: "flush", round: 1 });
    expect(staged.said(0, "flushed")).toEqual([{ type: "flushed", round: 1, received: [4, 0] }]);
    staged.send(0, "e");
    staged.tell([1], { type: "flush", round: 1 });
    staged.tell([1], { type: "fill", round: 1, cut: [4, 0], holders: [0, 1] });
    staged.sim.run(500);
    staged.install(2, [0, 1], [4, 0]);
    staged.sim.run(1_000);
    expect(staged.at(1)).toEqual(["a", "b", "c", "d", "e"]);
    expect(staged.ids(1).at(-1)).toBe("0.1");
    expect(staged.sim.violations).toEqual([]);
  });

  it("a member gets missing parts of the cut from a holder after the sender crashed; then all deliver the same", async () => {
    const staged = withLoss();
    staged.tell([1, 2], { type: "flush", round: 1 });
    staged.send(1, "next");
    staged.tell([2], { type: "fill", round: 1, cut: [2, 0, 0], holders: [1, 1, 2] });
    staged.sim.run(staged.sim.now + 20);
    expect(staged.said(2, "filled")).toEqual([{ type: "filled", round: 1 }]);
    expect(staged.at(2)).toEqual(["a"]); // Node 2 is blocked: it delivers nothing before the view.
    staged.install(2, [1, 2], [2, 0, 0]);
    staged.sim.run(staged.sim.now + 2_000);
    expect([staged.at(1), staged.at(2)]).toEqual([
      ["a", "b", "next"],
      ["a", "b", "next"],
    ]);
    const order = staged.sim.events(2).map((event) => ("payload" in event ? event.payload : event.type));
    expect(order.slice(order.indexOf("blocked"))).toEqual(["blocked", "flushed", "filled", "b", "installed", "next"]);
    expect(staged.ids(2)).toEqual(["0.1", "0.2", "1.1"]);
    expect(staged.sim.violations).toEqual([]);
    await expect(staged.story()).toMatchFileSnapshot("stories/change.txt");
  });

  it("if a holder does not answer, the next one is asked", () => {
    const staged = changing(4);
    staged.install(1, [0, 1, 2, 3]);
    staged.sim.cut(0, 2);
    staged.send(0, "m");
    staged.sim.run(11);
    for (const node of [0, 1]) staged.sim.crash(node);
    staged.tell([2, 3], { type: "flush", round: 1 });
    staged.tell([2], { type: "fill", round: 1, cut: [1, 0, 0, 0], holders: [1, 3, 3, 3] });
    staged.sim.run(500);
    expect(staged.said(2, "filled")).toEqual([{ type: "filled", round: 1 }]);
  });

  it("messages received beyond the cut are delivered by no member", () => {
    const staged = withLoss();
    staged.tell([1, 2], { type: "flush", round: 1 });
    expect(() => staged.install(2, [1, 2], [1, 0, 0])).toThrow("before view 2, got 2,0,0"); // Node 1 has received it.
    const other = changing(3);
    other.install(1, [0, 1, 2]);
    other.tell([1, 2], { type: "flush", round: 1 });
    other.send(0, "late");
    other.sim.run(11);
    expect(other.state(1).streams[0]?.acks).toEqual([1, 1, 0]);
    other.install(2, [1, 2], [0, 0, 0]);
    other.sim.crash(0);
    other.sim.run(1_000);
    expect([other.at(1), other.at(2)]).toEqual([[], []]);
  });

  it("a cut that this node does not hold is an error, not a silent loss", () => {
    const staged = withLoss();
    staged.tell([1, 2], { type: "flush", round: 1 });
    expect(() => staged.tell([2], { type: "change", view: 2, members: [1, 2], cut: [2, 0, 0] })).toThrow(
      "expected to have received exactly the messages up to 2,0,0 from the members 0,1,2 before view 2, got 1,0,0",
    );
    expect(() => staged.tell([2], { type: "change", view: 2, members: [1, 2], cut: [2] })).toThrow("got 1,0,0");
  });

  it("ignores a fill for another group", () => {
    const staged = withLoss();
    staged.tell([2], { type: "fill", round: 1, cut: [2, 0], holders: [1, 1] });
    expect(staged.said(2, "filled")).toEqual([]);
    expect(staged.state(2).fill).toBeNull();
  });

  it("an ejected node discards undelivered messages and keeps waiting ones", () => {
    const staged = withLoss();
    staged.tell([1], { type: "flush", round: 1 });
    staged.send(1, "waits");
    staged.tell([1], { type: "eject" });
    expect(staged.said(1, "ejected")).toEqual([{ type: "ejected" }]);
    expect(staged.state(1)).toMatchObject({ phase: "outside", members: [], streams: [], waiting: ["waits"] });
    staged.install(5, [1, 2], [1, 0, 0]);
    staged.sim.run(staged.sim.now + 2_000);
    expect(staged.at(2).at(-1)).toBe("waits");
    expect(staged.ids(2).at(-1)).toBe("1.1"); // Numbers restart in each view.
  });

  it("timers of the previous view stop, and its late messages are dropped", () => {
    const staged = withLoss();
    staged.sim.run(staged.sim.now + 45); // A node is repeating requests for the crashed node's messages.
    staged.tell([1, 2], { type: "flush", round: 1 });
    staged.tell([2], { type: "fill", round: 1, cut: [2, 0, 0], holders: [1, 1, 2] });
    staged.sim.run(staged.sim.now + 25);
    staged.install(2, [1, 2], [2, 0, 0]);
    staged.sim.run(staged.sim.now + 2_000);
    for (const node of [1, 2])
      expect(staged.state(node)).toMatchObject({
        talk: "none",
        isNacking: false,
        isAskingAgain: false,
        isRepairing: false,
      });
    for (const node of range(1, 2)) expect(staged.state(node).streams.flatMap(({ kept }) => kept)).toEqual([]);
  });
});
