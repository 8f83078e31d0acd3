import { describe, expect, it } from "vitest";
import { type Assembly, assemble } from "../core/assemble.ts";
import type { Protocol } from "../core/protocol.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { replay } from "../trace/replay.ts";
import { type Simulation, simulation } from "./simulation.ts";

/**
 * On command, a node journals, notifies the others and itself, sets a timer, and emits an event.
 */
type Tellers = {
  state: { heard: number; written: number };
  message: { type: "news" };
  timer: "rest";
  command: { type: "tell" };
  event: { type: "told" };
  record: { type: "written" };
};

const tellers: Protocol<Tellers> = {
  name: "tellers",
  init: () => ({ heard: 0, written: 0 }),
  receive: {
    news(state) {
      state.heard += 1;
    },
  },
  timeout: { rest: (_state, ctx) => ctx.broadcast({ type: "news" }) },
  command: {
    tell(_state, _command, ctx) {
      ctx.persist({ type: "written" });
      ctx.broadcast({ type: "news" });
      ctx.send(ctx.self, { type: "news" });
      ctx.setTimer("rest", 50);
      ctx.emit({ type: "told" });
      ctx.persist({ type: "written" });
    },
  },
  replay: {
    written(state) {
      state.written += 1;
    },
  },
  shapes: { message: { news: {} }, command: { tell: {} }, record: { written: {} } },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: ({ heard }) => ({ role: `has heard ${heard}` }),
};

/** Sends a command to node 0, which crashes at the first entry for which `strikes` is true. */
function telling(strikes: (entry: TraceEntry<Tellers>, sends: number) => boolean) {
  const entries: TraceEntry<Tellers>[] = [];
  let sends = 0;
  const sim = simulation<Tellers>({
    protocol: tellers,
    nodes: [0, 1, 2, 3],
    seed: 1,
    delayMs: 10,
    trace(entry) {
      entries.push(entry);
      if (entry.kind === "send") sends += 1;
      if (entry.node === 0 && entry.kind !== "crash" && strikes(entry, sends)) sim.crash(0);
    },
  });
  for (const node of [0, 1, 2, 3]) sim.start(node);
  sim.command(0, { type: "tell" });
  sim.run();
  const heard = [1, 2, 3].map((node) => sim.world.state(node).heard);
  return { sim, entries, heard };
}

describe("a node that crashes within a step", () => {
  it.each([
    [1, [1, 0, 0]],
    [2, [1, 1, 0]],
    [3, [1, 1, 1]],
  ])("after its send number %i does nothing more", (number, expected) => {
    const { sim, entries, heard } = telling(({ kind }, sends) => kind === "send" && sends === number);
    expect(heard).toEqual(expected);
    expect(sim.world.alive).toEqual([1, 2, 3]);
    expect(sim.messages.total).toBe(number);
    const own = entries.filter(({ node }) => node === 0).map(({ kind }) => kind);
    expect(own).toEqual(["start", "view", "command", ...Array(number).fill("send"), "crash"]);
    expect(entries.find(({ kind }) => kind === "crash")).toMatchObject({ withinStep: true, journal: [{}] });
  });

  it("before its step does nothing", () => {
    const { sim, heard, entries } = telling(({ kind }) => kind === "command");
    expect([heard, sim.messages.total]).toEqual([[0, 0, 0], 0]);
    expect(entries.find(({ kind }) => kind === "crash")).not.toHaveProperty("withinStep");
  });

  it("keeps the records written by then, and finds them after its restart", () => {
    const { sim } = telling(({ kind }) => kind === "event");
    sim.start(0);
    expect(sim.world.state(0)).toEqual({ heard: 0, written: 1 });
    const early = telling(({ kind }) => kind === "command");
    early.sim.start(0);
    expect(early.sim.world.state(0).written).toBe(0);
  });

  it("at its last effect has done everything, but loses its timers", () => {
    const { sim, heard } = telling(({ kind }) => kind === "event");
    expect(heard).toEqual([1, 1, 1]);
    expect(sim.isOver).toBe(true);
  });

  it("leaves a trace that can be replayed", () => {
    const { entries, sim } = telling(({ kind }, sends) => kind === "send" && sends === 2);
    const { doubts, snapshot, steps } = replay(tellers, [0, 1, 2, 3], entries);
    expect([doubts, steps]).toEqual([[], 7]);
    expect(snapshot.nodes.map(({ state }) => state?.heard)).toEqual([undefined, 1, 1, 0]);
    expect(sim.lost).toBe(0);
  });

  it("has parts that do nothing more either, then or after the restart", () => {
    type Saying = { state: { count: number }; command: { type: "say" }; event: { type: "said" } };
    const saying: Protocol<Saying> = {
      name: "saying",
      init: () => ({ count: 0 }),
      command: {
        say(state, _command, ctx) {
          state.count += 1;
          ctx.emit({ type: "said" });
          ctx.emit({ type: "said" });
        },
      },
      shapes: { command: { say: {} } },
      source: "none",
      assumes: [],
      properties: [],
      costs: [],
      view: () => ({ role: "saying" }),
    };
    type Parts = { saying: Saying; tellers: Tellers };
    const both = assemble<Parts>(
      "both",
      { saying, tellers },
      { saying: { said: (_event, give) => give("tellers", { type: "tell" }) } },
      { face: "saying" },
    );
    let isFirst = true;
    const sim: Simulation<Assembly<Parts>> = simulation<Assembly<Parts>>({
      protocol: both,
      nodes: [0, 1],
      seed: 1,
      delayMs: 10,
      onEvent() {
        if (isFirst) sim.crash(0);
        isFirst = false;
      },
    });
    for (const node of [0, 1]) sim.start(node);
    sim.command(0, { type: "saying", body: { type: "say" } });
    sim.start(0);
    sim.run();
    expect(sim.messages.total).toBe(0);
    sim.command(0, { type: "saying", body: { type: "say" } });
    expect(sim.messages.byType).toEqual({ news: 2 });
  });

  it("no other node can be crashed meanwhile", () => {
    const sim = simulation<Tellers>({
      protocol: tellers,
      nodes: [0, 1],
      seed: 1,
      delayMs: 10,
      onEvent: () => sim.crash(1),
    });
    for (const node of [0, 1]) sim.start(node);
    expect(() => sim.command(0, { type: "tell" })).toThrow("during a step");
  });
});
