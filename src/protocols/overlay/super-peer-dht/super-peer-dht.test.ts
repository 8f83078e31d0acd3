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
import { isSuperPeer, type SuperPeerDht, type SuperPeerDhtOptions, superPeerDht } from "./super-peer-dht.ts";
import { convergedRing, identifierRing } from "./vocabulary.ts";

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** m = 8, k = 2: regions of 64 identifiers, listed by node id. */
const SIX = { identifierBits: 8, reservedBits: 2, identifiers: [20, 45, 70, 130, 200, 230] };

interface Setting {
  nodes: readonly NodeId[];
  options?: Partial<SuperPeerDhtOptions>;
  delayMs?: number | readonly [number, number];
  seed?: number;
  story?: string[];
  found?: { key: number; owner: NodeId; hops: number }[];
}

function stage({ nodes, options = {}, delayMs = 10, seed = 1, story, found }: Setting): Simulation<SuperPeerDht> {
  return simulation<SuperPeerDht>({
    protocol: superPeerDht(options),
    nodes,
    seed,
    delayMs,
    properties: "at the end",
    ...(story === undefined ? {} : { trace: (entry) => story.push(logLine(entry)) }),
    onEvent: (_at, _node, event) => event.type === "found" && found?.push(event),
  });
}

/** Creates a ring that has been running idly for a long time. */
function ringOf(nodes: readonly NodeId[], setting: Omit<Setting, "nodes"> = {}): Simulation<SuperPeerDht> {
  const sim = stage({ ...setting, nodes, options: { members: nodes, ...setting.options } });
  for (const node of nodes) sim.wake(node);
  if (setting.story !== undefined) setting.story.length = 0;
  return sim;
}

const told = (story: readonly string[]): string => `${story.join("\n")}\n`;
const broken = (sim: Simulation<SuperPeerDht>): string[] => sim.verdict().map(({ property }) => property);
const superPeers = (sim: Simulation<SuperPeerDht>) => sim.world.alive.map((node) => sim.world.state(node).superPeer);

describe("super-peer-dht: the worked example", () => {
  it("p AND 11000000: nodes 20 and 45 use 20, 200 and 230 use 200, 70 and 130 serve themselves", async () => {
    const story: string[] = [];
    const found: { key: number; owner: NodeId; hops: number }[] = [];
    const sim = ringOf(range(0, 5), { options: SIX, story, found });
    expect(superPeers(sim)).toEqual([0, 0, 2, 3, 4, 4]);
    sim.command(1, { type: "find", key: 210 });
    sim.run(50);
    expect(found).toEqual([{ type: "found", key: 210, owner: 5, hops: 1 }]);
    sim.command(1, { type: "call" });
    sim.run(150);
    expect(sim.verdict()).toEqual([]);
    await expect(told(story)).toMatchFileSnapshot("../stories/super-peer-dht-region.txt");
  });

  it("node 80 joins between the beginning of its region and node 100, and takes over from 100", async () => {
    const story: string[] = [];
    const options = { identifierBits: 8, reservedBits: 2, identifiers: [20, 100, 120, 80], members: [0, 1, 2] };
    const sim = stage({ nodes: range(0, 3), options, story });
    for (const node of [0, 1, 2]) sim.wake(node);
    for (const node of [0, 1, 2]) sim.command(node, { type: "call" });
    sim.run(100);
    expect(superPeers(sim)).toEqual([0, 1, 1]);
    story.length = 0;
    sim.start(3);
    sim.run(1_600);
    expect(superPeers(sim)).toEqual([0, 3, 3, 3]);
    expect(broken(sim)).toEqual([]);
    await expect(told(story)).toMatchFileSnapshot("../stories/super-peer-dht-newcomer.txt");
  });
});

describe("super-peer-dht: what it costs", () => {
  it.each([2, 3, 4, 7, 16, 64])("N = %i: a round takes 2N messages to stabilize", (nodes) => {
    const sim = ringOf(range(0, nodes - 1));
    for (const node of range(0, nodes - 1)) sim.command(node, { type: "call" });
    sim.run(400);
    const { stabilize = 0, neighbours = 0 } = sim.messages.byType;
    expect(stabilize + neighbours).toBe(superPeerDht().costs[0]?.messages(nodes));
  });

  it("a round takes 2 more messages for each node that is not its own super-peer, in addition to finger lookups", () => {
    const sim = ringOf(range(0, 5), { options: SIX });
    // The first refreshed finger does not reach beyond the successor. The next ones do, so they are looked up.
    for (const node of [1, 5]) sim.command(node, { type: "call" });
    const questions = sim.messages.byType.ask;
    sim.run(400);
    expect(questions).toBe(2);
  });

  // A lookup takes ½·log2 N hops on average (Stoica et al. 2003, §V.C). The request goes to the owner's predecessor
  // rather than to the owner.
  it.each([
    [64, 3],
    [256, 4],
    [1_024, 5],
    [4_096, 6],
  ])("N = %i: a lookup takes ½·log2 N = %i hops on average, within 8 %%", (nodes, expected) => {
    const chance = random(1);
    const found: { hops: number; key: number; owner: NodeId }[] = [];
    const options = { identifierBits: 24, successors: 1 };
    const sim = ringOf(range(0, nodes - 1), { options, found });
    const ring = identifierRing({ identifierBits: 24, reservedBits: 2, identifiers: [] });
    const ideal = convergedRing(ring, range(0, nodes - 1));
    for (const i of range(1, 4_000)) sim.command(i % nodes, { type: "find", key: chance.below(2 ** 24) });
    sim.run();
    expect(found).toHaveLength(4_000);
    expect(found.every(({ key, owner }) => owner === ideal.ownerOf(ring.placeOfKey(key)))).toBe(true);
    expect(sim.messages.total).toBe(2 * found.reduce((sum, { hops }) => sum + hops, 0));
    expect(Math.abs(mean(found.map(({ hops }) => hops)) / expected - 1)).toBeLessThan(0.08);
  });
});

describe("super-peer-dht: how many super-peers there are", () => {
  /**
   * For this number of rings of N nodes, with m and k bits, counts the nodes that own a reserved identifier, and the
   * nodes whose own identifier is reserved.
   */
  function counted(nodes: number, identifierBits: number, reservedBits: number) {
    const ring = identifierRing({ identifierBits, reservedBits, identifiers: [] });
    const keys = ring.reservedKeys();
    const counts = range(0, 199).map((i) => {
      const ideal = convergedRing(ring, range(i * nodes, (i + 1) * nodes - 1));
      return {
        responsible: new Set(keys.map((key) => ideal.ownerOf(ring.placeOfKey(key)))).size,
        named: ideal.members.filter((node) => ring.keyAt(ring.placeOf(node)) === ring.reservedKey(node)).length,
      };
    });
    return { responsible: mean(counts.map((each) => each.responsible)), named: mean(counts.map(({ named }) => named)) };
  }

  it.each([
    [64, 12, 6],
    [100, 16, 4],
    [1_000, 16, 7],
  ])("N = %i, m = %i, k = %i: 2^k·(1 − (1 − 2^−k)^N) are responsible, within 2 %%", (nodes, m, k) => {
    const expected = 2 ** k * (1 - (1 - 2 ** -k) ** nodes);
    expect(Math.abs(counted(nodes, m, k).responsible / expected - 1)).toBeLessThan(0.02);
  });

  it.each([
    [1_000, 10, 6],
    [1_000, 12, 9],
  ])("N = %i, m = %i, k = %i: 2^(k − m)·N have a reserved identifier as their own, within 5 %%", (nodes, m, k) => {
    expect(Math.abs(counted(nodes, m, k).named / (2 ** (k - m) * nodes) - 1)).toBeLessThan(0.05);
  });

  it("both numbers are 2^k if every identifier has its node", () => {
    const nodes = range(0, 63);
    const options = { identifierBits: 6, reservedBits: 3, identifiers: nodes };
    const ring = identifierRing(options);
    const sim = ringOf(nodes, { options });
    expect(nodes.filter((node) => isSuperPeer(ring, sim.world.state(node), node))).toEqual([
      0, 8, 16, 24, 32, 40, 48, 56,
    ]);
  });
});

describe("super-peer-dht: guarantees", () => {
  it.each([1, 2, 3, 8, 24])("%i nodes that start at once form one ring", (nodes) => {
    const sim = stage({ nodes: range(0, nodes - 1), delayMs: [5, 50] });
    for (const node of range(0, nodes - 1)) sim.start(node);
    sim.run(30_000);
    expect(broken(sim)).toEqual([]);
    expect(sim.world.alive.every((node) => sim.world.state(node).membership === "member")).toBe(true);
  });

  /** Starts each node once, at the given offset in milliseconds. */
  function started(offsetsMs: readonly number[], seed: number): Simulation<SuperPeerDht> {
    const sim = stage({ nodes: range(0, offsetsMs.length - 1), seed, delayMs: [5, 50] });
    const inOrder = [...offsetsMs.entries()].sort(([, a], [, b]) => a - b);
    for (const [node, at] of inOrder) {
      sim.run(at);
      sim.start(node);
    }
    sim.run(sim.now + 15_000);
    return sim;
  }

  it("two nodes form one ring if the higher one starts first, by any time", () => {
    for (let offset = 0; offset <= 1_500; offset += 10)
      expect([offset, broken(started([offset, 0], offset + 1))]).toEqual([offset, []]);
  });

  it("two to six nodes that start at any times form one ring", () => {
    const offsets = fc.array(fc.nat(2_500), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(offsets, fc.nat(), (offsetsMs, seed) => {
        expect(broken(started(offsetsMs, seed))).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  it("8 nodes with 2-bit identifiers: those with the same are adjacent, and the first owns the key", () => {
    const options = { identifierBits: 2, reservedBits: 1 };
    const sim = stage({ nodes: range(0, 7), options, delayMs: [5, 50] });
    for (const node of range(0, 7)) sim.start(node);
    sim.run(30_000);
    expect(broken(sim)).toEqual([]);
  });

  type Deed = { kind: "crash" | "start" | "leave"; node: NodeId; at: number };
  const deeds = fc
    .array(
      fc.record({
        kind: fc.constantFrom<Deed["kind"][]>("crash", "start", "leave"),
        node: fc.integer({ min: 1, max: 15 }),
        at: fc.nat(20),
      }),
      { maxLength: 12 },
    )
    .map((list) => list.sort((a, b) => a.at - b.at));

  it("joins, leaves and crashes in any order: one ring, one super-peer per region, and all agree", () => {
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, list) => {
        const nodes = range(0, 15);
        const sim = stage({ nodes, seed, delayMs: [5, 50], options: { contacts: [0], members: range(0, 9) } });
        for (const node of range(0, 9)) sim.wake(node);
        for (const node of range(0, 9)) sim.command(node, { type: "call" });
        for (const { kind, node, at } of list) {
          // A crash is detected within three rounds, so at most two neighbors are missing at a time.
          sim.run(sim.now + 2_000 + 100 * at);
          const isAlive = sim.world.alive.includes(node);
          if (kind === "start") isAlive || sim.start(node);
          else if (kind === "crash") isAlive && sim.crash(node);
          else if (isAlive) sim.command(node, { type: "leave" });
        }
        sim.run(sim.now + 25_000);
        expect(broken(sim)).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it("the fourth successor bridges three neighbors that crash at once, and a region gets another super-peer", () => {
    const nodes = range(0, 15);
    const sim = ringOf(nodes, { options: { contacts: [0] } });
    for (const node of nodes) sim.command(node, { type: "call" });
    const ring = identifierRing({ identifierBits: 16, reservedBits: 2, identifiers: [] });
    const ideal = convergedRing(ring, nodes);
    const first = ideal.ownerOf(ring.placeOfKey(ring.reservedKey(ideal.neighbour(0, 4))));
    const gone = range(0, 2).map((places) => ideal.neighbour(first, places));
    for (const node of gone) sim.crash(node);
    sim.run(20_000);
    expect(broken(sim)).toEqual([]);
    expect(superPeers(sim)).not.toContain(first);
  });

  it("a leaving node is removed at once: no node waits for its answers", () => {
    const sim = ringOf(range(0, 5), { options: SIX });
    for (const node of range(0, 5)) sim.command(node, { type: "call" });
    sim.run(100);
    sim.command(2, { type: "leave" });
    sim.run(150);
    expect([sim.world.state(1).successors[0], sim.world.state(3).predecessor]).toEqual([3, 1]);
    sim.run(1_100);
    expect(broken(sim)).toEqual([]);
    expect(sim.world.state(2).membership).toBe("outside");
  });

  it("a member that knows no other node is alone, answers for all keys, and stays alone", () => {
    const sim = stage({ nodes: [7] });
    sim.start(7);
    sim.run(5_000);
    expect([broken(sim), sim.world.state(7).superPeer, sim.messages.total]).toEqual([[], 7, 0]);
  });
});

describe("super-peer-dht: violated assumptions", () => {
  it("no contact is alive: a joining node waits forever", () => {
    const sim = ringOf(range(0, 5), { options: { ...SIX, contacts: [0], members: range(0, 4) } });
    for (const node of range(0, 4)) sim.command(node, { type: "call" });
    sim.crash(0);
    sim.crash(5);
    sim.start(5);
    sim.run(60_000);
    expect(broken(sim)).toEqual(["ring", "joining ends"]);
  });

  it("all successors crash at once, and no contact is alive: a node that has lost them waits forever", () => {
    const sim = ringOf(range(0, 5), { options: { ...SIX, contacts: [0], successors: 1 } });
    for (const node of range(0, 5)) sim.command(node, { type: "call" });
    sim.run(100);
    for (const node of [0, 2]) sim.crash(node);
    sim.run(60_000);
    expect(sim.world.state(1).membership).toBe("joining");
    expect(broken(sim)).toContain("ring");
  });

  it("the same with an alive contact: it joins again", () => {
    const sim = ringOf(range(0, 5), { options: { ...SIX, contacts: [0], successors: 1 } });
    for (const node of range(0, 5)) sim.command(node, { type: "call" });
    sim.run(100);
    for (const node of [1, 2, 5]) sim.crash(node);
    sim.run(60_000);
    expect(broken(sim)).toEqual([]);
  });

  it("a partition: two rings, which do not merge when it ends", () => {
    const sim = ringOf(range(0, 5), { options: SIX });
    for (const node of range(0, 5)) sim.command(node, { type: "call" });
    sim.partition([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    sim.run(30_000);
    sim.heal();
    sim.run(90_000);
    expect(broken(sim)).toContain("one super-peer for each region");
  });

  it("answers that take longer than answerMs: a joining node never becomes a member", () => {
    const sim = ringOf(range(0, 5), { options: { ...SIX, contacts: [0], members: range(0, 4) }, delayMs: 150 });
    sim.crash(5);
    sim.start(5);
    sim.run(60_000);
    expect(broken(sim)).toContain("joining ends");
  });
});

describe("super-peer-dht: every run, with time bounded", () => {
  const three = { identifierBits: 2, reservedBits: 1, identifiers: [0, 1, 2], successors: 2 };
  const exploring = (nodes: number, options: Partial<SuperPeerDhtOptions>, more: Partial<SystemSpec> = {}) =>
    reaching(
      explore(
        systemFor({
          protocol: "super-peer-dht",
          nodes: range(0, nodes - 1),
          options: { ...three, ...options },
          initiators: [],
          timers: "quiet",
          ...more,
        }),
      ),
      "elected",
    );

  it.each<[string, number, Partial<SuperPeerDhtOptions>, Partial<SystemSpec>, number]>([
    ["of two nodes that start at once", 2, {}, {}, 50],
    ["of two nodes that start at any time", 2, {}, { begin: "down" }, 78],
    ["two nodes, one crashes and recovers", 2, {}, { crashes: 1, recoveries: 1 }, 522],
    ["of three", 3, { contacts: [0] }, {}, 1_932],
  ])("%s: all claims hold", (_what, nodes, options, more, states) => {
    expect(exploring(nodes, options, more)).toMatchObject({ verdict: "holds", states });
  });

  it("three nodes and a crash: all claims hold", { tags: ["long"] }, () => {
    const found = exploring(3, { contacts: [0, 1] }, { crashes: 1 });
    expect(found).toMatchObject({ verdict: "holds", states: 30_386 });
  });
});

describe("super-peer-dht: options", () => {
  it.each<[Partial<SuperPeerDhtOptions>, string]>([
    [{ identifierBits: 25 }, "expected super-peer-dht.identifierBits to be 1 to 24, got 25"],
    [{ reservedBits: 17 }, "expected super-peer-dht.reservedBits to be at most 16, as identifierBits, got 17"],
    [{ identifiers: [1, 1] }, "expected super-peer-dht.identifiers to be different from each other, got [1,1]"],
    [{ identifiers: [65_536] }, "expected super-peer-dht.identifiers to be below 2^16, got 65536"],
  ])("%j is rejected", (options, sentence) => {
    expect(() => superPeerDht(options)).toThrow(sentence);
  });
});
