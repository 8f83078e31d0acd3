import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { random } from "../../../core/random.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { neighbourhood } from "./gossip.ts";
import { type SuperPeerTokens, type SuperPeerTokensOptions, superPeerTokens } from "./super-peer-tokens.ts";
import { space } from "./vocabulary.ts";

const ROUND_MS = 500;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

interface Setting {
  options?: Partial<SuperPeerTokensOptions>;
  delayMs?: number | readonly [number, number];
  seed?: number;
  story?: string[];
  properties?: "every step" | "at the end";
}

/** Creates nodes and starts all of them. */
function stage(
  nodes: number,
  { options = {}, delayMs = 10, seed = 1, story, properties = "at the end" }: Setting = {},
) {
  const sim = simulation<SuperPeerTokens>({
    protocol: superPeerTokens(options),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    properties,
    ...(story === undefined ? {} : { trace: (entry) => story.push(logLine(entry)) }),
  });
  for (const node of range(0, nodes - 1)) sim.start(node);
  return sim;
}

type Sim = Simulation<SuperPeerTokens>;
const broken = (sim: Sim): string[] => sim.verdict().map(({ property }) => property);
const holders = (sim: Sim): NodeId[] => sim.world.alive.filter((node) => sim.world.state(node).token !== null);
const superPeers = (sim: Sim) => sim.world.alive.map((node) => sim.world.state(node).superPeer);

/** Measures how unevenly nodes are distributed among the nearest of `chosen`: standard deviation divided by mean. */
function unevenness(nodes: number, chosen: readonly NodeId[]): number {
  const { pointOf, distance } = space({ dimensions: 2, positions: [] });
  const loads = new Map(chosen.map((node) => [node, 0]));
  for (const node of range(0, nodes - 1)) {
    const away = chosen.map((each) => distance(pointOf(node), pointOf(each)));
    const nearest = chosen[away.indexOf(Math.min(...away))] as NodeId;
    loads.set(nearest, (loads.get(nearest) ?? 0) + 1);
  }
  const mean = nodes / chosen.length;
  return Math.sqrt(sum([...loads.values()].map((load) => (load - mean) ** 2)) / chosen.length) / mean;
}

/** Eight nodes on a circle. The tokens start at nodes 1 and 5, which are adjacent. */
const circle = {
  dimensions: 1,
  share: 0.25,
  positions: [0, 1, 5, 3, 4, 2, 6, 7].map((eighth) => [eighth / 8]),
  holdRounds: 2,
  settleRounds: 4,
};
const telling = (story: readonly string[]): string =>
  story.filter((line) => !/ (?:gossip|answer|heir) |times out|message lost/.test(line)).join("\n");

describe("super-peer-tokens: a worked example", () => {
  it("two adjacent tokens on a circle of eight nodes push each other apart", async () => {
    const story: string[] = [];
    const sim = stage(8, { options: circle, story, properties: "every step" });
    const [first, second] = holders(sim) as [NodeId, NodeId];
    sim.run(40 * ROUND_MS);
    expect(broken(sim)).toEqual([]);
    const [left, right] = holders(sim) as [NodeId, NodeId];
    expect([first, second, left, right]).toEqual([1, 5, 0, 3]);
    // No node is closer to the target of node 3's token. Node 5 is at 2/8, and node 2 at 5/8.
    expect(superPeers(sim)).toEqual([0, 0, 3, 3, 3, 3, 0, 0]);
    await expect(`${telling(story)}\n`).toMatchFileSnapshot("../stories/super-peer-tokens-circle.txt");
  });

  it("the successor recreates a token that was lost with its node, in the next epoch", async () => {
    const story: string[] = [];
    const sim = stage(8, { options: circle, story });
    sim.run(40 * ROUND_MS + 250);
    story.length = 0;
    const [lost] = holders(sim) as [NodeId];
    const { token, heir } = sim.world.state(lost);
    sim.crash(lost);
    sim.run(80 * ROUND_MS);
    expect(broken(sim)).toEqual([]);
    expect(holders(sim).map((node) => sim.world.state(node).token)).toContainEqual({
      ...token,
      epoch: 1,
      moves: expect.any(Number) as number,
    });
    expect(telling(story)).toContain(`node ${heir}  sends check`);
    await expect(`${telling(story)}\n`).toMatchFileSnapshot("../stories/super-peer-tokens-lost.txt");
  });
});

describe("super-peer-tokens: what it costs", () => {
  it.each([2, 3, 4, 7, 16, 64])("N = %i: a round takes 2N messages of gossip, and one to each successor", (nodes) => {
    const sim = stage(nodes, { options: { share: 0.25 } });
    sim.run(ROUND_MS / 2);
    const { gossip = 0, answer = 0, heir = 0, ...others } = sim.messages.byType;
    expect(gossip + answer).toBe(superPeerTokens().costs[0]?.messages(nodes));
    expect(heir).toBe(Math.max(1, Math.round(nodes / 4)));
    expect(others).toEqual({});
  });
});

describe("super-peer-tokens: guarantees", () => {
  it("200 nodes, 10 tokens: they settle, none is lost, all nodes use the nearest, and they are spread out", () => {
    const [nodes, tokens] = [200, 10];
    const sim = stage(nodes, { options: { share: 0.05 }, delayMs: [5, 50] });
    const { firstToken } = neighbourhood(space({ dimensions: 2, positions: [] }), range(0, nodes - 1), 0.05);
    const before = range(0, nodes - 1).filter((node) => firstToken(node) !== null);
    sim.run(100 * ROUND_MS);
    const settled = holders(sim);
    const moved = sim.messages.byType.move;
    sim.run(200 * ROUND_MS);
    expect(broken(sim)).toEqual([]);
    expect([holders(sim), sim.messages.byType.move]).toEqual([settled, moved]);
    expect([before.length, settled.length]).toEqual([tokens, tokens]);
    const { pointOf, distance } = space({ dimensions: 2, positions: [] });
    for (const node of range(0, nodes - 1)) {
      const away = (other: NodeId): number => distance(pointOf(node), pointOf(other));
      expect(away(sim.world.state(node).superPeer as NodeId)).toBe(Math.min(...settled.map(away)));
    }
    // Compare with the same number of random nodes, a hundred times.
    const chance = random(1);
    const byLot = range(1, 100).map(() => {
      const left = range(0, nodes - 1);
      return unevenness(
        nodes,
        range(1, tokens).map(() => left.splice(chance.below(left.length), 1)[0] as NodeId),
      );
    });
    expect(unevenness(nodes, settled)).toBeLessThan(0.6 * (sum(byLot) / byLot.length));
  });

  it.each([1, 2, 3])("in %i dimensions: no token moves more often than its bound, and all settle", (dimensions) => {
    const options = { dimensions, share: 0.1, threshold: 0.2, cooling: 1.5 };
    const bound = 1 + Math.log(12 / options.threshold) / Math.log(options.cooling);
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const sim = stage(60, { options, seed, delayMs: [5, 80] });
        sim.run(Math.ceil(bound + 2) * 8 * ROUND_MS);
        expect(broken(sim)).toEqual([]);
        for (const node of holders(sim)) expect(sim.world.state(node).token?.moves).toBeLessThanOrEqual(bound);
      }),
      { numRuns: 5 },
    );
  });

  type Deed = { kind: "crash" | "start"; node: NodeId; rounds: number };
  const deeds = fc.array(
    fc.record({
      kind: fc.constantFrom<Deed["kind"][]>("crash", "start"),
      node: fc.nat(39),
      rounds: fc.integer({ min: 12, max: 20 }),
    }),
    { maxLength: 8 },
  );

  it("crashes and recoveries, one after the other: as many tokens as before, each settled, all nodes served", {
    tags: ["long"],
  }, () => {
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, list) => {
        const sim = stage(40, { options: { share: 0.1 }, seed, delayMs: [5, 50], properties: "every step" });
        for (const { kind, node, rounds } of list) {
          sim.run(sim.now + rounds * ROUND_MS);
          const isAlive = sim.world.alive.includes(node);
          if (kind === "crash") isAlive && sim.crash(node);
          else isAlive || sim.start(node);
        }
        sim.run(sim.now + 200 * ROUND_MS);
        expect(broken(sim)).toEqual([]);
        expect(holders(sim)).toHaveLength(4);
      }),
      { numRuns: 15 },
    );
  });

  it("a node alone holds the only token", () => {
    const sim = stage(1);
    sim.run(20 * ROUND_MS);
    expect([broken(sim), superPeers(sim), sim.messages.total]).toEqual([[], [0], 0]);
  });
});

describe("super-peer-tokens: violated assumptions", () => {
  it("a holder and its successor crash at once: the token is lost permanently", () => {
    const sim = stage(40, { options: { share: 0.1 } });
    sim.run(100 * ROUND_MS);
    const [holder] = holders(sim) as [NodeId];
    sim.crash(sim.world.state(holder).heir as NodeId);
    sim.crash(holder);
    sim.run(200 * ROUND_MS);
    expect(broken(sim)).toEqual(["none lost"]);
    expect(holders(sim)).toHaveLength(3);
  });

  it("in a partition, tokens are recreated on the other side; after it heals, the tokens of later epochs survive", () => {
    const sim = stage(40, { options: { share: 0.1 } });
    sim.run(100 * ROUND_MS);
    const halves = [range(0, 19), range(20, 39)];
    sim.partition(halves);
    sim.run(160 * ROUND_MS);
    const during = broken(sim);
    sim.heal();
    sim.run(400 * ROUND_MS);
    expect(during).toContain("one holder");
    expect(holders(sim)).toHaveLength(4);
  });

  it("with almost no cooling, tokens keep moving", () => {
    const sim = stage(40, { options: { share: 0.2, step: 1, threshold: 0.0001, cooling: 1.0001 } });
    sim.run(300 * ROUND_MS);
    const before = sim.messages.byType.move ?? 0;
    sim.run(600 * ROUND_MS);
    expect(sim.messages.byType.move).toBeGreaterThan(before);
  });
});

describe("super-peer-tokens: every run, with time bounded", () => {
  const soon = {
    dimensions: 1,
    holdRounds: 1,
    settleRounds: 2,
    lostRounds: 2,
    moveRounds: 2,
    positions: [[0], [0.1], [0.5]],
  };
  const exploring = (share: number, more: Partial<SystemSpec> = {}) =>
    reaching(
      explore(
        systemFor({
          protocol: "super-peer-tokens",
          nodes: [0, 1, 2],
          options: { ...soon, share },
          initiators: [],
          timers: "quiet",
          ...more,
        }),
      ),
      "elected",
    );

  it.each<[string, number, Partial<SystemSpec>, number]>([
    ["of two tokens among three nodes", 0.67, {}, 4_551],
    ["with a crash", 0.67, { crashes: 1 }, 17_206],
  ])("%s: all claims hold", (_what, share, more, states) => {
    expect(exploring(share, more)).toMatchObject({ verdict: "holds", states });
  });

  it("one token, a crash and a recovery: all claims hold", { tags: ["long"] }, () => {
    expect(exploring(0.4, { crashes: 1, recoveries: 1 })).toMatchObject({ verdict: "holds", states: 52_015 });
  });

  it("one lost message may let two nodes hold a token for a while", () => {
    const { verdict, property } = exploring(0.67, { losses: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "one holder"]);
  });
});

describe("super-peer-tokens: options", () => {
  it.each<[Partial<SuperPeerTokensOptions>, string]>([
    [{ positions: [[0.5]] }, "expected super-peer-tokens.positions to be 2 numbers in [0, 1), got [0.5]"],
  ])("%j is rejected", (options, sentence) => {
    expect(() => superPeerTokens(options)).toThrow(sentence);
  });
});
