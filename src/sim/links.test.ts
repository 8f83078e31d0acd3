import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NodeId, Protocol } from "../core/protocol.ts";
import { natural } from "../core/shape.ts";
import type { Delay } from "./delay.ts";
import { intoGroups, intoShape, type PartitionShape, type Separation } from "./links.ts";
import type { SimulationOptions } from "./options.ts";
import { simulation } from "./simulation.ts";

/** Nodes that send numbers to others on command, and remember the numbers they receive. */
type Post = {
  state: { got: number[] };
  message: { type: "letter"; number: number };
  command: { type: "send"; to: NodeId; from: number; count: number };
  event: { type: "got"; number: number };
};

const post: Protocol<Post> = {
  name: "post",
  init: () => ({ got: [] }),
  receive: {
    letter(state, _from, { number }, ctx) {
      state.got.push(number);
      ctx.emit({ type: "got", number });
    },
  },
  command: {
    send(_state, { to, from, count }, ctx) {
      for (let i = 0; i < count; i++) ctx.send(to, { type: "letter", number: from + i });
    },
  },
  shapes: {
    message: { letter: { number: natural } },
    command: { send: { to: natural, from: natural, count: natural } },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "server" }),
};

type Options = Partial<SimulationOptions<Post>>;

/** Starts the nodes, and records the deliveries: number, receiver and time. */
function stage(options: Options, nodes = 2) {
  const came: [number: number, node: NodeId, at: number][] = [];
  const ids = Array.from({ length: nodes }, (_, i) => i);
  const sim = simulation<Post>({
    protocol: post,
    nodes: ids,
    seed: 1,
    delayMs: 10,
    onEvent: (at, node, { number }) => came.push([number, node, at]),
    ...options,
  });
  for (const id of ids) sim.wake(id);
  const send = (from: NodeId, to: NodeId, first: number, count = 1): void =>
    sim.command(from, { type: "send", to, from: first, count });
  const numbers = (): number[] => came.map(([number]) => number);
  return { sim, came, send, numbers };
}
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const randomDelays: readonly Delay[] = [
  [1, 100],
  { normal: { meanMs: 50, deviationMs: 40 } },
  { logNormal: { medianMs: 20, sigma: 1 } },
];

describe("the order of messages", () => {
  it.each(randomDelays)("is kept on a FIFO link with any delays: %j", (delayMs) => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const { sim, send, numbers } = stage({ delayMs, seed });
        send(0, 1, 0, 50);
        sim.run();
        expect(numbers()).toEqual(upTo(50));
      }),
      { numRuns: 30 },
    );
  });

  it.each(randomDelays)("is not kept without FIFO, and nothing is lost: %j", (delayMs) => {
    const { sim, send, numbers } = stage({ delayMs, link: { order: "none" } });
    send(0, 1, 0, 50);
    sim.run();
    expect(numbers()).not.toEqual(upTo(50));
    expect(numbers().sort((a, b) => a - b)).toEqual(upTo(50));
  });

  it("is kept when a link becomes faster while messages are on it", () => {
    const { sim, send, came } = stage({ delayMs: 30 });
    send(0, 1, 0);
    sim.run(1);
    sim.setLink(0, 1, { delay: 5 });
    send(0, 1, 1);
    sim.run(50);
    send(0, 1, 2);
    sim.run();
    expect(came).toEqual([
      [0, 1, 30],
      [1, 1, 30],
      [2, 1, 55],
    ]);
  });
});

describe("links", () => {
  it("have separate models for each direction", () => {
    const { sim, send, came } = stage(
      {
        links: [
          { from: 0, to: 1, delay: 3 },
          { from: 1, to: 2, delay: 4 },
        ],
      },
      3,
    );
    for (const [from, to] of [
      [0, 1],
      [1, 0],
      [1, 2],
    ] as const)
      send(from, to, 10 * from + to);
    sim.run();
    expect(came).toEqual([
      [1, 1, 3],
      [12, 2, 4],
      [10, 0, 10],
    ]);
  });

  it("lose about as many messages as their rate says; certain loss and no loss draw no randomness", () => {
    const lost = (lossRate: number): number => {
      const { sim, send, numbers } = stage({ link: { lossRate } });
      send(0, 1, 0, 4_000);
      sim.run();
      return 4_000 - numbers().length;
    };
    expect([lost(0), lost(1)]).toEqual([0, 4_000]);
    expect(lost(0.25) / 4_000).toBeCloseTo(0.25, 1);
  });

  it("deliver some messages twice, with one id, and count them once", () => {
    const ids: string[] = [];
    const { sim, send, numbers } = stage({
      delayMs: [1, 9],
      link: { duplicateRate: 0.5 },
      trace: (entry) => entry.kind === "receive" && ids.push(entry.id),
    });
    send(0, 1, 0, 1_000);
    sim.run();
    expect(new Set(numbers()).size).toBe(1_000);
    expect(numbers().length / 1_000).toBeCloseTo(1.5, 1);
    expect(new Set(ids).size).toBe(1_000);
    expect(ids).toHaveLength(numbers().length);
    expect(sim.messages.total).toBe(1_000);
  });

  it("of limited bandwidth send one message after another, for as long as its JSON text takes", () => {
    const bytes = JSON.stringify({ type: "letter", number: 0 }).length;
    const { sim, send, came } = stage({ delayMs: 100, link: { bytesPerMs: 2 } }, 3);
    send(0, 1, 0, 3);
    send(0, 2, 3);
    sim.run();
    expect(came).toEqual([
      [0, 1, 100 + bytes / 2],
      [3, 2, 100 + bytes / 2],
      [1, 1, 100 + bytes],
      [2, 1, 100 + (3 * bytes) / 2],
    ]);
  });

  it("a message of a node to itself takes no time and no network, and is not counted", () => {
    const { sim, send, came } = stage({ link: { lossRate: 1 } });
    send(0, 0, 5);
    sim.run();
    expect([came, sim.messages.total]).toEqual([[[5, 0, 0]], 0]);
  });
});

describe("processing time", () => {
  it("queues stimuli in order meanwhile, and sends messages at the end", () => {
    const { sim, send, came } = stage({ processingMs: 7 }, 3);
    send(0, 1, 0, 3); // Node 0 is busy until 7 ms.
    send(0, 2, 9); // This command starts at 7 ms and finishes at 14 ms.
    sim.run();
    expect(came).toEqual([
      [0, 1, 17],
      [9, 2, 24],
      [1, 1, 24],
      [2, 1, 31],
    ]);
  });

  it("is drawn from a separate random stream", () => {
    const times = (processingMs: Delay): number[] => {
      const { sim, send, came } = stage({ delayMs: [10, 20], link: { order: "none" }, processingMs });
      send(0, 1, 0);
      sim.run();
      return came.map(([, , at]) => at);
    };
    const [plain = 0] = times(0);
    const [slow = 0] = times([5, 6]);
    expect(slow - plain).toBeGreaterThanOrEqual(5);
    expect(slow - plain).toBeLessThan(6);
  });
});

describe("chance", () => {
  const arrivals = (options: Options, count = 200): Map<number, number> => {
    const { sim, send, came } = stage({ delayMs: [1, 100], ...options, link: { order: "none", ...options.link } });
    send(0, 1, 0, count);
    sim.run();
    return new Map(came.toReversed().map(([number, , at]) => [number, at]));
  };

  it.each<[string, Options]>([
    ["losses", { link: { lossRate: 0.3 } }],
    ["duplicates", { link: { duplicateRate: 0.3 } }],
  ])("%s change the delay of no message that arrives", (_what, options) => {
    const plain = arrivals({});
    const changed = arrivals(options);
    let sooner = 0;
    for (const [number, at] of changed) {
      // The second copy may arrive first.
      if (at < (plain.get(number) as number)) sooner += 1;
      else expect(at).toBe(plain.get(number));
    }
    expect(changed.size).toBe(options.link?.lossRate === undefined ? 200 : changed.size);
    expect(sooner > 0).toBe(options.link?.duplicateRate !== undefined);
  });

  it("cuts change no other message's delay", () => {
    const times = (isCut: boolean): number[] => {
      const { sim, send, came } = stage({ delayMs: [1, 100] }, 3);
      if (isCut) sim.cut(0, 1);
      send(0, 1, 0, 20);
      send(0, 2, 100, 20);
      sim.run();
      return came.filter(([, node]) => node === 2).map(([, , at]) => at);
    };
    expect(times(true)).toEqual(times(false));
  });
});

describe("a wrong link", () => {
  it.each<[object, string]>([
    [{ lossRate: "often" }, 'expected the link from 0 to 1.lossRate to be a number from 0 to 1, got "often"'],
    [{ bytesPerMs: 0 }, "expected the link from 0 to 1.bytesPerMs to be a number > 0, got 0"],
    [{ lossrate: 1 }, "expected the link from 0 to 1.lossrate to be absent, got 1"],
  ])("%j is rejected", (model, complaint) => {
    expect(() => stage({}).sim.setLink(0, 1, model)).toThrow(complaint);
  });
});

const same = (node: number): number => node;
/** Returns the nodes that each node reaches, including itself. */
const reach = (count: number, separation: Separation): number[][] =>
  Array.from({ length: count }, (_, from) =>
    Array.from({ length: count }, (_, to) => to).filter((to) => to === from || !separation(from, to)),
  );
const shaped = (count: number, shape: PartitionShape): number[][] => reach(count, intoShape(count, shape, same));

describe("partitions", () => {
  it("into groups: each node reaches its own group, and nodes in no group reach each other", () => {
    expect(reach(6, intoGroups(6, [[0, 3], [4]], same))).toEqual([
      [0, 3],
      [1, 2, 5],
      [1, 2, 5],
      [0, 3],
      [4],
      [1, 2, 5],
    ]);
  });

  it("a bridge belongs to both halves", () => {
    expect(shaped(5, { shape: "bridge" })).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1, 2, 3, 4],
      [2, 3, 4],
      [2, 3, 4],
    ]);
    expect(shaped(5, { shape: "bridge", bridge: 0 })).toEqual([
      [0, 1, 2, 3, 4],
      [0, 1, 2],
      [0, 1, 2],
      [0, 3, 4],
      [0, 3, 4],
    ]);
  });

  it("a majority ring: each node reaches a different majority in both directions, and none reaches all", () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 40 }), (count) => {
        const reached = shaped(count, { shape: "majority-ring" });
        for (const [node, others] of reached.entries()) {
          expect(others.length).toBeGreaterThan(count / 2);
          expect(others.length).toBeLessThan(count);
          for (const other of others) expect(reached[other]).toContain(node);
        }
        expect(new Set(reached.map(String)).size).toBe(count);
      }),
    );
  });

  it.each<[number, PartitionShape, string]>([
    [3, { shape: "majority-ring" }, "expected the nodes of a majority-ring to be at least 4, got 3"],
    [
      3,
      { shape: "star" } as unknown as PartitionShape,
      `expected the partition's shape to be one-way, bridge or majority-ring, got "star"`,
    ],
  ])("rejects, for %i nodes, %j", (count, shape, complaint) => {
    expect(() => intoShape(count, shape, same)).toThrow(complaint);
  });

  it("rejects groups with a node in common", () => {
    expect(() => intoGroups(3, [[0, 1], [1]], same)).toThrow("expected the groups to be without a node in common");
  });
});
