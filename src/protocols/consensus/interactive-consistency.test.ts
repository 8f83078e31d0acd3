import { describe, expect, it } from "vitest";
import { reaching } from "../../../test/protocols/reached.ts";
import { explore } from "../../check/explore.ts";
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../core/protocol.ts";
import { type Delay, simulation } from "../../sim/index.ts";
import { logLine } from "../../trace/log.ts";
import { type ByzantineBehaviour, byzantine } from "../byzantine.ts";
import type { OralMessages } from "./byzantine-generals/byzantine-generals.ts";
import {
  type InteractiveConsistency,
  type InteractiveConsistencyOptions,
  interactiveConsistency,
  signedInteractiveConsistency,
} from "./interactive-consistency.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);
const values = ["a", "b", "c", "d"];
type Options = Partial<InteractiveConsistencyOptions>;
type Make = (options?: Options) => Protocol<InteractiveConsistency>;
const oral: Make = interactiveConsistency;
const bySignature = signedInteractiveConsistency as unknown as Make;

interface Setting {
  readonly liars?: Record<NodeId, ByzantineBehaviour>;
  readonly delayMs?: Delay;
  readonly seed?: number;
}

function run(make: Make, nodes: number, options: Options = {}, { liars = {}, delayMs = 10, seed = 1 }: Setting = {}) {
  const log: string[] = [];
  const sim = simulation<InteractiveConsistency>({
    protocol: make(options),
    nodes: range(nodes),
    seed,
    delayMs,
    byzantine: new Map(Object.entries(liars).map(([id, how]) => [Number(id), how])),
    trace: (entry) => log.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  for (const node of range(nodes)) sim.command(node, { type: "propose", value: `from ${node}` });
  sim.run();
  return { sim, log: `${log.join("\n")}\n`, decided: range(nodes).map((node) => sim.world.state(node).decided) };
}

/** Explores every order of handling messages that arrive at a node one after the other. */
const explored = (make: Make, nodes: number, liars: Record<NodeId, ByzantineBehaviour>, options: Options = {}) =>
  reaching(
    explore({
      protocol: byzantine(
        make({ values, ...options }) as unknown as Protocol<Vocabulary>,
        new Map(Object.entries(liars).map(([id, how]) => [Number(id), how])),
      ),
      nodes: range(nodes),
      network: "inbox",
      timers: "rounds",
      begin: "together",
    }),
    "decided",
  );

type Order = OralMessages["message"];
const saying = (message: Tagged): Tagged[] => [
  message,
  { ...message, order: "another" } as Tagged,
  { ...message, path: [] } as Tagged, // Ignored, since its path is empty.
];
/** Sends every possible Byzantine message about one node's value, and the truth about the others. */
const about = (node: NodeId): ByzantineBehaviour => ({
  lie: (_to, message) => ((message as Order).path[0] === node ? saying(message) : [message]),
});
const anything: ByzantineBehaviour = { lie: (_to, message) => saying(message) };

describe("interactive consistency", () => {
  it("decides with signatures and one silent node of three (story)", async () => {
    const { log, decided } = run(bySignature, 3, {}, { liars: { 2: "mute" } });
    const vector = { 0: "from 0", 1: "from 1", 2: "nothing" };
    expect(decided.slice(0, 2)).toEqual([vector, vector]);
    await expect(log).toMatchFileSnapshot("stories/interactive-consistency-one-is-silent.txt");
  });

  it.each([
    [4, 1, 36],
    [7, 2, 1_092],
  ])(
    "%i nodes tolerate %i Byzantine ones with N times the messages of the generals, %i, in m + 1 rounds",
    (nodes, m, messages) => {
      const { sim, decided } = run(oral, nodes);
      expect(sim.messages.total).toBe(messages);
      expect(oral().costs[0]?.messages(nodes)).toBe(messages);
      expect(sim.now).toBe((m + 1) * 100);
      const vector = Object.fromEntries(range(nodes).map((node) => [node, `from ${node}`]));
      expect(decided).toEqual(range(nodes).map(() => vector));
      expect(sim.verdict()).toEqual([]);
    },
  );

  it("costs 36,090 messages for N = 10, m = 3", { tags: ["long"] }, () => {
    expect(run(oral, 10).sim.messages.total).toBe(36_090);
  });

  it.each([1, 2, 3, 4, 5, 6])("costs as much as its formulas predict with %i nodes and every m", (nodes) => {
    for (let m = 0; m <= Math.max(0, nodes - 2); m++) {
      const made = oral({ m });
      expect(run(oral, nodes, { m }).sim.messages.total).toBe(made.costs[0]?.messages(nodes));
    }
    const { sim } = run(bySignature, nodes);
    expect(sim.messages.total).toBe(nodes < 3 ? nodes * (nodes - 1) : nodes * (nodes - 1) ** 2);
    expect(bySignature().costs[0]?.messages(nodes)).toBe(sim.messages.total);
  });

  it("the event has the vector, and the same as readable text", () => {
    const { sim } = run(bySignature, 3);
    const vector = { 0: "from 0", 1: "from 1", 2: "from 2" };
    const event = { type: "decided", vector, value: "0: from 0, 1: from 1, 2: from 2" };
    expect(range(3).map((node) => sim.events(node))).toEqual(range(3).map(() => [event]));
  });

  it("ignores a value proposed after the first round", () => {
    const sim = simulation<InteractiveConsistency>({ protocol: oral(), nodes: range(4), seed: 1, delayMs: 10 });
    for (const node of range(4)) sim.start(node);
    for (const node of [0, 1, 2]) sim.command(node, { type: "propose", value: `from ${node}` });
    sim.run(150);
    sim.command(3, { type: "propose", value: "late" });
    sim.run();
    expect(sim.world.state(0).decided).toEqual({ 0: "from 0", 1: "from 1", 2: "from 2", 3: "nothing" });
    expect(sim.verdict()).toEqual([]);
  });

  const beside = (make: Make, nodes: number, liars: NodeId[], seed: number) =>
    run(make, nodes, {}, { liars: Object.fromEntries(liars.map((liar) => [liar, "adversary"])), seed });

  it("tolerates one Byzantine node of four, or two with signatures: 10 seeds of arbitrary messages", () => {
    for (let seed = 1; seed <= 10; seed++) {
      expect(beside(oral, 4, [3], seed).sim.verdict()).toEqual([]);
      expect(beside(bySignature, 4, [1, 3], seed).sim.verdict()).toEqual([]);
    }
  });

  it("the same with 100 seeds, and two among seven", { tags: ["larger"] }, () => {
    for (let seed = 11; seed <= 110; seed++) {
      expect(beside(oral, 4, [3], seed).sim.verdict()).toEqual([]);
      expect(beside(bySignature, 4, [1, 3], seed).sim.verdict()).toEqual([]);
    }
    for (let seed = 1; seed <= 3; seed++) expect(beside(oral, 7, [0, 5], seed).sim.verdict()).toEqual([]);
  });
});

describe("explored", () => {
  it("N = 4: holds without Byzantine nodes, with a silent one, and for all messages of one about another's value", () => {
    expect(explored(oral, 4, {})).toMatchObject({ verdict: "holds", states: 2_668 });
    expect(explored(oral, 4, { 3: "mute" })).toMatchObject({ verdict: "holds", states: 994 });
    expect(explored(oral, 4, { 3: about(0) })).toMatchObject({ verdict: "holds", states: 21_908 });
  });

  it("N = 4: holds for all messages of one node about its own value, and about any other", { tags: ["long"] }, () => {
    expect(explored(oral, 4, { 3: about(3) })).toMatchObject({ verdict: "holds", states: 71_932 });
    for (const other of [1, 2]) expect(explored(oral, 4, { 3: about(other) })).toMatchObject({ verdict: "holds" });
  });

  it("N = 3: fails with one Byzantine node, with any rule for missing majorities", () => {
    const broken = (ties: "default" | "heard") => explored(oral, 3, { 2: anything }, { m: 1, ties });
    expect(broken("default")).toMatchObject({ verdict: "violated", property: { name: "validity" } });
    expect(broken("heard")).toMatchObject({ verdict: "violated", property: { name: "agreement" } });
  });

  it("N = 3 with signatures: holds with one wrong message", () => {
    expect(explored(bySignature, 3, { 2: { lies: 1 } })).toMatchObject({ verdict: "holds", states: 2_316 });
  });

  it("N = 3 with signatures: holds with two wrong messages", { tags: ["long"] }, () => {
    expect(explored(bySignature, 3, { 2: { lies: 2 } })).toMatchObject({ verdict: "holds", states: 47_506 });
  });

  it("m rounds are one too few, with and without signatures", () => {
    expect(explored(oral, 4, { 3: about(3) }, { m: 0 })).toMatchObject({
      verdict: "violated",
      property: { name: "agreement" },
    });
    expect(explored(bySignature, 3, { 2: "adversary" }, { m: 0 })).toMatchObject({
      verdict: "violated",
      property: { name: "agreement" },
    });
  });

  it("needs rounds that last longer than any message travels", () => {
    const broken = range(10).map((seed) => run(oral, 4, {}, { delayMs: [50, 150], seed }).sim.verdict().length);
    expect(Math.max(...broken)).toBeGreaterThan(0);
  });

  it("rejects invalid options", () => {
    expect(() => run(oral, 3, { m: 2 })).toThrow("expected generals.m to be at most 1 with 3 generals");
  });
});
