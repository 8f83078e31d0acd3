/**
 * Reductions between forms of agreement. Each one runs, is explored within bounds, and breaks if the form that it is
 * built on is broken.
 */
import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore } from "../../../src/check/explore.ts";
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../../src/core/protocol.ts";
import { type ByzantineBehaviour, byzantine } from "../../../src/protocols/byzantine.ts";
import { basicMulticast } from "../../../src/protocols/multicast/basic-multicast.ts";
import { simulation } from "../../../src/sim/index.ts";
import { reaching } from "../reached.ts";
import { chosenOf, consensusFromInteractiveConsistency } from "./consensus-from-interactive-consistency.ts";
import { consensusFromTotalOrder } from "./consensus-from-total-order.ts";
import { electionFromConsensus } from "./election-from-consensus.ts";
import { COMMANDER, generalsFromConsensus, generalsFromInteractiveConsistency } from "./generals.ts";
import { mutualExclusionFromTotalOrder, queue } from "./mutual-exclusion-from-total-order.ts";
import { totalOrderFromConsensus } from "./total-order-from-consensus.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);
// Each protocol has its own type parameters. The checks are written out.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Liars = Record<NodeId, ByzantineBehaviour>;
const listed = (liars: Liars): Map<NodeId, ByzantineBehaviour> =>
  new Map(Object.entries(liars).map(([id, how]) => [Number(id), how]));

const to = (type: string, body: Tagged): Tagged => ({ type, body }) as Tagged;
const propose = (value: string): Tagged => to("consensus", { type: "propose", value } as Tagged);

interface Run {
  readonly asks?: (node: NodeId) => readonly Tagged[];
  readonly liars?: Liars;
  readonly seed: number;
  readonly crash?: NodeId;
}

/** Runs the protocol in virtual time, over unordered links. */
function run(protocol: Any, nodes: number, { asks = () => [], liars = {}, seed, crash }: Run) {
  const sim = simulation<Any>({
    protocol: protocol as Protocol<Any>,
    nodes: range(nodes),
    seed,
    delayMs: [1, 40],
    link: { order: "none" },
    byzantine: listed(liars),
  });
  for (const node of range(nodes)) sim.start(node);
  for (const node of range(nodes)) for (const command of asks(node)) sim.command(node, command);
  if (crash !== undefined) {
    sim.run(30);
    sim.crash(crash);
  }
  sim.run();
  return sim;
}

const stateOf = (sim: ReturnType<typeof run>, node: NodeId): Any => sim.world.state(node);

/** Explores every run within the given bounds. */
const explored = (protocol: Any, nodes: number, options: Partial<ExploreOptions<Vocabulary>>, liars: Liars = {}) =>
  explore<Vocabulary>({
    protocol: byzantine(protocol, listed(liars)),
    nodes: range(nodes),
    network: "fifo",
    timers: "never",
    begin: "together",
    ...options,
  });

const SEEDS = range(10);
const inRounds = { timers: "rounds", network: "inbox" } as const;

describe("consensus from total order", () => {
  const asks = (node: NodeId) => [propose(`from ${node}`)];

  it("decides the same value everywhere in random runs", () => {
    for (const seed of SEEDS) {
      const sim = run(consensusFromTotalOrder(), 4, { asks, seed });
      expect(sim.verdict()).toEqual([]);
      expect(new Set(range(4).map((node) => stateOf(sim, node).consensus.decided)).size).toBe(1);
    }
  });

  it("holds in every run of three nodes if two propose", () => {
    const two = (node: NodeId) => (node < 2 ? asks(node) : []) as never[];
    const found = reaching(explored(consensusFromTotalOrder(), 3, { asks: two }), "decided");
    expect(found).toMatchObject({ verdict: "holds", states: 503 });
  });

  it("fails over an unordered multicast", () => {
    const over = consensusFromTotalOrder(basicMulticast() as never);
    const found = explored(over, 2, { asks: asks as never });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "agreement" } });
  });
});

describe("total order from consensus", () => {
  const asks = (node: NodeId) =>
    [1, 2].map((number) => to("order", { type: "send", value: `${node}.${number}` } as Tagged));

  it("delivers all messages in one order in random runs", () => {
    for (const seed of SEEDS) {
      const sim = run(totalOrderFromConsensus(6), 3, { asks, seed });
      expect(sim.verdict()).toEqual([]);
      const [first, ...others] = range(3).map((node) => stateOf(sim, node).order.delivered as string[]);
      expect(first?.toSorted()).toEqual(["0.1", "0.2", "1.1", "1.2", "2.1", "2.2"]);
      for (const other of others) expect(other).toEqual(first);
    }
  });

  const safe = totalOrderFromConsensus(2).properties.filter(({ when }: Any) => when === "always") as never[];

  it("keeps one order in every run of two nodes that send one message each", () => {
    const one = (node: NodeId) => asks(node).slice(0, 1) as never[];
    const found = reaching(explored(totalOrderFromConsensus(2), 2, { asks: one, properties: safe }), "delivered");
    expect(found).toMatchObject({ verdict: "holds", states: 116 });
  });
});

describe("election from consensus", () => {
  const asks = () => [to("election", { type: "call" })];

  it("has one leader in random runs, even if a node crashes", () => {
    for (const seed of SEEDS) {
      const sim = run(electionFromConsensus(), 5, { asks, seed, crash: seed % 5 });
      expect(sim.verdict()).toEqual([]);
      const leaders = new Set(sim.world.alive.map((node: NodeId) => stateOf(sim, node).election.leader));
      expect([...leaders]).toHaveLength(1);
      expect(leaders).not.toContain(null);
    }
  });

  const inEveryRun = (nodes: number) =>
    explored(electionFromConsensus(), nodes, {
      asks: (node) => (node === 1 && nodes === 3 ? [] : asks()) as never[],
      properties: electionFromConsensus().properties.filter(({ name }) => name === "E1 safety"),
      crashes: 1,
    });

  it("has one leader in every run of two nodes that both call, even if one crashes", () => {
    expect(reaching(inEveryRun(2), "elected")).toMatchObject({ verdict: "holds" });
  });

  it("has one leader in every run of three nodes if two call, even if one crashes", { tags: ["long"] }, () => {
    expect(reaching(inEveryRun(3), "elected")).toMatchObject({ verdict: "holds", states: 161_182 });
  });
});

describe("mutual exclusion from total order", () => {
  const use = (entries: number) => [to("workload", { type: "use", entries } as Tagged)];

  it("lets all nodes enter, one at a time, in random runs", () => {
    for (const seed of SEEDS) {
      const sim = run(mutualExclusionFromTotalOrder(), 4, { asks: () => use(3), seed });
      expect(sim.verdict()).toEqual([]);
      expect(range(4).map((node) => stateOf(sim, node).workload.entries)).toEqual([3, 3, 3, 3]);
    }
  });

  it("lets a node enter whose next request was delivered before its exit (removing all of its requests from the queue starved it)", () => {
    const sim = simulation({ protocol: queue, nodes: [0, 1], seed: 1, delayMs: 1 });
    for (const node of [0, 1]) sim.start(node);
    // ISIS does not preserve the order of a sender.
    const delivered = [
      [0, "enter"],
      [1, "enter"],
      [0, "enter"],
      [0, "exit"],
      [1, "exit"],
    ] as const;
    for (const [from, value] of delivered)
      for (const node of [0, 1]) sim.command(node, { type: "deliver", from, value });
    const entered = (token: number) => ({ type: "entered", token });
    expect([0, 1].map((node) => sim.events(node))).toEqual([[entered(1), entered(3)], [entered(2)]]);
    expect(sim.world.state(1).queue).toEqual([0]);
  });

  it("holds in every run of two nodes that request twice", () => {
    const found = explored(mutualExclusionFromTotalOrder(), 2, { timers: "free", asks: () => use(2) as never[] });
    expect(reaching(found, "entered")).toMatchObject({ verdict: "holds", states: 852 });
  });
});

describe("consensus from interactive consistency", () => {
  it("takes the majority, or the smallest value", () => {
    expect(chosenOf({ 0: "b", 1: "b", 2: "a" })).toBe("b");
    expect(chosenOf({ 0: "c", 1: "b", 2: "b", 3: "c" })).toBe("b");
  });

  it("decides the common proposal of all honest nodes, in random runs with a Byzantine node", () => {
    for (const seed of SEEDS) {
      const sim = run(consensusFromInteractiveConsistency(["a", "a", "a", "b"]), 4, {
        seed,
        liars: { 3: "adversary" },
      });
      expect(sim.verdict()).toEqual([]);
      expect([0, 1, 2].map((node) => stateOf(sim, node).consensus.decided)).toEqual(["a", "a", "a"]);
    }
  });

  it("holds among four nodes, even if one misreports another's value", () => {
    const found = explored(consensusFromInteractiveConsistency(["a", "a", "a", "b"]), 4, inRounds, {
      3: lyingAbout(0),
    });
    expect(reaching(found, "decided")).toMatchObject({ verdict: "holds", states: 21_908 });
  });
});

/** A node that sends its true value, a different value, or nothing in interactive consistency. */
const lyingAbout = (node: NodeId): ByzantineBehaviour => ({
  lie(_to, message) {
    const { type, body } = message as Any;
    if (type !== "consistency" || body.path[0] !== node) return [message];
    return [message, to(type, { ...body, order: "another" }), to(type, { ...body, path: [] })];
  },
});

/** A commander that sends a different order to some nodes. */
const dividing: ByzantineBehaviour = {
  lie(_to, message) {
    const { type, body } = message as Any;
    return type === "general" ? [message, to(type, { ...body, value: "retreat" })] : [message];
  },
};

describe("the generals", () => {
  it("from interactive consistency: obey the commander's entry, in random runs with a traitor", () => {
    for (const seed of SEEDS)
      for (const traitor of [COMMANDER, 3]) {
        const sim = run(generalsFromInteractiveConsistency("attack"), 4, { seed, liars: { [traitor]: "adversary" } });
        expect(sim.verdict()).toEqual([]);
      }
  });

  it("from interactive consistency: hold among four, even if the commander sends different orders", {
    tags: ["long"],
  }, () => {
    const found = explored(generalsFromInteractiveConsistency("attack"), 4, inRounds, {
      [COMMANDER]: lyingAbout(COMMANDER),
    });
    expect(reaching(found, "obeyed")).toMatchObject({ verdict: "holds", states: 65_314 });
  });

  it("from consensus: obey the order they agree to have received, in random runs with a traitor", () => {
    for (const seed of SEEDS)
      for (const traitor of [COMMANDER, 3]) {
        const sim = run(generalsFromConsensus("attack"), 4, { seed, liars: { [traitor]: "adversary" } });
        expect(sim.verdict()).toEqual([]);
      }
  });

  it("from consensus: hold among four, even if the commander sends each a different order", { tags: ["long"] }, () => {
    const found = explored(generalsFromConsensus("attack"), 4, inRounds, { [COMMANDER]: dividing });
    expect(reaching(found, "obeyed")).toMatchObject({ verdict: "holds", states: 31_833 });
  });
});
