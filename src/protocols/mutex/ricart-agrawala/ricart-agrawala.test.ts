import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eachSize } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import { happenedBefore, type VectorClock } from "../../../core/clocks.ts";
import type { NodeId, Property } from "../../../core/protocol.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import type { TraceEntry } from "../../../trace/entry.ts";
import { logLine } from "../../../trace/log.ts";
import { vectorClocks } from "../../../trace/steps.ts";
import { type MutexWithWorkload, type MutexWithWorkloadOptions, mutexWithWorkload } from "../family/workload.ts";
import { type RicartAgrawala, ricartAgrawala } from "./ricart-agrawala.ts";

type Used = MutexWithWorkload<RicartAgrawala>;

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Nodes that have been running idly, each with a workload. */
function stage(nodes: readonly NodeId[], delayMs: number | readonly [number, number] = 10, seed = 1, options = {}) {
  const entries: TraceEntry<Used>[] = [];
  const sim: Simulation<Used> = simulation({
    protocol: mutexWithWorkload(ricartAgrawala, { workload: { stayMs: 30 }, ...options }),
    nodes,
    seed,
    delayMs,
    trace: (entry) => entries.push(entry),
  });
  for (const node of nodes) sim.wake(node);
  entries.length = 0;
  return { sim, entries };
}

const use = (entries: number): Used["command"] => ({ type: "workload", body: { type: "use", entries } });

/** Requests and entries of each node in their order: the n-th request of a node is granted by its n-th entry. */
function moments(entries: readonly TraceEntry<Used>[], what: "needed" | "entered") {
  return entries.flatMap((entry, i) =>
    entry.kind === "event" && entry.event.body.type === what ? [{ node: entry.node, at: entry.at, index: i }] : [],
  );
}

/** The tokens of all entries, in the order of entry. */
const tokensOf = (entries: readonly TraceEntry<Used>[]): number[] =>
  entries.flatMap((entry) =>
    entry.kind === "event" && entry.event.body.type === "entered" ? [entry.event.body.token] : [],
  );

/** ME3 in the book's words, from the messages of the trace alone: pairs of requests that were granted out of order. */
function outOfOrder(entries: readonly TraceEntry<Used>[]): [VectorClock, VectorClock][] {
  const clocks = vectorClocks(entries);
  const counts = new Map<NodeId, number>();
  const granted = moments(entries, "entered").flatMap(({ node }) => {
    const occurrence = counts.get(node) ?? 0;
    counts.set(node, occurrence + 1);
    const request = moments(entries, "needed").filter((each) => each.node === node)[occurrence];
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
    const { sim, entries } = stage([1, 2, 3]);
    // What has happened before has brought the clocks here.
    sim.world.state(2).mutex.clock = 4;
    sim.world.state(3).mutex.clock = 6;
    sim.command(3, use(1));
    sim.command(2, use(1));
    sim.run();
    expect(moments(entries, "entered")).toMatchObject([
      { node: 2, at: 20 },
      { node: 3, at: 60 },
    ]);
    expect(sim.messages.byType).toEqual({ request: 4, reply: 4 });
    expect(sim.violations).toEqual([]);
    const story = entries.map((entry) => `${logLine(entry as TraceEntry)}\n`).join("");
    await expect(story).toMatchFileSnapshot("../stories/ricart-agrawala-two-at-once.txt");
  });

  it("equal times are ordered by id", () => {
    const { sim, entries } = stage(range(0, 5));
    for (const node of [4, 2, 5, 0, 1, 3]) sim.command(node, use(1));
    sim.run();
    expect(moments(entries, "entered").map(({ node }) => node)).toEqual(range(0, 5));
  });
});

describe("ricart-agrawala: what it costs", () => {
  eachSize(1, 64, "N = %i: 2(N − 1) messages an entry", (nodes) => {
    const { sim } = stage(range(1, nodes));
    sim.command(1, use(1));
    sim.run();
    expect(sim.messages.total).toBe(2 * (nodes - 1));
    expect(sim.messages.total).toBe(ricartAgrawala().costs[0]?.messages(nodes));
  });

  it.each([2, 3, 5, 8, 16])("N = %i: the same when everybody wants in at once, twice", (nodes) => {
    const { sim } = stage(range(1, nodes));
    for (const node of range(1, nodes)) sim.command(node, use(2));
    sim.run();
    const messages = 2 * nodes * (nodes - 1);
    expect(sim.messages.byType).toEqual({ request: messages, reply: messages });
  });

  it("client delay is 2 message times, hand-over 1", () => {
    const { sim, entries } = stage([0, 1, 2, 3]);
    for (const node of [0, 1, 2, 3]) sim.command(node, use(1));
    sim.run();
    const [messageMs, stayMs] = [10, 30];
    expect(moments(entries, "entered").map(({ at }) => at)).toEqual(
      range(0, 3).map((turn) => 2 * messageMs + turn * (stayMs + messageMs)),
    );
  });
});

describe("ricart-agrawala: what it guarantees", () => {
  it("ME1, ME2, ME3: any workloads, any delays: one at a time, everybody, in the order of happened-before", () => {
    const demand = fc.array(fc.record({ node: fc.nat(4), at: fc.nat(200), entries: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.nat(), demand, fc.integer({ min: 1, max: 40 }), (seed, demands, stayMs) => {
        const { sim, entries } = stage(range(0, 4), [1, 50], seed, { workload: { stayMs } });
        for (const { node, at, entries } of demands.sort((a, b) => a.at - b.at)) {
          sim.run(at);
          sim.command(node, use(entries));
        }
        sim.run();
        expect(sim.violations).toEqual([]);
        expect(moments(entries, "entered")).toHaveLength(demands.reduce((sum, { entries }) => sum + entries, 0));
        expect(outOfOrder(entries)).toEqual([]);
        const tokens = tokensOf(entries);
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  });

  it("a message of no use changes nothing: a repeated reply, a command out of turn", () => {
    const { sim } = stage([0, 1]);
    sim.command(0, use(1));
    sim.run(25);
    const states = () => JSON.stringify([0, 1].map((node) => sim.world.state(node).mutex.section));
    const before = states();
    const { receive, command } = ricartAgrawala();
    const silent = { self: 0, peers: [1] } as never; // Whatever it did with it would throw.
    receive.reply(sim.world.state(0).mutex, 1, { type: "reply", time: 1 }, silent);
    command.enter(sim.world.state(0).mutex, { type: "enter" }, silent);
    command.exit(sim.world.state(1).mutex, { type: "exit" }, silent);
    expect(states()).toBe(before);
  });

  it.each<[MutexWithWorkloadOptions<object>, string]>([
    [{ mutex: { fair: true } }, "expected ricart-agrawala.fair to be absent, got true"],
    [{ workload: { stayMs: 0 } }, "expected workload.stayMs to be a finite number > 0, got 0"],
    [{ usr: {} } as never, 'expected the options of ricart-agrawala to be for workload or mutex, got "usr"'],
  ])("refuses the options %j", (options, sentence) => {
    expect(() => mutexWithWorkload(ricartAgrawala, options)).toThrow(sentence);
  });
});

/** Every run in which each node enters up to `entries` times. */
function exploring(nodes: number, entries: number, more: Partial<ExploreOptions<Used>> = {}) {
  return explore<Used>({
    protocol: mutexWithWorkload(ricartAgrawala),
    nodes: range(0, nodes - 1),
    network: "fifo",
    timers: "free",
    begin: "idle",
    commands: ({ workload }) => (workload.doing === "idle" && workload.entries === 0 ? [use(entries)] : []),
    ...more,
  });
}

const about = (name: string): { properties: Property<Used>[] } => ({
  properties: mutexWithWorkload(ricartAgrawala).properties.filter((property) => property.name === name),
});

/** A counterexample in words, a move each. */
const deeds = (path: Exploration<Used>["path"]): string[] =>
  path.map(({ move }) => {
    const said = move.kind === "receive" || move.kind === "lose" ? ` ${move.message.body.type} from ${move.from}` : "";
    return `${move.node} ${move.kind}${said}`;
  });

/** What each node does at the end of a counterexample; null for a node that is down. */
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

  it("with one crash ME2 is violated: the end shows who waits for whom", () => {
    const { verdict, property, path } = exploring(3, 1, { crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
    expect(deeds(path)).toEqual(["0 command", "1 receive request from 0", "0 receive reply from 1", "2 crash"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [2] }, { is: "released" }, null]);
  });

  it("and whoever waits for it starves: nothing is bound to happen any more", () => {
    const property = "ME2 no starvation";
    const found = explore(systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], crashes: 1, property }));
    expect([found.verdict, found.property?.name, found.loop]).toEqual(["violated", property, 2]);
    const path = found.path as Exploration<Used>["path"];
    expect(deeds(path)).toEqual(["0 command", "1 crash"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [1] }, null]);
  });

  it("with one lost message ME2 is violated", () => {
    const { path } = exploring(2, 1, { ...about("ME2 liveness"), losses: 1 });
    expect(deeds(path)).toEqual(["0 command", "1 lose request from 0"]);
    expect(sections(path)).toEqual([{ is: "wanted", time: 1, awaited: [1] }, { is: "released" }]);
  });

  it("a reply that arrives twice counts for the next request: ME3 is violated", () => {
    const { property } = exploring(2, 2, { ...about("ME3 ordering"), duplications: 1, network: "bag" });
    expect(property?.name).toBe("ME3 ordering");
  });

  it("a node that crashes and comes back has forgotten that it replied: ME1 is violated, two are inside", () => {
    const { path } = exploring(3, 1, { ...about("ME1 safety"), crashes: 1, recoveries: 1 });
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

  it("and it has forgotten its clock: ME3 is violated, its request is stamped below one that happened before", () => {
    const { path } = exploring(3, 1, { ...about("ME3 ordering"), crashes: 1, recoveries: 1 });
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
});

describe("ricart-agrawala: tokens", () => {
  it("do not grow if a node forgets its clock: whoever came back enters with a lower one", () => {
    const { verdict, property } = exploring(3, 1, { ...about("tokens grow"), crashes: 1, recoveries: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "tokens grow"]);
  });
});
