import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { type Delay, simulation } from "../../../sim/index.ts";
import { logLine } from "../../../trace/log.ts";
import { type ByzantineBehaviour, byzantine } from "../../byzantine.ts";
import { type GeneralsOptions, type OralMessages, oralMessages } from "./byzantine-generals.ts";
import { type SignedMessages, signedMessages } from "./signed-messages.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);
const propose = { type: "propose", value: "" } as const;
const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));

type Made = Protocol<OralMessages> | Protocol<SignedMessages>;

function run(
  protocol: Made,
  nodes: number,
  {
    liars = {},
    delayMs = 10,
    seed = 1,
  }: { liars?: Record<NodeId, ByzantineBehaviour>; delayMs?: Delay; seed?: number } = {},
) {
  const story: string[] = [];
  const sim = simulation<OralMessages>({
    protocol: protocol as Protocol<OralMessages>,
    nodes: range(nodes),
    seed,
    delayMs,
    byzantine: new Map(Object.entries(liars).map(([id, how]) => [Number(id), how])),
    trace: (entry) => story.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  sim.command(0, propose);
  sim.run();
  return { sim, story: `${story.join("\n")}\n`, decided: range(nodes).map((node) => sim.world.state(node).decided) };
}

function explored(protocol: Made, nodes: number, liars: Record<NodeId, ByzantineBehaviour>) {
  const map = new Map(Object.entries(liars).map(([id, how]) => [Number(id), how]));
  return reaching(
    explore({
      protocol: byzantine(protocol as Protocol<Vocabulary>, map),
      nodes: range(nodes),
      network: "fifo",
      timers: "rounds",
      begin: "together",
      asks: (node) => (node === 0 ? [propose] : []) as never,
    } satisfies ExploreOptions<Vocabulary>) as never,
  );
}

/**
 * Replaces an oral message with nothing or with either order. The path cannot be forged, since a receiver knows the
 * sender.
 */
const anything: ByzantineBehaviour = {
  lie: (_to, message) => [
    message,
    ...["attack", "retreat", "wait"].map((order): Tagged => ({ ...message, order }) as Tagged),
  ],
};

describe("oral messages", () => {
  it("four generals decide in spite of a traitor (story)", async () => {
    const { story, decided } = run(oralMessages(), 4, { liars: { 3: "mute" } });
    expect(decided.slice(0, 3)).toEqual(["attack", "attack", "attack"]);
    await expect(story).toMatchFileSnapshot("stories/byzantine-generals-one-is-silent.txt");
  });

  it.each([
    [4, 1, 9],
    [7, 2, 156],
    [10, 3, 3_609],
  ])("%i generals tolerate %i traitors with %i messages in m + 1 rounds", (nodes, m, messages) => {
    const protocol = oralMessages();
    const { sim, decided } = run(protocol, nodes);
    expect(sim.messages.total).toBe(messages);
    expect(protocol.costs[0]?.messages(nodes)).toBe(messages);
    expect(new Set(decided)).toEqual(new Set(["attack"]));
    expect(sim.now).toBe((m + 1) * 100);
    expect(sim.verdict()).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6])("costs as much as its formula predicts with %i generals and every m", (nodes) => {
    for (let m = 0; m <= Math.max(0, nodes - 2); m++) {
      const protocol = oralMessages({ m });
      expect(run(protocol, nodes).sim.messages.total).toBe(protocol.costs[0]?.messages(nodes));
      if (m === nodes - 2) expect(protocol.costs[0]?.messages(nodes)).toBeGreaterThanOrEqual(factorial(nodes - 1));
    }
  });

  it("N = 4, m = 1: agreement and validity hold for all messages of a traitor, as commander and as lieutenant", () => {
    for (const traitor of [0, 3]) {
      expect(explored(oralMessages(), 4, { [traitor]: anything })).toMatchObject({ verdict: "holds" });
      expect(explored(oralMessages(), 4, { [traitor]: "mute" })).toMatchObject({ verdict: "holds" });
    }
  });

  it("N = 4, m = 1: a traitor gains nothing by repeated, early or late messages or invented paths", {
    tags: ["long"],
  }, () => {
    expect(explored(oralMessages(), 4, { 0: "adversary" })).toMatchObject({ verdict: "holds", states: 5_658 });
    expect(explored(oralMessages(), 4, { 3: "adversary" })).toMatchObject({ verdict: "holds", states: 558_671 });
  });

  it("N = 3: fails with one traitor, with any rule for missing majorities: both figures of the paper", () => {
    const lieutenant = (ties: GeneralsOptions["ties"]) => explored(oralMessages({ m: 1, ties }), 3, { 2: anything });
    const commander = (ties: GeneralsOptions["ties"]) => explored(oralMessages({ m: 1, ties }), 3, { 0: anything });
    expect(lieutenant("default")).toMatchObject({ verdict: "violated", property: { name: "IC2 validity" } });
    expect(commander("heard")).toMatchObject({ verdict: "violated", property: { name: "IC1 agreement" } });
  });

  it("needs m + 1 rounds: with m = 0 a commander divides four generals", () => {
    expect(explored(oralMessages({ m: 0 }), 4, { 0: anything })).toMatchObject({
      verdict: "violated",
      property: { name: "IC1 agreement" },
    });
  });

  it("needs rounds that last longer than any message travels", () => {
    expect(run(oralMessages(), 4, { delayMs: 10 }).decided).toEqual(["attack", "attack", "attack", "attack"]);
    expect(run(oralMessages(), 4, { delayMs: [50, 150], seed: 3 }).sim.verdict()).not.toEqual([]);
  });

  it("rejects invalid options", () => {
    expect(() => run(oralMessages({ m: 2 }), 3)).toThrow("expected generals.m to be at most 1 with 3 generals");
    expect(() => run(oralMessages({ commander: 9 }), 3)).toThrow(
      "expected generals.commander to be among 0, 1, 2, got 9",
    );
  });
});

describe("signed messages", () => {
  it.each([2, 3, 4, 5, 7, 9])("cost (N − 1)² for one order among %i", (nodes) => {
    const protocol = signedMessages();
    const { sim, decided } = run(protocol, nodes);
    expect(sim.messages.total).toBe(nodes === 2 ? 1 : (nodes - 1) ** 2);
    expect(protocol.costs[0]?.messages(nodes)).toBe(sim.messages.total);
    expect(new Set(decided)).toEqual(new Set(["attack"]));
  });

  it("N = 3, m = 1: hold for all actions of one traitor, which can sign only for itself", () => {
    expect(explored(signedMessages(), 3, { 0: "adversary" })).toMatchObject({ verdict: "holds" });
    expect(explored(signedMessages(), 3, { 2: "adversary" })).toMatchObject({ verdict: "holds" });
  });

  it("N = 4, m = 2: hold with one wrong message each by the commander and a lieutenant", { tags: ["long"] }, () => {
    expect(explored(signedMessages(), 4, { 0: { lies: 1 }, 3: { lies: 1 } })).toMatchObject({ verdict: "holds" });
  });

  it("a commander that signs two orders is detected, and all retreat", () => {
    const two: ByzantineBehaviour = "adversary";
    for (let seed = 1; seed <= 50; seed++) {
      const { sim } = run(signedMessages({ order: "attack" }), 4, { liars: { 0: two, 1: two }, seed });
      expect(sim.verdict()).toEqual([]);
    }
  });

  it("need m + 1 rounds: with m = 0 a commander divides three", () => {
    expect(explored(signedMessages({ m: 0 }), 3, { 0: "adversary" })).toMatchObject({
      verdict: "violated",
      property: { name: "IC1 agreement" },
    });
  });
});
