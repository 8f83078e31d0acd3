import { describe, expect, it } from "vitest";
import {
  about,
  expectEverybodyServed,
  exploreUses,
  MESSAGE_MS,
  shortestViolation,
  silent,
  stage,
  use,
} from "../../../test/protocols/mutex-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import { type Raymond, raymond, type Tree } from "./raymond.ts";

const trees: readonly Tree[] = ["binary", "star", "line"];

describe("raymond: the worked example", () => {
  it("5 and 3, far from each other, make requests: each privilege returns along the path of the request", async () => {
    const { sim, story, moments } = stage(raymond(), range(0, 6));
    sim.command(5, use(1));
    sim.run(35);
    sim.command(3, use(1));
    sim.command(4, use(1));
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual([5, 3, 4]);
    expect(sim.messages.byType).toEqual({ request: 8, privilege: 8 });
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/raymond-far-apart.txt");
  });
});

/** Returns the number of edges between two nodes of the tree, given by their indexes. */
function distance(tree: Tree, from: number, to: number): number {
  const up = (place: number): number =>
    tree === "binary" ? Math.floor((place - 1) / 2) : tree === "star" ? 0 : place - 1;
  if (from === to) return 0;
  return 1 + (from > to ? distance(tree, up(from), to) : distance(tree, from, up(to)));
}

/** Measures the messages and the time that an entry of `to` takes after one of `from`. */
function entryAfter(tree: Tree, nodes: number, from: number, to: number): { messages: number; time: number } {
  const { sim, moments } = stage(raymond({ tree }), range(0, nodes - 1));
  sim.command(from, use(1));
  sim.run();
  const [before, asked] = [sim.messages.total, sim.now];
  sim.command(to, use(1));
  sim.run();
  return {
    messages: sim.messages.total - before,
    time: ((moments("entered").at(-1)?.at ?? Number.NaN) - asked) / MESSAGE_MS,
  };
}

describe("raymond: what it costs", () => {
  describe.each(trees)("on a %s", (tree) => {
    const [here, farthest] = raymond({ tree }).costs;

    it.each(range(1, 9))("N = %i: between any two nodes, 2 messages and 2 message times per edge", (nodes) => {
      const all = range(0, nodes - 1).flatMap((from) => range(0, nodes - 1).map((to) => [from, to] as const));
      const found = all.map(([from, to]) => entryAfter(tree, nodes, from, to));
      const edges = all.map(([from, to]) => 2 * distance(tree, from, to));
      expect(found).toEqual(edges.map((messages) => ({ messages, time: messages })));
      expect(Math.max(...edges)).toBe(farthest?.messages(nodes));
      expect(Math.min(...edges)).toBe(here?.messages(nodes));
    });

    it.each([15, 16, 22, 23, 24, 31, 32, 64])(
      "N = %i: the formula is the longest distance, there and back",
      (nodes) => {
        const all = range(0, nodes - 1).flatMap((from) => range(0, nodes - 1).map((to) => distance(tree, from, to)));
        expect(2 * Math.max(...all)).toBe(farthest?.messages(nodes));
      },
    );

    it.each([2, 3, 7, 16])("N = %i: 4(N − 1)/N messages per entry if all nodes want to enter all the time", (nodes) => {
      const { sim } = stage(raymond({ tree }), range(0, nodes - 1));
      const rounds = 40;
      for (const node of range(0, nodes - 1)) sim.command(node, use(rounds));
      sim.run();
      const perEntry = sim.messages.total / (rounds * nodes);
      expect(perEntry).toBeLessThanOrEqual((4 * (nodes - 1)) / nodes);
      expect(perEntry).toBeGreaterThan(((4 * (nodes - 1)) / nodes) * 0.9);
    });
  });

  it.each([3, 7, 15, 31, 63])("N = %i, a full binary tree: 4·log2((N + 1)/2) at worst, 4 on a star", (nodes) => {
    expect(raymond().costs[1]?.messages(nodes)).toBe(4 * Math.log2((nodes + 1) / 2));
    expect(raymond({ tree: "star" }).costs[1]?.messages(nodes)).toBe(4);
  });

  it.each(trees)("hand-over takes one message time per edge between the two: on a %s", (tree) => {
    const { sim, moments } = stage(raymond({ tree }), range(0, 6));
    for (const node of [5, 6]) sim.command(node, use(1));
    sim.run();
    const [left] = moments("exited");
    const [, second] = moments("entered");
    expect(second).toEqual({ node: 6, at: (left?.at ?? 0) + distance(tree, 5, 6) * MESSAGE_MS });
  });
});

describe("raymond: what it guarantees", () => {
  it.each(trees)("ME1, ME2: any workloads, any delays: one at a time, all are served: on a %s", (tree) => {
    expectEverybodyServed(6, (links) => stage(raymond({ tree }), range(0, 5), links), { numRuns: 60 });
  });

  it("nodes send messages to their neighbors only", () => {
    const { sim, story } = stage(raymond({ tree: "line" }), range(0, 4));
    for (const node of range(0, 4)) sim.command(node, use(2));
    sim.run();
    const ways = [...story().matchAll(/node (\d) +sends mutex\.\w+(?: token \d+)? to (\d)/g)].map(([, from, to]) =>
      Math.abs(Number(from) - Number(to)),
    );
    expect(ways.length).toBeGreaterThan(0);
    expect(ways.every((edges) => edges === 1)).toBe(true);
  });

  it("ignores a repeated request or privilege, and a command out of turn", () => {
    const { sim } = stage(raymond(), [0, 1, 2]);
    for (const node of [0, 1]) sim.command(node, use(1));
    sim.run(15);
    const states = () => JSON.stringify([0, 1].map((node) => sim.world.state(node)));
    const before = states();
    const { receive, command } = raymond();
    const [root, leaf] = [0, 1].map((node) => sim.world.state(node).mutex) as [Raymond["state"], Raymond["state"]];
    receive.request(root, 1, { type: "request" }, silent);
    receive.privilege(root, 1, { type: "privilege", token: root.token }, silent);
    command.enter(leaf, { type: "enter" }, silent);
    command.exit(leaf, { type: "exit" }, silent);
    expect(states()).toBe(before);
  });
});

describe("raymond: every run", () => {
  it.each([
    ["star", "FIFO links", { network: "fifo" }, 144],
    ["star", "links in any order", { network: "bag" }, 158],
    ["line", "links in any order", { network: "bag" }, 166],
    ["line", "links in any order, and a message that arrives twice", { network: "bag", duplications: 1 }, 2_242],
  ] as const)(
    "of 3 nodes on a %s that enter once each keeps ME1 and ME2, and the tokens grow: %s",
    (tree, _links, options, states) => {
      expect(exploreUses(raymond({ tree }), 3, 1, options)).toMatchObject({ verdict: "holds", states });
    },
  );

  it("the same holds for 3 nodes on a line that enter twice each", () => {
    expect(exploreUses(raymond({ tree: "line" }), 3, 2)).toMatchObject({ verdict: "holds", states: 2_215 });
  });

  it("the same holds for 5 nodes in a binary tree that enter once each", () => {
    expect(exploreUses(raymond(), 5, 1)).toMatchObject({ verdict: "holds", states: 8_762 });
  });

  it("a crash of a leaf that neither has nor wants the privilege blocks no node", () => {
    const { sim, moments } = stage(raymond(), [0, 1, 2]);
    sim.crash(2);
    for (const node of [0, 1]) sim.command(node, use(2));
    sim.run();
    expect(moments("entered")).toHaveLength(4);
    expect(sim.verdict()).toEqual([]);
  });

  it("ME2 is violated by a crash of a node on the path, although the privilege is elsewhere", () => {
    const { sim } = stage(raymond({ tree: "line" }), [0, 1, 2]);
    sim.crash(1);
    sim.command(2, use(1));
    sim.run();
    expect(sim.verdict().map(({ property }) => property)).toEqual(["ME2 liveness", "ME2 no starvation"]);
  });

  const forgetful = { crashes: 1, recoveries: 1 };
  it.each<[string, object, string, string[]]>([
    ["a lost message", { losses: 1 }, "ME2 liveness", ["1 command", "0 lose request from 1"]],
    [
      "a node that forgets that it passed the privilege on",
      { ...forgetful, ...about(raymond({ tree: "line" }), "ME1 safety") },
      "ME1 safety",
      ["1 command", "0 receive request from 1", "0 crash", "0 start", "0 command", "1 receive privilege from 0"],
    ],
    [
      "a node that restarts its token numbers",
      { ...forgetful, ...about(raymond({ tree: "line" }), "tokens grow") },
      "tokens grow",
      ["0 command", "0 crash", "0 start", "0 command"],
    ],
    ["a crash of the node with the privilege", { crashes: 1 }, "ME2 liveness", ["0 crash", "1 command"]],
  ])("with %s: violated", (_fault, options, property, moves) => {
    expect(shortestViolation(raymond({ tree: "line" }), options)).toEqual([property, moves]);
  });
});
