import { describe, expect, it } from "vitest";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import type { NodeId, Protocol } from "../core/protocol.ts";
import { natural } from "../core/shape.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { PartitionShape } from "./links.ts";
import type { SimulationOptions } from "./options.ts";
import { type Simulation, simulation } from "./simulation.ts";

/** A protocol that sends words on command, journals received words, and ticks. */
type Talk = {
  state: { heard: { from: NodeId; word: number }[]; ticks: number; notes: number[] };
  message: { type: "word"; word: number };
  timer: "tick";
  command:
    | { type: "say"; to: NodeId; word: number }
    | { type: "tell everybody"; word: number }
    | { type: "tick"; everyMs: number }
    | { type: "note"; note: number };
  event: { type: "heard"; word: number } | { type: "ticked" };
  record: { type: "note"; note: number };
};

const EVERY_MS = 10;

const talk: Protocol<Talk> = {
  name: "talk",
  init: () => ({ heard: [], ticks: 0, notes: [] }),
  receive: {
    word(state, from, { word }, ctx) {
      state.heard.push({ from, word });
      ctx.emit({ type: "heard", word });
    },
  },
  timeout: {
    tick(state, ctx) {
      state.ticks += 1;
      ctx.emit({ type: "ticked" });
      if (state.ticks < 10) ctx.setTimer("tick", EVERY_MS);
    },
  },
  command: {
    say: (_state, { to, word }, ctx) => ctx.send(to, { type: "word", word }),
    "tell everybody": (_state, { word }, ctx) => ctx.broadcast({ type: "word", word }),
    tick: (_state, { everyMs }, ctx) => ctx.setTimer("tick", everyMs),
    note(state, { note }, ctx) {
      state.notes.push(note);
      ctx.persist({ type: "note", note });
    },
  },
  replay: { note: (state, { note }) => void state.notes.push(note) },
  shapes: {
    message: { word: { word: natural } },
    command: {
      say: { to: natural, word: natural },
      "tell everybody": { word: natural },
      tick: { everyMs: natural },
      note: { note: natural },
    },
    record: { note: { note: natural } },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "talker" }),
};

/** Creates a simulation before any node has started. */
function fresh(count: number, more: Partial<SimulationOptions<Talk>> = {}) {
  const entries: TraceEntry<Talk>[] = [];
  const heard: { at: number; node: NodeId; word: number }[] = [];
  const nodes = Array.from({ length: count }, (_, i) => i);
  const sim = simulation<Talk>({
    protocol: talk,
    nodes,
    seed: 1,
    delayMs: 10,
    trace: (entry) => entries.push(entry),
    onEvent: (at, node, event) => event.type === "heard" && heard.push({ at, node, word: event.word }),
    ...more,
  });
  const say = (from: NodeId, to: NodeId, word: number): void => sim.command(from, { type: "say", to, word });
  return { sim, entries, heard, say, nodes };
}

function stage(count: number, more: Partial<SimulationOptions<Talk>> = {}) {
  const made = fresh(count, more);
  for (const node of made.nodes) made.sim.wake(node);
  return made;
}
const ticks = (sim: Simulation<Talk>, node: NodeId): number => sim.world.state(node).ticks;

describe("a pause", () => {
  it("queues messages, timers and commands, which the node handles in order when it resumes", () => {
    const { sim, entries, heard, say } = stage(2);
    sim.command(1, { type: "tick", everyMs: 25 });
    say(0, 1, 1);
    sim.run(5);
    sim.pause(1);
    sim.run(20);
    say(0, 1, 2);
    sim.command(1, { type: "say", to: 0, word: 3 });
    sim.run(100);
    expect([heard, ticks(sim, 1), sim.messages.total]).toEqual([[], 0, 2]);
    sim.resume(1);
    sim.run(100);
    expect(heard).toEqual([
      { at: 100, node: 1, word: 1 },
      { at: 100, node: 1, word: 2 },
    ]);
    expect(ticks(sim, 1)).toBe(1);
    const done = entries.filter(({ node, kind }) => node === 1 && kind !== "view" && kind !== "event");
    expect(done.map(({ kind }) => kind)).toEqual([
      ...["start", "command", "pause", "resume"],
      ...["receive", "command", "send", "timeout", "receive"],
    ]);
  });

  it("does not let later stimuli overtake queued ones", () => {
    const { sim, heard, say } = stage(2);
    sim.pause(1);
    for (const word of [1, 2, 3]) say(0, 1, word);
    sim.run(20);
    sim.resume(1);
    say(0, 1, 4);
    sim.run();
    expect(heard.map(({ word }) => word)).toEqual([1, 2, 3, 4]);
  });

  it("a queued timer does not fire if an earlier command has rearmed it", () => {
    const { sim } = stage(1);
    sim.command(0, { type: "tick", everyMs: 5 });
    sim.pause(0);
    sim.run(2);
    sim.command(0, { type: "tick", everyMs: 100 });
    sim.run(10);
    sim.resume(0);
    sim.run(109);
    expect(ticks(sim, 0)).toBe(0);
    sim.run(110);
    expect(ticks(sim, 0)).toBe(1);
  });

  it("ends with a crash, and the queue is lost", () => {
    const { sim, entries, heard, say } = stage(2);
    sim.pause(1);
    say(0, 1, 1);
    sim.run(20);
    sim.crash(1);
    sim.start(1);
    say(0, 1, 2);
    sim.run();
    expect(heard.map(({ word }) => word)).toEqual([2]);
    expect(entries.filter(({ kind }) => kind === "lost")).toMatchObject([{ node: 1, why: "crashed", at: 20 }]);
  });

  it("rejects a second pause, and resuming a running node", () => {
    const { sim } = stage(1);
    expect(() => sim.resume(0)).toThrow("expected node 0 to be paused, but it is running");
    sim.pause(0);
    expect(() => sim.pause(0)).toThrow("expected node 0 to be running, but it is paused");
  });
});

describe("a clock", () => {
  it("at half speed fires at half the rate", () => {
    const { sim } = stage(2);
    sim.clockRate(1, 0.5);
    for (const node of [0, 1]) sim.command(node, { type: "tick", everyMs: EVERY_MS });
    sim.run(60);
    expect([0, 1].map((node) => ticks(sim, node))).toEqual([6, 3]);
  });

  it("that changes speed while a timer runs changes its remaining time", () => {
    const { sim } = stage(1);
    const fired: number[] = [];
    sim.command(0, { type: "tick", everyMs: 100 });
    sim.run(60);
    sim.clockRate(0, 4); // 40 ms are left, which is 10 ms on the node's clock.
    for (; sim.step() && ticks(sim, 0) < 2; ) fired.push(sim.now);
    expect(fired).toEqual([70]);
    expect(sim.now).toBe(72.5);
  });

  it("cannot stop", () => {
    expect(() => stage(1).sim.clockRate(0, 0)).toThrow("expected the clock rate to be a finite number > 0, got 0");
  });
});

describe("partitions", () => {
  const all = (sim: Simulation<Talk>, word: number): void => {
    for (const node of sim.world.alive) sim.command(node, { type: "tell everybody", word });
    sim.run();
  };
  /** Returns, for each node, the senders of the word that it has received. */
  const heardBy = (sim: Simulation<Talk>, word: number): NodeId[][] =>
    sim.world.alive.map((node) =>
      sim.world
        .state(node)
        .heard.filter((each) => each.word === word)
        .map(({ from }) => from),
    );

  it("separate groups, and nodes in no group form one, until all is healed", () => {
    const { sim, entries } = stage(5);
    sim.partition([[0, 4]]);
    all(sim, 1);
    expect(heardBy(sim, 1)).toEqual([[4], [2, 3], [1, 3], [1, 2], [0]]);
    expect(entries.filter(({ kind }) => kind === "fault")[0]).toMatchObject({ node: 0, what: "partition: reaches 4" });
    expect(entries.filter((entry) => entry.kind === "lost" && entry.why === "cut")).toHaveLength(12);
    sim.heal();
    all(sim, 2);
    expect(heardBy(sim, 2).map(({ length }) => length)).toEqual([4, 4, 4, 4, 4]);
  });

  it.each<[PartitionShape, NodeId[][]]>([
    [{ shape: "one-way", from: [0, 1], to: [2] }, [[1, 2, 3], [0, 2, 3], [3], [0, 1, 2]]],
    [{ shape: "bridge", bridge: 1 }, [[1, 2], [0, 2, 3], [0, 1], [1]]],
    [
      { shape: "majority-ring" },
      [
        [1, 3],
        [0, 2],
        [1, 3],
        [0, 2],
      ],
    ],
  ])("take the shape %j", (shape, heard) => {
    const { sim } = stage(4);
    sim.partitionShape(shape);
    all(sim, 1);
    expect(heardBy(sim, 1)).toEqual(heard);
  });

  it("healing also mends single links; messages in flight when a link is cut arrive", () => {
    const { sim, heard, say } = stage(2);
    say(0, 1, 1);
    sim.cut(0, 1);
    say(0, 1, 2);
    sim.heal();
    say(0, 1, 3);
    sim.run();
    expect(heard.map(({ word }) => word)).toEqual([1, 3]);
  });
});

describe("journals", () => {
  const notes = (sim: Simulation<Talk>): number[] => sim.world.state(0).notes;
  const note = (sim: Simulation<Talk>, number: number): void => sim.command(0, { type: "note", note: number });

  it("synced: loses records written less than syncMs ago, unless the node has sent something since", () => {
    const { sim, entries, say } = stage(2, { syncMs: 20 });
    note(sim, 1);
    sim.run(20);
    note(sim, 2);
    say(0, 1, 9);
    note(sim, 3);
    sim.run(39);
    sim.crash(0, { journal: "synced" });
    sim.start(0);
    expect(notes(sim)).toEqual([1, 2]);
    const [crash, fault] = entries.filter(({ kind }) => kind === "crash" || kind === "fault");
    expect(crash).toMatchObject({ journal: [1, 2].map((each) => ({ type: "note", note: each })) });
    expect(fault).toMatchObject({ what: "journal lost its last record" });
    expect(sim.lostRecords).toBe(1);
  });

  it("synced: keeps records written before an emitted event, which waits until they are durable", () => {
    const { sim } = stage(1, { syncMs: 20 });
    note(sim, 1);
    sim.command(0, { type: "tick", everyMs: 1 });
    sim.run(1);
    note(sim, 2);
    sim.crash(0, { journal: "synced" });
    sim.start(0);
    expect(notes(sim)).toEqual([1]);
  });

  it("kept: a crash still loses records that were not durable", () => {
    const { sim } = stage(1, { syncMs: 20 });
    note(sim, 1);
    sim.crash(0);
    sim.start(0);
    expect(notes(sim)).toEqual([1]);
  });

  it("corrupted at the end: the torn record is cut off", () => {
    const { sim } = stage(1);
    for (const each of [1, 2, 3]) note(sim, each);
    sim.crash(0, { journal: "corrupted", record: 2 });
    sim.start(0);
    expect(notes(sim)).toEqual([1, 2]);
  });

  it("corrupted before the end: the node does not start, now or later", () => {
    const { sim, entries } = stage(1);
    for (const each of [1, 2, 3]) note(sim, each);
    sim.crash(0, { journal: "corrupted", record: 1 });
    for (const _again of [1, 2]) expect(() => sim.start(0)).toThrow(EnvironmentError);
    expect(sim.world.alive).toEqual([]);
    expect(entries.at(-1)).toMatchObject({ kind: "fault", what: "journal damaged at record 2 of 3" });
  });

  it("corrupted somewhere: the seed decides where", () => {
    const at = (seed: number): unknown => {
      const { sim, entries } = stage(1, { seed });
      for (const each of [1, 2, 3]) note(sim, each);
      sim.crash(0, { journal: "corrupted" });
      return entries.at(-1);
    };
    expect(at(5)).toEqual(at(5));
    const seen = new Set(Array.from({ length: 30 }, (_, seed) => JSON.stringify(at(seed))));
    expect(seen.size).toBe(3);
  });

  it("rejects an unknown fate, and leaves the node alive", () => {
    const { sim } = stage(1);
    note(sim, 1);
    expect(() => sim.crash(0, { journal: "burnt" as "lost" })).toThrow(
      `expected the journal's fate to be kept, synced, lost or corrupted, got "burnt"`,
    );
    expect(() => sim.crash(0, { journal: "corrupted", record: 1 })).toThrow(
      "expected the damaged record to be from 0 to 0, got 1",
    );
    expect(sim.world.alive).toEqual([0]);
  });
});

describe("a simulation", () => {
  it("takes one step at a time, and reports when nothing is left", () => {
    const { sim, heard, say } = stage(2);
    say(0, 1, 1);
    say(0, 1, 2);
    expect([sim.step(), heard.length, sim.now]).toEqual([true, 1, 10]);
    expect([sim.step(), heard.length]).toEqual([true, 2]);
    expect(sim.step()).toBe(false);
  });

  it("rejects actions from within a step", () => {
    const { sim, say } = stage(2, { onEvent: (_at, node) => sim.command(node, { type: "note", note: 1 }) });
    say(0, 1, 1);
    expect(() => sim.run()).toThrow("expected no change to a simulation during a step");
  });

  it("continues from a snapshot: states, journals, timers and messages in flight", () => {
    const { sim, heard, say, entries } = fresh(3);
    sim.adopt({
      at: 500,
      nodes: [
        { id: 0, state: { heard: [], ticks: 9, notes: [] }, journal: [], timers: [{ timer: "tick", remainingMs: 3 }] },
        { id: 1, state: { heard: [{ from: 0, word: 7 }], ticks: 0, notes: [] }, journal: [], timers: [] },
        { id: 2, state: null, journal: [{ type: "note", note: 4 }], timers: [] },
      ],
      inFlight: [{ id: "0-8", from: 0, to: 1, message: { type: "word", word: 8 } }],
    });
    expect([sim.now, sim.world.alive]).toEqual([500, [0, 1]]);
    sim.start(2);
    say(0, 1, 9);
    sim.run();
    expect(heard).toEqual([
      { at: 510, node: 1, word: 8 },
      { at: 510, node: 1, word: 9 },
    ]);
    expect(sim.world.state(1).heard.map(({ word }) => word)).toEqual([7, 8, 9]);
    expect(sim.world.state(2).notes).toEqual([4]);
    expect(entries.find(({ kind }) => kind === "timeout")).toMatchObject({ at: 503, node: 0 });
    const ids = entries.flatMap((entry) => (entry.kind === "receive" ? [entry.id] : []));
    expect(ids).toEqual(["0-8", "0@500-1"]);
  });

  it("rejects a snapshot after it has begun, and one with other nodes", () => {
    const snapshot = { at: 5, nodes: [{ id: 4, state: null, journal: [], timers: [] }], inFlight: [] };
    expect(() => stage(1).sim.adopt(snapshot)).toThrow("expected a simulation that has not run yet");
    expect(() => fresh(1).sim.adopt(snapshot)).toThrow("expected the snapshot's nodes to be 0, got [4]");
  });
});

describe("the options of a simulation", () => {
  it.each<[object, string]>([
    [{ nodes: [] }, "expected nodes of simulation() to be one or more different whole numbers of 0 or more, got []"],
    [{ seed: 2 ** 32 }, "expected seed of simulation() to be a whole number from 0 to 4294967295, got 4294967296"],
    [{ delayMs: -1 }, "expected delayMs of simulation() to be a finite number >= 0, got -1"],
    [
      { syncMs: Number.POSITIVE_INFINITY },
      "expected syncMs of simulation() to be a finite number of 0 or more, got Infinity",
    ],
    [
      { properties: "never" as "at the end" },
      'expected properties of simulation() to be one of every step, at the end, got "never"',
    ],
    [
      { links: [{ from: 0, to: 1, order: "lifo" as "fifo" }] },
      'expected links[0].order to be fifo or none, got "lifo"',
    ],
    [{ links: [{ from: 0, to: 9 }] }, "expected the node to be one of 0, 1, got 9"],
    [
      { byzantine: new Map([[9, "mute" as const]]) },
      "expected the nodes in byzantine of simulation() to be among 0, 1, got 9",
    ],
    [{ delay: 5 }, 'got "delay"; did you mean delayMs?'],
    [{ link: 5 }, "expected link of simulation() to be an object, got 5"],
    [{ trace: [] }, "expected trace of simulation() to be a function, got []"],
    [
      { byzantine: { 1: "mute" } },
      'expected byzantine of simulation() to be a Map from node to behavior, got {"1":"mute"}',
    ],
    [
      { protocol: "bully" },
      'expected protocol of simulation() to be a protocol: an object with a name, init() and properties, got "bully"',
    ],
  ])("are rejected: %j", (options, complaint) => {
    const refused = expect(() => stage(2, options as never));
    refused.toThrow(UsageError);
    refused.toThrow(complaint);
  });
});
