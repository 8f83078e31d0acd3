import { describe, expect, it } from "vitest";
import {
  about,
  expectEverybodyServed,
  exploreUses,
  MESSAGE_MS,
  STAY_MS,
  silent,
  stage,
  use,
} from "../../../../test/protocols/mutex-stage.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import { happenedBefore, type VectorClock } from "../../../core/clocks.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { TraceEntry } from "../../../trace/entry.ts";
import { vectorClocks } from "../../../trace/steps.ts";
import { type MutexWithWorkload, type MutexWithWorkloadOptions, mutexWithWorkload } from "../family/workload.ts";
import { type RicartAgrawala, ricartAgrawala } from "./ricart-agrawala.ts";
import { roucairolCarvalho } from "./roucairol-carvalho.ts";

type Used = MutexWithWorkload<RicartAgrawala>;

/** Returns the workloads' events of this type, ordered by time, each with its index in the trace. */
const eventsOf = (entries: readonly TraceEntry<Used>[], type: "needed" | "entered") =>
  entries.flatMap((entry, index) =>
    entry.kind === "event" && entry.event.body.type === type
      ? [{ node: entry.node, index, token: "token" in entry.event.body ? entry.event.body.token : null }]
      : [],
  );

/**
 * Checks ME3 as in the book, from the messages of the trace alone. Returns pairs of requests that were granted out of
 * order.
 */
function outOfOrder(entries: readonly TraceEntry<Used>[]): [VectorClock, VectorClock][] {
  const clocks = vectorClocks(entries);
  const counts = new Map<NodeId, number>();
  const granted = eventsOf(entries, "entered").flatMap(({ node }) => {
    const occurrence = counts.get(node) ?? 0;
    counts.set(node, occurrence + 1);
    const request = eventsOf(entries, "needed").filter((each) => each.node === node)[occurrence];
    return request === undefined ? [] : [clocks[request.index] as VectorClock];
  });
  return granted.flatMap((first, i) =>
    granted
      .slice(i + 1)
      .filter((later) => happenedBefore(later, first))
      .map((later): [VectorClock, VectorClock] => [first, later]),
  );
}

describe("ricart-agrawala: the worked example of the catalogue", () => {
  it("p3 asks at C3 = 7, p2 concurrently at C2 = 5, p1 answers both: p2 enters, then p3", async () => {
    const { sim, story, moments } = stage(ricartAgrawala(), [1, 2, 3]);
    // Earlier events have advanced the clocks.
    sim.world.state(2).mutex.clock = 4;
    sim.world.state(3).mutex.clock = 6;
    sim.command(3, use(1));
    sim.command(2, use(1));
    sim.run();
    expect(moments("entered")).toMatchObject([
      { node: 2, at: 20 },
      { node: 3, at: 60 },
    ]);
    expect(sim.messages.byType).toEqual({ request: 4, reply: 4 });
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("../stories/ricart-agrawala-two-at-once.txt");
  });

  it("equal times are ordered by id", () => {
    const { sim, moments } = stage(ricartAgrawala(), range(0, 5));
    for (const node of [4, 2, 5, 0, 1, 3]) sim.command(node, use(1));
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual(range(0, 5));
  });
});

describe("ricart-agrawala: what it costs", () => {
  eachSize(1, 64, "N = %i: 2(N − 1) messages per entry", (nodes) => {
    const { sim } = stage(ricartAgrawala(), range(1, nodes));
    sim.command(1, use(1));
    sim.run();
    expect(sim.messages.total).toBe(2 * (nodes - 1));
    expect(sim.messages.total).toBe(ricartAgrawala().costs[0]?.messages(nodes));
  });

  it.each([2, 3, 5, 8, 16])("N = %i: the same when all nodes want to enter at once, twice", (nodes) => {
    const { sim } = stage(ricartAgrawala(), range(1, nodes));
    for (const node of range(1, nodes)) sim.command(node, use(2));
    sim.run();
    const messages = 2 * nodes * (nodes - 1);
    expect(sim.messages.byType).toEqual({ request: messages, reply: messages });
  });

  it("client delay is 2 message times, hand-over 1", () => {
    const { sim, moments } = stage(ricartAgrawala(), [0, 1, 2, 3]);
    for (const node of [0, 1, 2, 3]) sim.command(node, use(1));
    sim.run();
    expect(moments("entered").map(({ at }) => at)).toEqual(
      range(0, 3).map((turn) => 2 * MESSAGE_MS + turn * (STAY_MS + MESSAGE_MS)),
    );
  });
});

describe("ricart-agrawala: what it guarantees", () => {
  it("ME1, ME2, ME3: any workloads, any delays: one at a time, all are served, in the order of happened-before", () => {
    const staged = ({ seed }: { seed: number }) =>
      stage(ricartAgrawala(), range(0, 4), { delayMs: [1, 50], seed, stayMs: 1 + (seed % 40) });
    expectEverybodyServed(5, staged, {
      numRuns: 200,
      also({ entries }) {
        expect(outOfOrder(entries)).toEqual([]);
        const tokens = eventsOf(entries, "entered").map(({ token }) => Number(token));
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      },
    });
  });

  it("ignores a repeated reply, and a command out of turn", () => {
    const { sim } = stage(ricartAgrawala(), [0, 1]);
    sim.command(0, use(1));
    sim.run(25);
    const states = () => JSON.stringify([0, 1].map((node) => sim.world.state(node).mutex.section));
    const before = states();
    const { receive, command } = ricartAgrawala();
    receive.reply(sim.world.state(0).mutex, 1, { type: "reply", time: 1 }, silent);
    command.enter(sim.world.state(0).mutex, { type: "enter" }, silent);
    command.exit(sim.world.state(1).mutex, { type: "exit" }, silent);
    expect(states()).toBe(before);
  });

  it.each<[MutexWithWorkloadOptions<object>, string]>([
    [{ usr: {} } as never, 'expected the options of ricart-agrawala to be for workload or mutex, got "usr"'],
  ])("rejects the options %j", (options, sentence) => {
    expect(() => mutexWithWorkload(ricartAgrawala, options)).toThrow(sentence);
  });
});

/** Explores every run. Each node enters up to `entries` times. */
const exploring = (nodes: number, entries: number, more: Partial<ExploreOptions<Used>> = {}) =>
  exploreUses(ricartAgrawala(), nodes, entries, more);

/** Formats a counterexample, one move per line. */
const deeds = (path: Exploration<Used>["path"]): string[] =>
  path.map(({ move }) => {
    const said = move.kind === "receive" || move.kind === "lose" ? ` ${move.message.body.type} from ${move.from}` : "";
    return `${move.node} ${move.kind}${said}`;
  });

/** Returns the section of each node at the end of a counterexample, or null for a stopped node. */
const sections = (path: Exploration<Used>["path"]) => path.at(-1)?.states.map((state) => state?.mutex.section ?? null);

describe("ricart-agrawala: every run", () => {
  it.each([
    [2, 3, "fifo", 859],
    [3, 1, "fifo", 11_361],
    [3, 1, "bag", 28_582],
  ] as const)(
    "of %i nodes that enter %i times keeps ME1, ME2 and ME3, and the tokens grow (%s links)",
    (nodes, entries, network, states) => {
      expect(exploring(nodes, entries, { network })).toMatchObject({ verdict: "holds", states });
    },
  );

  it("ME2 is violated by one crash: the end of the run shows which nodes wait for each other", () => {
    const { verdict, property, path } = exploring(3, 1, { crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
    expect(deeds(path)).toEqual(["0 command", "1 receive request from 0", "0 receive reply from 1", "2 crash"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [2] }, { is: "released" }, null]);
  });

  it("nodes that wait for the crashed one starve: no further step is enabled", () => {
    const property = "ME2 no starvation";
    const found = explore(systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], crashes: 1, property }));
    expect([found.verdict, found.property?.name, found.loop]).toEqual(["violated", property, 2]);
    const path = found.path as Exploration<Used>["path"];
    expect(deeds(path)).toEqual(["0 command", "1 crash"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [1] }, null]);
  });

  it("ME2 is violated by one lost message", () => {
    const { path } = exploring(2, 1, { ...about(ricartAgrawala(), "ME2 liveness"), losses: 1 });
    expect(deeds(path)).toEqual(["0 command", "1 lose request from 0"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [1] }, { is: "released" }]);
  });

  it("a duplicate reply counts for the next request: ME3 is violated", () => {
    const { property } = exploring(2, 2, {
      ...about(ricartAgrawala(), "ME3 ordering"),
      duplications: 1,
      network: "bag",
    });
    expect(property?.name).toBe("ME3 ordering");
  });

  it("a node that crashes and recovers has forgotten its reply: ME1 is violated, two nodes are inside", () => {
    const { path } = exploring(3, 1, { ...about(ricartAgrawala(), "ME1 safety"), crashes: 1, recoveries: 1 });
    expect(deeds(path)).toEqual([
      "1 command",
      "0 receive request from 1",
      "0 crash",
      "0 start",
      "0 command",
      "1 receive reply from 0",
      "1 receive request from 0",
      "0 receive reply from 1",
      "2 receive request from 0",
      "0 receive reply from 2",
      "2 receive request from 1",
      "1 receive reply from 2",
    ]);
    expect(sections(path)).toEqual([{ is: "held", time: 1 }, { is: "held", time: 1 }, { is: "released" }]);
  });

  it("it has forgotten its clock as well: ME3 is violated, its timestamp is below one that happened before", () => {
    const { path } = exploring(3, 1, { ...about(ricartAgrawala(), "ME3 ordering"), crashes: 1, recoveries: 1 });
    expect(deeds(path)).toEqual([
      "1 command",
      "0 receive request from 1",
      "0 crash",
      "0 start",
      "0 command",
      "1 receive reply from 0",
      "2 receive request from 1",
      "1 receive reply from 2",
    ]);
    expect(sections(path)).toEqual([
      { is: "wanted", time: 1, awaited: [1, 2] },
      { is: "held", time: 1 },
      { is: "released" },
    ]);
  });

  it("tokens do not grow if a node forgets its clock: the recovered node enters with a lower one", () => {
    const { verdict, property } = exploring(3, 1, {
      ...about(ricartAgrawala(), "tokens grow"),
      crashes: 1,
      recoveries: 1,
    });
    expect([verdict, property?.name]).toEqual(["violated", "tokens grow"]);
  });
});

describe("roucairol-carvalho", () => {
  it.each([2, 5, 16])("N = %i: a node that enters repeatedly asks once", (nodes) => {
    const { sim, moments } = stage(roucairolCarvalho(), range(1, nodes));
    sim.command(1, use(10));
    sim.run();
    expect(moments("entered")).toHaveLength(10);
    expect(sim.messages.byType).toEqual({ request: nodes - 1, reply: nodes - 1 });
  });

  it("explored: ME1 and ME2 hold for 3 nodes if one enters twice, and the tokens grow", () => {
    expect(exploreUses(roucairolCarvalho(), 3, [2, 1, 1])).toMatchObject({ verdict: "holds" });
  });

  it("explored: without asking again, two nodes are inside", () => {
    const { verdict, property, path } = exploreUses(roucairolCarvalho({ asksAgain: false }), 3, [2, 1, 1]);
    expect([verdict, property?.name]).toEqual(["violated", "ME1 safety"]);
    const sections = path.at(-1)?.states.map((state) => state?.mutex.section.is);
    expect(sections?.filter((section) => section === "held")).toHaveLength(2);
  });

  it("explored: ME3 does not hold: a node that keeps permissions enters before an earlier request", () => {
    const withOrder = { ...roucairolCarvalho(), properties: ricartAgrawala().properties as never };
    const { verdict, property } = exploreUses(withOrder, 3, [2, 1, 1]);
    expect([verdict, property?.name]).toEqual(["violated", "ME3 ordering"]);
  });
});
