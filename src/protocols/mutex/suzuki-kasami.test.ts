import { describe, expect, it } from "vitest";
import {
  about,
  expectEverybodyServed,
  exploreUses,
  MESSAGE_MS,
  STAY_MS,
  shortestViolation,
  silent,
  stage,
  use,
} from "../../../test/protocols/mutex-stage.ts";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { suzukiKasami } from "./suzuki-kasami.ts";

describe("suzuki-kasami: the worked example", () => {
  it("0 has the privilege, 2 requests it and then 1: it moves to 1, from there to 2, and stays there", async () => {
    const { sim, story, moments } = stage(suzukiKasami(), [0, 1, 2]);
    sim.command(0, use(1));
    sim.run(5);
    sim.command(2, use(1));
    sim.run(10);
    sim.command(1, use(1));
    sim.run();
    const handOver = STAY_MS + MESSAGE_MS;
    sim.command(2, use(1));
    sim.run();
    expect(moments("entered")).toEqual([
      { node: 0, at: 0 },
      { node: 1, at: handOver },
      { node: 2, at: 2 * handOver },
      { node: 2, at: 2 * handOver + STAY_MS },
    ]);
    expect(sim.messages.byType).toEqual({ request: 4, privilege: 2 });
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/suzuki-kasami-two-wait.txt");
  });
});

describe("suzuki-kasami: what it costs", () => {
  const [elsewhere, here] = suzukiKasami().costs;

  eachSize(
    1,
    64,
    "N = %i: N − 1 requests and one privilege message per entry, and none at the node with the privilege",
    (nodes) => {
      const { sim } = stage(suzukiKasami(), range(1, nodes));
      sim.command(nodes, use(1));
      sim.run();
      expect(sim.messages.total).toBe(nodes === 1 ? 0 : nodes);
      expect(sim.messages.total).toBe(elsewhere?.messages(nodes));
      sim.command(nodes, use(3));
      sim.run();
      expect(sim.messages.total).toBe((elsewhere?.messages(nodes) ?? 0) + 3 * (here?.messages(nodes) ?? 0));
    },
  );

  it.each([2, 3, 5, 8, 16])("N = %i: the same if all others want to enter at once", (nodes) => {
    const { sim } = stage(suzukiKasami(), range(0, nodes - 1));
    for (const node of range(1, nodes - 1)) sim.command(node, use(1));
    sim.run();
    expect(sim.messages.byType).toEqual({ request: (nodes - 1) ** 2, privilege: nodes - 1 });
  });

  it("client delay is 2 message times, or none for the node with the privilege; hand-over 1", () => {
    const { sim, moments } = stage(suzukiKasami(), range(0, 3));
    for (const node of [1, 2, 3]) sim.command(node, use(1));
    sim.run();
    const turns = range(0, 2).map((turn) => 2 * MESSAGE_MS + turn * (STAY_MS + MESSAGE_MS));
    expect(moments("entered").map(({ at }) => at)).toEqual(turns);
    sim.command(3, use(1));
    expect(moments("entered").at(-1)).toEqual({ node: 3, at: sim.now });
  });
});

describe("suzuki-kasami: what it guarantees", () => {
  it("ME1, ME2: any workloads, any delays: one at a time, all are served, and the tokens count the entries", () => {
    expectEverybodyServed(5, (links) => stage(suzukiKasami(), range(0, 4), links), {
      also({ sim, moments }) {
        const tokens = range(0, 4).map((node) => sim.world.state(node).mutex.token);
        expect(Math.max(...tokens)).toBe(moments("entered").length);
      },
    });
  });

  it("ignores an outdated request: one with that number has been granted", () => {
    const { sim, moments } = stage(suzukiKasami(), [0, 1, 2]);
    sim.command(1, use(1));
    sim.run(25);
    sim.command(2, use(1));
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual([1, 2]);
    const holder = sim.world.state(2).mutex;
    const before = JSON.stringify(holder);
    suzukiKasami().receive.request(holder, 1, { type: "request", n: 1 }, silent);
    expect(JSON.stringify(holder)).toBe(before);
  });

  it("ignores a repeated privilege, and a command out of turn", () => {
    const { sim } = stage(suzukiKasami(), [0, 1, 2]);
    sim.command(1, use(1));
    sim.run(25);
    const states = () => JSON.stringify([0, 1].map((node) => sim.world.state(node)));
    const before = states();
    const { receive, command } = suzukiKasami();
    const inside = sim.world.state(1).mutex;
    receive.privilege(inside, 0, { type: "privilege", queue: [], ln: {}, entries: 0 }, silent);
    command.enter(inside, { type: "enter" }, silent);
    command.exit(sim.world.state(0).mutex, { type: "exit" }, silent);
    expect(states()).toBe(before);
  });
});

describe("suzuki-kasami: every run", () => {
  it.each([
    ["FIFO links", { network: "fifo" }, 591],
    ["links in any order", { network: "bag" }, 729],
    ["links in any order, and a message that arrives twice", { network: "bag", duplications: 1 }, 4_817],
  ] as const)(
    "of 3 nodes that enter once each keeps ME1 and ME2, and the tokens grow: %s",
    (_links, options, states) => {
      expect(exploreUses(suzukiKasami(), 3, 1, options)).toMatchObject({ verdict: "holds", states });
    },
  );

  it("the same holds for 3 nodes that enter twice each", { tags: ["long"] }, () => {
    expect(exploreUses(suzukiKasami(), 3, 2)).toMatchObject({ verdict: "holds", states: 17_956 });
  });

  it("a crash of a node that neither has nor wants the privilege blocks no node", () => {
    const { sim, moments } = stage(suzukiKasami(), [0, 1, 2]);
    sim.crash(2);
    for (const node of [0, 1]) sim.command(node, use(2));
    sim.run();
    expect(moments("entered")).toHaveLength(4);
    expect(sim.verdict()).toEqual([]);
  });

  it("a node that made a request, crashed and recovered before the privilege arrived passes it on", () => {
    const { sim, moments } = stage(suzukiKasami(), [0, 1, 2]);
    for (const node of [0, 1]) sim.command(node, use(1));
    sim.run(15);
    sim.crash(1);
    sim.start(1);
    sim.command(2, use(1));
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual([0, 2]);
    expect(sim.verdict()).toEqual([]);
  });

  const forgetful = { crashes: 1, recoveries: 1 };
  it.each<[string, object, string, string[]]>([
    [
      "a crash that may lose the privilege",
      { crashes: 1 },
      "ME2 liveness",
      ["0 crash", "1 command", "2 receive request from 1"],
    ],
    [
      "a lost message",
      { losses: 1 },
      "ME2 liveness",
      ["1 command", "0 lose request from 1", "2 receive request from 1"],
    ],
    [
      "a node that forgets that it passed the privilege on",
      { ...forgetful, ...about(suzukiKasami(), "ME1 safety") },
      "ME1 safety",
      ["1 command", "0 receive request from 1", "0 crash", "0 start", "0 command", "1 receive privilege from 0"],
    ],
    [
      "a node that restarts its count of entries",
      { ...forgetful, ...about(suzukiKasami(), "tokens grow") },
      "tokens grow",
      ["0 command", "0 crash", "0 start", "0 command"],
    ],
  ])("with %s: violated", (_fault, options, property, moves) => {
    expect(shortestViolation(suzukiKasami(), options)).toEqual([property, moves]);
  });
});
