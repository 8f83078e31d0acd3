import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore } from "../../check/explore.ts";
import { systemFor } from "../../check/suite.ts";
import type { Protocol } from "../../core/protocol.ts";
import { simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { storyLine } from "../../trace/story.ts";
import { type Causal, causal } from "./causal.ts";
import { happenedBeforeOrder, type UsedMulticast, usedMulticast } from "./parts/user.ts";

type Used = UsedMulticast<Causal>;

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const send = (payload: string): Causal["command"] => ({ type: "send", payload });
const use = (messages: number): Used["command"] => ({ type: "user", body: { type: "send", messages } });

/** The same group without the rule: what is received is delivered. Basic multicast. */
const impatient: Protocol<Causal> = {
  ...causal(),
  receive: {
    multicast(state, from, { vector, payload }, ctx) {
      const place = state.group.indexOf(from);
      state.vector[place] = (state.vector[place] ?? 0) + 1;
      ctx.emit({ type: "delivered", from, payload, id: `${from}.${vector[place]}` });
    },
  },
};

function stage(nodes: number, delayMs: number | readonly [number, number] = 10, seed = 1) {
  const entries: TraceEntry<Causal>[] = [];
  const sim = simulation<Causal>({
    protocol: causal(),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    trace: (entry) => entries.push(entry),
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  entries.length = 0;
  return { sim, entries };
}

/** A group whose members send and remember, over links without order among senders. */
function correspondence(protocol: Protocol<Causal>, nodes: number, seed: number) {
  const sim = simulation<Used>({
    protocol: usedMulticast(protocol, [happenedBeforeOrder]),
    nodes: range(0, nodes - 1),
    seed,
    delayMs: [1, 40],
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  return sim;
}

describe("causal multicast: the worked example", () => {
  it("an answer that is faster than its question is held back", async () => {
    const { sim, entries } = stage(3, [1, 100], 1);
    sim.command(0, send("question"));
    while (sim.events(1).length === 0) sim.run(sim.now + 1);
    sim.command(1, send("answer"));
    sim.run();
    for (const node of [0, 1, 2])
      expect(sim.events(node).map(({ payload, id }) => [payload, id])).toEqual([
        ["question", "0.1"],
        ["answer", "1.1"],
      ]);
    expect(sim.violations).toEqual([]);
    const story = entries.map((entry) => `${storyLine(entry as TraceEntry)}\n`).join("");
    expect(story).toContain("node 2  is now holding back");
    await expect(story).toMatchFileSnapshot("stories/causal-answer-overtakes.txt");
  });
});

describe("causal multicast: what it costs", () => {
  it.each(range(1, 64))("N = %i: N − 1 messages a multicast", (nodes) => {
    const { sim } = stage(nodes);
    sim.command(0, send("hello"));
    sim.command(nodes - 1, send("hello"));
    sim.run();
    expect(sim.messages.total).toBe(2 * (nodes - 1));
    expect(causal().costs[0]?.messages(nodes)).toBe(nodes - 1);
    expect(sim.violations).toEqual([]);
  });
});

describe("causal multicast: what it promises", () => {
  const demand = fc.array(fc.record({ node: fc.nat(4), at: fc.nat(100), messages: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 8,
  });

  it("C5, integrity, agreement: any senders, any delays", () => {
    fc.assert(
      fc.property(fc.nat(), demand, (seed, demands) => {
        const sim = correspondence(causal(), 5, seed);
        for (const { node, at, messages } of demands.sort((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(messages));
        }
        sim.run();
        expect(sim.violations).toEqual([]);
        const count = demands.reduce((sum, { messages }) => sum + messages, 0);
        for (const node of range(0, 4)) expect(sim.world.state(node).user.delivered).toHaveLength(count);
      }),
      { numRuns: 200 },
    );
  });

  it("without the rule, delivering what is received, C5 is violated", () => {
    const broken = range(1, 50).filter((seed) => {
      const sim = correspondence(impatient, 5, seed);
      for (const node of range(0, 4)) sim.command(node, use(3));
      sim.run();
      return sim.violations.some(({ property }) => property === "user: C5 happened-before order");
    });
    expect(broken.length).toBeGreaterThan(0);
  });

  it("a lost message breaks agreement: what depends on it is held back for ever", () => {
    const { sim } = stage(2);
    sim.cut(0, 1);
    sim.command(0, send("lost"));
    sim.mend(0, 1);
    sim.command(0, send("waits"));
    sim.run();
    expect(sim.violations.map(({ property }) => property)).toEqual(["agreement"]);
    expect(sim.world.state(1).heldBack).toMatchObject([{ from: 0, vector: [2, 0] }]);
  });

  it("a duplicate is delivered once", () => {
    const { sim } = stage(2);
    sim.command(0, send("once"));
    sim.run();
    const before = JSON.stringify(sim.world.state(1));
    const silent = { self: 1, peers: [0] } as never; // Whatever it did with it would throw.
    causal().receive.multicast(sim.world.state(1), 0, { type: "multicast", vector: [1, 0], payload: "once" }, silent);
    expect(JSON.stringify(sim.world.state(1))).toBe(before);
  });

  it("explored: a message that arrives twice, held back or delivered, is delivered once", () => {
    const spec = { protocol: "causal", nodes: [0, 1, 2], duplications: 1, network: "bag" } as const;
    expect(explore(systemFor(spec))).toMatchObject({ verdict: "holds" });
  });

  it.each([
    [() => causal({ order: "fifo" }), "expected causal.order to be absent"],
    [() => usedMulticast(causal(), [], { pauseMs: 0 }), "expected user.pauseMs to be a finite number > 0, got 0"],
  ])("refuses options that it does not know", (build, sentence) => {
    expect(build).toThrow(sentence);
  });
});

/** Every run in which each node sends up to `messages` messages. */
const exploring = (protocol: Protocol<Causal>, nodes: number, messages: number, more: Partial<ExploreOptions<Used>>) =>
  explore<Used>({
    protocol: usedMulticast(protocol, [happenedBeforeOrder]),
    nodes: range(0, nodes - 1),
    network: "fifo",
    timers: "free",
    begin: "idle",
    commands: ({ multicast }, self) => (multicast.vector[self] === 0 ? [use(messages)] : []),
    ...more,
  });

describe("causal multicast: every run", () => {
  it.each([
    [3, 1, "fifo", 690],
    [2, 3, "fifo", 1_426],
    [2, 3, "bag", 2_358],
  ] as const)(
    "of %i nodes that send %i each keeps C5, integrity and agreement (%s links)",
    (nodes, messages, network, states) => {
      expect(exploring(causal(), nodes, messages, { network })).toMatchObject({ verdict: "holds", states });
    },
  );

  it("without the rule C5 is violated: 2 delivers the answer of 1 before the question of 0", () => {
    const { property, path } = exploring(impatient, 3, 1, {});
    expect(property?.name).toBe("user: C5 happened-before order");
    expect(path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual([
      "0 command",
      "1 receive",
      "1 command",
      "2 receive",
    ]);
  });

  it("with one lost message agreement is violated", () => {
    const { property, path } = exploring(causal(), 2, 1, { losses: 1 });
    expect(property?.name).toBe("agreement");
    expect(path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual(["0 command", "1 lose"]);
  });
});
