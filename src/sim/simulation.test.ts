import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { list, natural } from "../core/shape.ts";
import { extendedChangRoberts } from "../protocols/election/chang-roberts/extended-chang-roberts.ts";
import { ipMulticast } from "../protocols/multicast/ip-multicast/ip-multicast.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { patience, simulation } from "./simulation.ts";

/** Sends numbers to all nodes, a few at a time, with random pauses. */
type Counting = {
  state: { sent: number; got: { from: number; count: number }[] };
  message: { type: "count"; count: number };
  timer: "next";
  command: { type: "stop" };
  event: { type: "heard"; count: number };
};

const counting: Protocol<Counting> = {
  name: "counting",
  init: () => ({ sent: 0, got: [] }),
  start: (_state, ctx) => ctx.setTimer("next", [1, 5]),
  receive: {
    count(state, from, { count }, ctx) {
      state.got.push({ from, count });
      ctx.emit({ type: "heard", count });
    },
  },
  timeout: {
    next(state, ctx) {
      for (const _ of ctx.choose("burst", [[1], [1, 1], [1, 1, 1]]))
        ctx.broadcast({ type: "count", count: ++state.sent });
      if (state.sent < 20) ctx.setTimer("next", [1, 5]);
    },
  },
  command: { stop: (_state, _command, ctx) => ctx.cancelTimer("next") },
  shapes: { message: { count: { count: natural } }, command: { stop: {} } },
  source: "none",
  assumes: [],
  properties: [
    {
      name: "few",
      claim: "no node sends over 15",
      when: "always",
      holds: ({ alive, state }) => alive.every((node) => state(node).sent <= 15),
    },
  ],
  costs: [],
  view: ({ sent }) => ({ role: sent < 20 ? "busy" : "done" }),
};

function run(seed: number): { lines: string[]; entries: TraceEntry<Counting>[]; sim: ReturnType<typeof build> } {
  const entries: TraceEntry<Counting>[] = [];
  const sim = build(seed, entries);
  for (const node of [0, 1, 2]) sim.start(node);
  sim.run(20);
  sim.crash(1);
  sim.run(40);
  sim.start(1);
  sim.run();
  return { lines: entries.map((entry) => JSON.stringify(entry)), entries, sim };
}

const build = (seed: number, entries: TraceEntry<Counting>[]) =>
  simulation({ protocol: counting, nodes: [0, 1, 2], seed, delayMs: [1, 30], trace: (entry) => entries.push(entry) });

/** A protocol that journals rounds, and can compact them into their sum. */
type Bookkeeping = {
  state: { rounds: number[] };
  command: { type: "note"; round: number } | { type: "sum" } | { type: "list"; rounds: number[] };
  record: { type: "round"; round: number } | { type: "rounds"; rounds: number[] };
};

function bookkeeping() {
  const protocol: Protocol<Bookkeeping> = {
    name: "bookkeeping",
    init: () => ({ rounds: [] }),
    command: {
      note(state, { round }, ctx) {
        state.rounds.push(round);
        ctx.persist({ type: "round", round });
      },
      sum(state, _command, ctx) {
        state.rounds = [state.rounds.reduce((sum, round) => sum + round, 0)];
        ctx.compact([{ type: "rounds", rounds: state.rounds }]);
      },
      list(state, { rounds }, ctx) {
        state.rounds = rounds;
        ctx.compact([{ type: "rounds", rounds: state.rounds }]);
      },
    },
    replay: {
      round: (state, { round }) => void state.rounds.push(round),
      rounds(state, { rounds }) {
        state.rounds = rounds;
      },
    },
    shapes: {
      command: { note: { round: natural }, sum: {}, list: { rounds: list(natural, 9) } },
      record: { round: { round: natural }, rounds: { rounds: list(natural, 9) } },
    },
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: () => ({ role: "bookkeeper" }),
  };
  const sim = simulation({ protocol, nodes: [0], seed: 1, delayMs: 1 });
  sim.start(0);
  return sim;
}

describe("the simulator", () => {
  it("gives equal runs for equal seeds, to the byte", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        expect(run(seed).lines).toEqual(run(seed).lines);
      }),
      { numRuns: 20 },
    );
    expect(run(1).lines).not.toEqual(run(2).lines);
  });

  it("delivers messages between two nodes in order, once, and none from before a crash after it", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const { entries, sim } = run(seed);
        for (const node of sim.world.alive) {
          for (const from of [0, 1, 2]) {
            const counts = sim.world
              .state(node)
              .got.filter((each) => each.from === from)
              .map(({ count }) => count);
            // A restarted sender counts from 1 again. Within each incarnation, numbers are in order without repetition.
            const runs = counts.reduce((drops, count, i) => drops + (count <= (counts[i - 1] ?? 0) ? 1 : 0), 1);
            expect(runs).toBeLessThanOrEqual(from === 1 ? 2 : 1);
          }
        }
        const sends = entries.filter((entry) => entry.kind === "send").length;
        const ends = entries.filter((entry) => entry.kind === "receive" || entry.kind === "lost").length;
        expect(ends).toBe(sends);
        expect(sim.messages.total).toBe(sends);
      }),
      { numRuns: 50 },
    );
  });

  it("keeps virtual time: entries never go back, and a finite run ends at the given time", () => {
    const { entries } = run(4);
    expect(entries.every((entry, i) => i === 0 || entry.at >= (entries[i - 1] as TraceEntry<Counting>).at)).toBe(true);
    const sim = build(4, []);
    sim.run(123);
    expect(sim.now).toBe(123);
  });

  it("checks properties after every step and keeps the first violation of each", () => {
    const { sim } = run(9);
    expect(sim.violations).toHaveLength(1);
    expect(sim.violations[0]).toMatchObject({ property: "few", claim: "no node sends over 15" });
  });

  it("drops a cancelled timer", () => {
    const sim = build(5, []);
    sim.start(0);
    sim.wake(1);
    sim.wake(2);
    sim.command(0, { type: "stop" });
    sim.run();
    expect(sim.messages.total).toBe(0);
  });

  it("becomes quiescent when the last message in flight is lost", () => {
    const sim = simulation<Counting>({
      protocol: {
        ...counting,
        properties: [
          { name: "never", claim: "it never rests", when: "quiescent", pendingTimers: ["next"], holds: () => false },
        ],
      },
      nodes: [0, 1],
      seed: 1,
      delayMs: 10,
    });
    sim.start(0);
    sim.wake(1);
    sim.run(6);
    sim.command(0, { type: "stop" });
    sim.crash(1);
    expect(sim.violations).toEqual([]);
    sim.run();
    expect(sim.violations).toMatchObject([{ property: "never" }]);
  });

  it("holds a ring of 30,000 nodes with the ordinary protocol, and ids with gaps", () => {
    const ring = Array.from({ length: 30_000 }, (_, i) => 3 * i + 1);
    const sim = simulation({
      protocol: extendedChangRoberts({ ring }),
      nodes: ring,
      seed: 1,
      delayMs: 1,
      properties: "at the end",
    });
    for (const node of ring) sim.wake(node);
    for (const node of ring) sim.command(node, { type: "call" });
    sim.run();
    expect(sim.messages).toEqual({ total: 89_999, byType: { election: 59_999, elected: 30_000 } });
    expect(sim.verdict()).toEqual([]);
  });

  it("counts a broadcast as one datagram if datagrams reach all others, and as one message per receiver", () => {
    const sim = simulation({ protocol: ipMulticast(), nodes: [0, 1, 2, 3], seed: 1, delayMs: 1 });
    for (const node of [0, 1, 2, 3]) sim.wake(node);
    sim.command(0, { type: "send", payload: "to all" });
    expect([sim.messages.total, sim.datagrams]).toEqual([3, 1]);
    const others = simulation({
      protocol: extendedChangRoberts({ ring: [0, 1, 2, 3] }),
      nodes: [0, 1, 2, 3],
      seed: 1,
      delayMs: 1,
    });
    for (const node of [0, 1, 2, 3]) others.wake(node);
    others.command(0, { type: "call" });
    others.run();
    expect(others.datagrams).toBe(others.messages.total); // Each datagram has one receiver.
  });

  it("a message to a crashed node is lost even if the node recovers first; a node that never ran receives it", () => {
    const entries: TraceEntry<Counting>[] = [];
    const sim = simulation({
      protocol: counting,
      nodes: [0, 1, 2],
      seed: 1,
      delayMs: 50,
      trace: (e) => entries.push(e),
    });
    for (const node of [0, 1]) sim.start(node);
    sim.crash(1);
    sim.run(30);
    for (const node of [1, 2]) sim.start(node);
    sim.command(1, { type: "stop" });
    sim.command(2, { type: "stop" });
    sim.run(79);
    const counts = (node: number) => sim.world.state(node).got.map(({ count }) => count);
    expect(counts(1)).toEqual([]);
    expect(counts(2).length).toBeGreaterThan(0);
    expect(entries.some((entry) => entry.kind === "lost" && entry.node === 1 && entry.why === "crashed")).toBe(true);
  });

  it("describes invalid commands", () => {
    const sim = build(1, []);
    expect(() => sim.crash(0)).toThrow("expected node 0 to be alive, but it has crashed");
    sim.start(0);
    expect(() => sim.start(0)).toThrow("expected node 0 to be down, but it is alive");
    expect(() => sim.start(7)).toThrow("expected the node to be one of 0, 1, 2, got 7");
  });

  describe("keeps a journal for each node", () => {
    const rounds = (sim: ReturnType<typeof bookkeeping>) => sim.world.state(0).rounds;

    it("replaces records on compaction", () => {
      const sim = bookkeeping();
      for (const round of [3, 1]) sim.command(0, { type: "note", round });
      sim.command(0, { type: "sum" });
      sim.command(0, { type: "note", round: 5 });
      sim.crash(0, { journal: "kept" });
      sim.start(0);
      expect(rounds(sim)).toEqual([4, 5]);
    });

    it("is unaffected by later changes of the state", () => {
      const sim = bookkeeping();
      sim.command(0, { type: "list", rounds: [1, 2] });
      sim.command(0, { type: "note", round: 3 });
      sim.crash(0);
      sim.start(0);
      sim.command(0, { type: "note", round: 4 });
      sim.crash(0);
      sim.start(0);
      expect(rounds(sim)).toEqual([1, 2, 3, 4]);
    });
  });
});

describe("the limit of steps in a run", () => {
  it("stops a run that never becomes quiescent", () => {
    const happened = patience(3, Number.POSITIVE_INFINITY, 2);
    happened();
    happened();
    expect(happened).toThrow(
      "expected the run to become idle within 2 events, but it continues: set when it ends, with until in a scenario, --until on the command line or run(untilMs) in code",
    );
  });

  it("does not apply if the run has an end time", () => {
    const happened = patience(3, 100, 2);
    for (let i = 0; i < 10; i++) expect(happened).not.toThrow();
  });
});
