import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bounds, type ElectionSetting, electionStage } from "../../../../test/protocols/election-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { step } from "../../../core/step.ts";
import type { Simulation } from "../../../sim/simulation.ts";
import { type ExtendedRing, type ExtendedRingOptions, extendedRing } from "./extended-ring.ts";

/** Starts idle nodes. Some of them may have crashed. */
const stage = ({ options, ...setting }: ElectionSetting & { options?: Partial<ExtendedRingOptions> }) =>
  electionStage(extendedRing({ ...bounds, ...options }), setting);

const call = { type: "call" } as const;
const leaders = ({ world }: Simulation<ExtendedRing>) => world.alive.map((node) => world.state(node).leader);
const allFollow = (sim: Simulation<ExtendedRing>, leader: NodeId | null) =>
  expect(leaders(sim)).toEqual(sim.world.alive.map(() => leader));
const announcements = (told: string): Set<string> =>
  new Set([...told.matchAll(/emits elected leader (\d+)/g)].map(([, leader]) => leader as string));

/** Counts messages with lists. By the textbooks' convention, receipts are not counted. */
function withLists({ messages: { total, byType } }: Simulation<ExtendedRing>): number {
  return total - (byType.received ?? 0);
}

describe("extended ring: the worked examples", () => {
  it("node 7 of 8 has crashed and node 4 calls: node 6 detects the crash of 7, skips it, and leads", async () => {
    const { sim, told } = stage({ nodes: 8, crashed: [7] });
    sim.command(4, call);
    sim.run();
    allFollow(sim, 6);
    expect(sim.messages.byType).toEqual({ election: 8, coordinator: 7, received: 14 });
    expect(sim.world.state(2).members).toEqual([4, 5, 6, 0, 1, 2, 3]);
    expect(sim.violations).toEqual([]);
    await expect(told()).toMatchFileSnapshot("../stories/ring-dead-successor.txt");
  });

  it("two nodes call at once: both laps complete and announce the same coordinator", async () => {
    const { sim, told } = stage({ nodes: 4 });
    for (const caller of [0, 2]) sim.command(caller, call);
    sim.run();
    allFollow(sim, 3);
    expect(announcements(told())).toEqual(new Set(["3"]));
    expect(sim.messages.byType).toMatchObject({ election: 8, coordinator: 8 });
    await expect(told()).toMatchFileSnapshot("../stories/ring-two-callers.txt");
  });

  it("a crash between two laps: the lists differ, and all nodes follow the later announcement", () => {
    const { sim } = stage({ nodes: 5 });
    sim.command(1, call);
    sim.run(35); // The first lap has passed 4.
    sim.crash(4);
    sim.command(3, call);
    sim.run();
    const { alive, state } = sim.world;
    expect(new Set(alive.map((node) => JSON.stringify(state(node).followed))).size).toBe(1);
    for (const node of alive) sim.command(node, { type: "suspect", node: 4 });
    sim.run();
    allFollow(sim, 3);
    expect(sim.violations).toEqual([]);
  });
});

describe("extended ring: what it costs", () => {
  eachSize(3, 64, "N = %i: 2N for one caller, 4N for two, one more for each crashed node", (nodes) => {
    const cost = (crashed: readonly NodeId[], callers: readonly NodeId[]): number => {
      const { sim } = stage({ nodes: nodes + crashed.length, crashed });
      for (const caller of callers) sim.command(caller, call);
      sim.run();
      allFollow(sim, nodes - 1);
      expect(sim.violations).toEqual([]);
      return withLists(sim);
    };
    const measured = [cost([], [0]), cost([], [0, nodes - 1]), costOfResigning(nodes)];
    expect(measured).toEqual(extendedRing().costs.map(({ messages }) => messages(nodes)));
    expect([cost([], [1]), cost([], [1, 2])]).toEqual([2 * nodes, 4 * nodes]);
    expect(cost([nodes], [0])).toBe(2 * nodes + 1);
    expect(cost(range(nodes, nodes + 4), [0])).toBe(2 * nodes + 5);
  });

  it("k callers cost 2kN, and each delivered message with a list has one receipt", () => {
    for (const callers of range(1, 9)) {
      const { sim } = stage({ nodes: 9 });
      for (const caller of range(0, callers - 1)) sim.command(caller, call);
      sim.run();
      expect([withLists(sim), sim.messages.byType.received]).toEqual([18 * callers, 18 * callers]);
    }
  });
});

describe("extended ring: what it guarantees", () => {
  const deeds = fc.array(
    fc.record({
      node: fc.nat(4),
      kind: fc.constantFrom("call" as const, "crash" as const, "start" as const, "rank" as const),
      afterMs: fc.nat(150),
      rank: fc.integer({ min: -3, max: 9 }),
    }),
    { maxLength: 12 },
  );

  it("E1, E2 hold under any calls, crashes, restarts and rank changes", () => {
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, script) => {
        const { sim } = stage({ nodes: 5, seed, delayMs: [1, 10] });
        for (const { node, kind, afterMs, rank } of script) {
          sim.run(sim.now + afterMs);
          const isAlive = sim.world.alive.includes(node);
          if (kind === "start") {
            sim.run(); // A recovery before the crash is detected has its own test.
            if (!isAlive) sim.start(node);
            for (const other of sim.world.alive) sim.command(other, { type: "restore", node });
          } else if (!isAlive) continue;
          else if (kind === "rank") sim.command(node, { type: "rank", rank });
          else if (kind === "call") sim.command(node, call);
          else {
            sim.crash(node);
            sim.run(sim.now + bounds.maxDelayMs);
            for (const other of sim.world.alive) sim.command(other, { type: "suspect", node });
          }
        }
        sim.run(sim.now + 20_000);
        for (const property of extendedRing().properties)
          if (property.when === "quiescent")
            expect([property.name, property.holds(sim.world)]).toEqual([property.name, true]);
      }),
      { numRuns: 500 },
    );
  });

  it("E1 is violated when delays exceed the bound: a slow node is skipped and follows another leader", () => {
    const broken = range(1, 50).filter((seed) => {
      const { sim } = stage({ nodes: 3, seed, delayMs: [1, 100] });
      sim.command(0, call);
      sim.run(10_000);
      return sim.violations.some(({ property }) => property === "E1 safety");
    });
    expect(broken.length).toBeGreaterThan(0);
  });

  it("a lap whose holder crashes is lost, and its caller calls again", () => {
    const { sim } = stage({ nodes: 4 });
    sim.command(0, call);
    sim.run(25); // 2 has received it and sent a receipt.
    sim.crash(2);
    sim.run();
    allFollow(sim, 3);
    expect(sim.violations).toEqual([]);
  });

  it("if its caller crashes too, the participants call an election", () => {
    const { sim } = stage({ nodes: 4 });
    sim.command(0, call);
    sim.run(15);
    sim.crash(0);
    sim.run();
    allFollow(sim, 3);
    expect(sim.violations).toEqual([]);
  });

  it("a message whose caller has crashed ends at the caller's position", () => {
    const { sim } = stage({ nodes: 4 });
    sim.command(0, call);
    sim.run(5);
    sim.crash(0);
    sim.run(90); // T has passed since the lap reached 0's position.
    expect(range(1, 3).map((node) => sim.world.state(node).handed)).toEqual([[], [], []]);
    expect(sim.messages.byType.election).toBe(4);
  });

  it("a suspected leader is succeeded, a recovered one leads again", () => {
    const { sim } = stage({ nodes: 4 });
    sim.command(1, call);
    sim.run();
    sim.crash(3);
    sim.command(0, { type: "suspect", node: 3 });
    sim.run();
    allFollow(sim, 2);
    sim.start(3);
    sim.run();
    allFollow(sim, 3);
    expect(sim.violations).toEqual([]);
  });

  it("ignores late receipts, announcements that have gone round, and lower ones", () => {
    const { sim } = stage({ nodes: 3 });
    sim.command(0, call);
    sim.run();
    const before = JSON.stringify(sim.world.state(1));
    const { receive } = extendedRing();
    const ctx = { self: 1, peers: [0, 2], send: () => undefined, setTimer: () => undefined, emit: () => undefined };
    const lap = { caller: 1, number: 1, list: [{ node: 1, rank: 1 }] };
    const given = structuredClone(sim.world.state(1));
    receive.received(given, 2, { type: "received", of: "election", caller: 0, number: 1 }, ctx as never);
    receive.coordinator(given, 0, { type: "coordinator", ...lap }, ctx as never);
    expect(JSON.stringify(given)).toBe(before);
    receive.coordinator(given, 0, { type: "coordinator", ...lap, caller: 0, number: 0 }, ctx as never);
    expect({ ...given, handed: [] }).toEqual(JSON.parse(before));
  });

  it("a node alone elects itself, without a message", () => {
    const { sim } = stage({ nodes: 1 });
    sim.command(0, call);
    expect([leaders(sim), sim.messages.total]).toEqual([[0], 0]);
  });

  it("the highest rank leads, ids break ties, and a rank set later counts in the next election", () => {
    const ranks = [1 / 8, 1 / 2, 1 / 2, 1 / 4].map((rank, node) => ({ node, rank }));
    const { sim } = stage({ nodes: 4, options: { ranks } });
    sim.command(0, call);
    sim.run();
    allFollow(sim, 2);
    sim.command(3, { type: "rank", rank: 1 });
    sim.run();
    allFollow(sim, 2);
    sim.command(1, call);
    sim.run();
    allFollow(sim, 3);
    expect(sim.violations).toEqual([]);
  });

  it("rejects a ring that does not list every node once", () => {
    expect(() => extendedRing({ ring: [0, 1, 2, 1] }).init(2, [0, 1])).toThrow(
      "expected ring.ring to be every node once",
    );
  });
});

/** Counts the messages with lists from the resignation of the leading highest node until the next one leads. */
function costOfResigning(nodes: number): number {
  const { sim } = stage({ nodes });
  sim.command(0, call);
  sim.run();
  const before = withLists(sim);
  sim.command(nodes - 1, { type: "resign" });
  sim.run();
  allFollow(sim, nodes - 2);
  return withLists(sim) - before;
}

describe("extended ring: the leader resigns", () => {
  it("node 3 of 4 leads and resigns: node 2 is elected, and node 3 again when it stands", async () => {
    const { sim, told } = stage({ nodes: 4 });
    sim.command(0, call);
    sim.run();
    sim.command(3, { type: "resign" });
    sim.run();
    allFollow(sim, 2);
    expect(sim.violations).toEqual([]);
    await expect(told()).toMatchFileSnapshot("../stories/ring-resignation.txt");
    sim.command(3, { type: "stand" });
    sim.run();
    allFollow(sim, 3);
  });

  it("a node that resigns during an election does not stay the leader", () => {
    for (const at of range(0, 100)) {
      const { sim } = stage({ nodes: 4 });
      sim.command(0, call);
      sim.run(at);
      sim.command(3, { type: "resign" });
      sim.run();
      allFollow(sim, 2);
      expect(sim.violations).toEqual([]);
    }
  });

  it("holds in every run: two of three call, the highest resigns and stands again", () => {
    const asks = (node: NodeId) =>
      node === 2 ? ([{ type: "resign" }, { type: "stand" }] as const) : node === 0 ? ([call] as const) : [];
    expect(exploring(3, [], { asks }).verdict).toBe("holds");
  });
});

/**
 * Explores every run with bounds on time. Each of these nodes calls once. Crashes are reported after the last messages.
 */
const exploring = (nodes: number, callers: readonly NodeId[], more: Partial<ExploreOptions<ExtendedRing>> = {}) =>
  reaching(
    explore<ExtendedRing>({
      protocol: extendedRing(),
      nodes: range(0, nodes - 1),
      network: "fifo",
      timers: "quiet",
      begin: "idle",
      asks: (node) => (callers.includes(node) ? [call] : []),
      crashNotification: (node) => ({ type: "suspect", node }),
      crashNotifications: "last",
      ...more,
    }),
    "elected",
  );

describe("extended ring: a list without its caller, which only a Byzantine node sends,", () => {
  const protocol = extendedRing(bounds);
  const node = { self: 0, peers: [1, 2] };

  it.each(["election", "coordinator"] as const)("in a message of type %s changes nothing", (type) => {
    const calling = step(protocol, node, protocol.init(0, [1, 2]), { kind: "start" }).state;
    const { state } = step(protocol, node, calling, { kind: "command", command: { type: "suspect", node: 1 } });
    for (const members of [[], [{ node: 1, rank: 1 }]])
      for (const caller of [0, 2]) {
        const message = { type, caller, number: 9, list: members };
        expect(step(protocol, node, state, { kind: "receive", from: 2, message })).toEqual({ state, effects: [] });
      }
  });
});

describe("extended ring: every run", () => {
  const title = "E1 and E2 hold and every run ends within bounds on time: %i nodes, callers %j, %j";
  it.each<[number, number[], Partial<ExploreOptions<ExtendedRing>>, number]>([
    [3, [0], {}, 73],
    [3, [0, 1], {}, 2_936],
    [3, [0], { crashes: 1 }, 536],
    [3, [0], { crashes: 2 }, 948],
    [3, [1], { crashes: 2 }, 1_076], // The caller remains alone, with crashed nodes in its list.
    [3, [1], { crashes: 1, crashNotifications: "any" }, 6_309],
  ])(title, (nodes, callers, more, states) => {
    expect(exploring(nodes, callers, more)).toMatchObject({ verdict: "holds", states });
  });

  it.each<[number, number[], Partial<ExploreOptions<ExtendedRing>>, number]>([
    [3, [1, 2], { crashes: 1 }, 12_587],
    [4, [0, 2], {}, 16_092],
    [4, [0], { crashes: 1 }, 55_667],
  ])(title, { tags: ["long"] }, (nodes, callers, more, states) => {
    expect(exploring(nodes, callers, more)).toMatchObject({ verdict: "holds", states });
  });

  it("is violated when two crashes are reported before the last messages of the crashed nodes", () => {
    const { property, path } = exploring(3, [1], { crashes: 2, crashNotifications: "any" });
    expect([property?.name, path.length]).toEqual(["E1 eventually", 11]);
  });

  it("is violated without bounds on time: slow nodes are skipped", () => {
    const { verdict, property } = exploring(2, [0], { timers: "free" });
    expect([verdict, property?.name]).toEqual(["violated", "E1 safety"]);
  });

  it("is violated when a node recovers before its crash is detected, and only then", () => {
    const { property, path } = exploring(3, [0], { crashes: 1, recoveries: 1 });
    expect(property?.name).toBe("E1 safety");
    const faults = path.map(({ move }) => move.kind).filter((kind) => kind === "crash" || kind === "start");
    expect(faults).toEqual(["crash", "start"]);
  });
});
