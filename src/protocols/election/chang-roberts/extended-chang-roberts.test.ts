import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ElectionSetting, electionStage, rings } from "../../../../test/protocols/election-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { random } from "../../../core/random.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import {
  type ExtendedChangRoberts,
  type ExtendedChangRobertsOptions,
  extendedChangRoberts,
} from "./extended-chang-roberts.ts";

interface Setting extends Omit<ElectionSetting, "nodes"> {
  readonly ring: readonly NodeId[];
}

/** Creates idle nodes on a ring. */
const stage = ({ ring, ...setting }: Setting) =>
  electionStage(extendedChangRoberts({ ring }), { ...setting, nodes: ring });

/** Counts the messages of an election that these nodes call at the same time. */
function cost(ring: readonly NodeId[], callers: readonly NodeId[]): number {
  const { sim } = stage({ ring });
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  expect(sim.violations).toEqual([]);
  expect(leaders(sim)).toEqual(new Set([Math.max(...ring)]));
  return sim.messages.total;
}

const leaders = (sim: Simulation<ExtendedChangRoberts>) =>
  new Set(sim.world.alive.map((node) => sim.world.state(node).elected));
const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const harmonic = (nodes: number): number => range(1, nodes).reduce((sum, k) => sum + 1 / k, 0);

function shuffled(nodes: number, source: { bits(): number }): number[] {
  const drawn = range(0, nodes - 1).map((node) => ({ node, at: source.bits() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ node }) => node);
}

describe("chang-roberts: the worked example of the catalogue", () => {
  it("on the ring 1, 15, 9, 4, 3, 17, 24 node 1 notices that 28 has crashed: 24 is elected", async () => {
    const { sim, story } = stage({ ring: [1, 15, 9, 4, 3, 17, 24] });
    sim.command(1, { type: "call" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([24]));
    // 6 messages to reach node 24, 7 for its lap, and 7 elected messages: 3N − 1, since node 1 is just after the
    // highest.
    expect(sim.messages.byType).toEqual({ election: 13, elected: 7 });
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/chang-roberts-ring-of-seven.txt");
  });

  it("with several callers the lower ids are swallowed", async () => {
    const { sim, story } = stage({ ring: [1, 15, 9, 4, 3, 17, 24] });
    for (const caller of [9, 4, 17]) sim.command(caller, { type: "call" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([24]));
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/chang-roberts-three-callers.txt");
  });
});

describe("chang-roberts: what it costs", () => {
  eachSize(2, 64, "N = %i: 2N and 3N − 1 for one caller, N(N + 1)/2 + N and 3N − 1 for all", (nodes) => {
    const ascending = range(1, nodes);
    const measured = [
      cost(ascending, [nodes]),
      cost(ascending, [1]),
      cost([...ascending].reverse(), ascending),
      cost(ascending, ascending),
      costOfResigning([...ascending].reverse()),
      costOfResigning(ascending),
    ];
    const all = (nodes * (nodes + 1)) / 2 + nodes;
    expect(measured).toEqual([2 * nodes, 3 * nodes - 1, all, 3 * nodes - 1, 2 * nodes + 1, 3 * nodes - 1]);
    expect(measured).toEqual(extendedChangRoberts().costs.map(({ messages }) => messages(nodes)));
  });

  const title = "N = %i, one caller, every ring: 2N at best, 2.5N − 0.5 in the mean, 3N − 1 at worst";
  it.each(range(2, 6))(title, (nodes) => everyRing(nodes));
  it.each([7])(title, { tags: ["long"] }, (nodes) => everyRing(nodes));

  function everyRing(nodes: number): void {
    const costs = rings(nodes).flatMap((ring) => ring.map((caller) => cost(ring, [caller])));
    expect(Math.min(...costs)).toBe(2 * nodes);
    expect(mean(costs)).toBe(2.5 * nodes - 0.5);
    expect(Math.max(...costs)).toBe(3 * nodes - 1);
  }

  it.each(range(2, 7))("N = %i, all call, every ring: 3N − 1, N·H(N) + N, N(N + 1)/2 + N", (nodes) => {
    const costs = rings(nodes).map((ring) => cost(ring, ring));
    expect(Math.min(...costs)).toBe(3 * nodes - 1);
    expect(mean(costs)).toBeCloseTo(nodes * harmonic(nodes) + nodes, 9);
    expect(Math.max(...costs)).toBe((nodes * (nodes + 1)) / 2 + nodes);
  });

  it("N = 1,000, all call, random rings: the mean is within 1 % of N·H(N) + N", () => {
    const nodes = 1_000;
    const source = random(1);
    const measured = range(1, 40).flatMap(() => {
      const ring = shuffled(nodes, source);
      // Use each ring in both directions. If one direction is expensive, the other is cheap, so the mean converges
      // sooner.
      return [ring, ring.toReversed()].map((each) => {
        // Properties would check every node after every step, but only the messages count here.
        const protocol = { ...extendedChangRoberts({ ring: each }), properties: [] };
        const sim = simulation<ExtendedChangRoberts>({ protocol, nodes: each, seed: 1, delayMs: 1 });
        for (const node of each) sim.wake(node);
        for (const node of each) sim.command(node, { type: "call" });
        sim.run();
        return sim.messages.total;
      });
    });
    const ratio = mean(measured) / (nodes * harmonic(nodes) + nodes);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.01);
  });
});

describe("chang-roberts: what it guarantees", () => {
  it("E1, E2: on any ring, with any callers, up to N at once and repeatedly, the highest node is elected", () => {
    const calls = fc.array(fc.record({ place: fc.nat(7), at: fc.nat(300) }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 8 }), calls, (seed, nodes, calling) => {
        const ring = shuffled(nodes, random(seed));
        const { sim } = stage({ ring, seed, delayMs: [1, 40] });
        for (const { place, at } of calling.sort((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(ring[place % nodes] as NodeId, { type: "call" });
        }
        sim.run();
        expect(sim.violations).toEqual([]);
        expect(leaders(sim)).toEqual(new Set([nodes - 1]));
      }),
      { numRuns: 300 },
    );
  });

  it("a crash during the election leaves it unfinished: E2 is violated, participants wait forever", async () => {
    const { sim, story } = stage({ ring: [0, 1, 2, 3] });
    sim.command(0, { type: "call" });
    sim.run(15);
    sim.crash(3);
    sim.run();
    expect(sim.violations.map(({ property }) => property)).toEqual(["E2 liveness"]);
    expect(sim.world.alive.map((node) => sim.world.state(node).part)).toEqual([
      "participant",
      "participant",
      "participant",
    ]);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/chang-roberts-crash.txt");
  });

  it("ignores a call during an election, and an announcement that has gone round", () => {
    const { sim } = stage({ ring: [0, 1, 2] });
    sim.command(0, { type: "call" });
    const before = JSON.stringify(sim.world.state(0));
    const { command, receive } = extendedChangRoberts();
    const silent = { self: 0, peers: [1, 2] } as never; // Throws if the handler uses the context.
    command.call(sim.world.state(0), { type: "call" }, silent);
    expect(JSON.stringify(sim.world.state(0))).toBe(before);
    sim.run();
    const settled = JSON.stringify(sim.world.state(0));
    receive.elected(sim.world.state(0), 2, { type: "elected", id: 2, round: 1 }, silent);
    receive.election(sim.world.state(0), 2, { type: "election", id: 2, rank: 2, round: 1 }, silent); // A duplicate.
    // This message is from an earlier election.
    receive.election(sim.world.state(0), 2, { type: "election", id: 1, rank: 1, round: 0 }, silent);
    expect(JSON.stringify(sim.world.state(0))).toBe(settled);
  });

  it("the highest rank is elected, and ids break ties: the least loaded of four nodes", () => {
    const ranks = [1 / 8, 1 / 2, 1 / 2, 1 / 4].map((rank, node) => ({ node, rank }));
    const ring = [0, 1, 2, 3];
    const sim = simulation<ExtendedChangRoberts>({
      protocol: extendedChangRoberts({ ring, ranks }),
      nodes: ring,
      seed: 1,
      delayMs: 10,
    });
    for (const node of ring) sim.wake(node);
    sim.command(3, { type: "call" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([2]));
    sim.command(0, { type: "rank", rank: 1 });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([2])); // The rank counts in future elections.
    sim.command(1, { type: "call" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([0]));
    expect(sim.violations).toEqual([]);
  });

  it("a node alone on the ring elects itself, without a message", () => {
    const { sim } = stage({ ring: [5] });
    sim.command(5, { type: "call" });
    expect([leaders(sim), sim.messages.total]).toEqual([new Set([5]), 0]);
  });

  it("without a given ring, ids ascend clockwise", () => {
    const { init } = extendedChangRoberts();
    expect(
      [1, 4, 9].map(
        (node, _, all) =>
          init(
            node,
            all.filter((peer) => peer !== node),
          ).next,
      ),
    ).toEqual([4, 9, 1]);
  });

  it.each<[Partial<ExtendedChangRobertsOptions>]>([
    [{ ring: [0, 1] }],
    [{ ring: [0, 1, 3] }],
    [{ ring: [0, 1, 2, 1] }],
  ])("rejects %j for the nodes 0, 1, 2", (options) => {
    const init = () => extendedChangRoberts(options).init(2, [0, 1]);
    expect(init).toThrow("expected chang-roberts.ring to be every node once, got [0,1");
  });
});

/** Counts the messages from the resignation of the leading highest node until the next one leads. */
function costOfResigning(ring: readonly NodeId[]): number {
  const [leader, successor] = ring.toSorted((a, b) => b - a) as [NodeId, NodeId];
  const { sim } = stage({ ring });
  sim.command(leader, { type: "call" });
  sim.run();
  const before = sim.messages.total;
  sim.command(leader, { type: "resign" });
  sim.run();
  expect(leaders(sim)).toEqual(new Set([successor]));
  return sim.messages.total - before;
}

describe("chang-roberts: the leader resigns", () => {
  it("on the ring 1, 15, 9, 4, 3, 17, 24 node 24 leads and resigns: 17 is elected, and 24 again when it stands", async () => {
    const { sim, story } = stage({ ring: [1, 15, 9, 4, 3, 17, 24] });
    sim.command(1, { type: "call" });
    sim.run();
    story.length = 0;
    sim.command(24, { type: "resign" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([17]));
    expect(sim.violations).toEqual([]);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/chang-roberts-resignation.txt");
    sim.command(24, { type: "stand" });
    sim.run();
    expect(leaders(sim)).toEqual(new Set([24]));
  });

  it.each(range(2, 6))("N = %i, every ring: 2N plus the number of steps to its successor", (nodes) => {
    for (const ring of rings(nodes)) {
      const [leader, successor] = ring.toSorted((a, b) => b - a) as [NodeId, NodeId];
      const steps = (ring.indexOf(successor) - ring.indexOf(leader) + nodes) % nodes;
      expect(costOfResigning(ring)).toBe(2 * nodes + steps);
    }
  });

  it("holds in every run: each of three nodes may call and resign, one stands again", () => {
    const asks = (node: NodeId) =>
      node === 2
        ? ([{ type: "call" }, { type: "resign" }, { type: "stand" }] as const)
        : ([{ type: "call" }, { type: "resign" }] as const);
    expect(exploring(3, { commands: () => [], asks }).verdict).toBe("holds");
  });
});

/** Explores every run. Each node may call while it knows no leader. */
const exploring = (nodes: number, more: Partial<ExploreOptions<ExtendedChangRoberts>> = {}) =>
  reaching(
    explore<ExtendedChangRoberts>({
      protocol: extendedChangRoberts({ ring: range(0, nodes - 1).map((place) => (5 * place + 3) % nodes) }),
      nodes: range(0, nodes - 1),
      network: "fifo",
      timers: "free",
      begin: "idle",
      commands: ({ part, elected }) => (part === "participant" || elected !== null ? [] : [{ type: "call" }]),
      ...more,
    }),
    "elected",
  );

describe("chang-roberts: every run", () => {
  // For 8 nodes, this is exactly SPIN's count for the textbook's transition system.
  it.each([
    [4, 63],
    [6, 2_206],
    [8, 7_060],
  ] as const)("E1 and E2 hold for %i nodes", (nodes, states) => {
    expect(exploring(nodes)).toMatchObject({ verdict: "holds", states });
  });

  it.each([
    [3, [0, 2, 1]],
    [4, [0, 1, 2, 3]],
    [4, [3, 2, 1, 0]],
    [5, [0, 1, 2, 3, 4]],
    [5, [4, 3, 2, 1, 0]],
    [5, [2, 0, 4, 1, 3]],
  ] as const)("E1 and E2 hold and every run ends: %i nodes on the ring %j, one call each", (nodes, ring) => {
    const system = systemFor({ protocol: "chang-roberts", nodes: range(0, nodes - 1), options: { ring } });
    expect(system.properties?.map(({ when }) => when)).toEqual(["always", "eventually", "quiescent", "leadsTo"]);
    expect(reaching(explore(system), "elected").verdict).toBe("holds");
  });

  it("E1 and E2 hold on unordered links too, and with duplicate messages", () => {
    expect(exploring(4, { network: "bag" })).toMatchObject({ verdict: "holds" });
    expect(exploring(3, { network: "bag", duplications: 1 })).toMatchObject({ verdict: "holds" });
  });

  it.each([
    [3, 1, 258],
    [3, 2, 634],
    [4, 1, 1_106],
    [4, 2, 13_235],
  ])(
    "E1 and E2 hold for %i nodes with crash notifications, and every run ends, although %i crash",
    (nodes, crashes, states) => {
      const told = {
        protocol: "chang-roberts",
        nodes: range(0, nodes - 1),
        crashes,
        crashNotifications: "any",
        initiators: [0],
      } as const;
      expect(reaching(explore(systemFor(told)), "elected")).toMatchObject({ verdict: "holds", states });
    },
  );

  it("E2 is violated by one crash, and by one lost message", () => {
    for (const [faults, last] of [
      [{ crashes: 1 }, "2 crash"],
      [{ losses: 1 }, "2 lose"],
    ] as const) {
      const { property, path } = exploring(3, faults);
      expect(property?.name).toBe("E2 liveness");
      expect(path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual(["0 command", last]);
    }
  });
});
