import { describe, expect, it } from "vitest";
import { assemble } from "./assemble.ts";
import type { Protocol } from "./protocol.ts";
import { natural, problem, variants } from "./shape.ts";
import { type Effect, step } from "./step.ts";

/** Counts the bumps it receives, emits each count and journals it. */
type Counter = {
  state: { count: number; log: string[] };
  message: { type: "add"; by: number };
  timer: "tick";
  command: { type: "add"; by: number };
  event: { type: "counted"; count: number };
  record: { type: "count"; count: number };
};

function counter(options: { limit: number }): Protocol<Counter> {
  const add = (state: Counter["state"], by: number, emit: (count: number) => void): void => {
    state.log.push(`begin ${by}`);
    state.count += by;
    if (state.count <= options.limit) emit(state.count);
    state.log.push(`end ${by}`);
  };
  return {
    name: "counter",
    init: () => ({ count: 0, log: [] }),
    start: (_state, ctx) => ctx.setTimer("tick", 10),
    receive: {
      add: (state, from, { by }, ctx) => {
        add(state, by, (count) => ctx.emit({ type: "counted", count }));
        ctx.send(from, { type: "add", by });
      },
    },
    timeout: { tick: (_state, ctx) => ctx.broadcast({ type: "add", by: 1 }) },
    command: {
      add(state, { by }, ctx) {
        add(state, by, (count) => ctx.emit({ type: "counted", count }));
        ctx.persist({ type: "count", count: state.count });
      },
    },
    replay: {
      count(state, { count }) {
        state.count = count;
      },
    },
    shapes: {
      message: { add: { by: natural } },
      command: { add: { by: natural } },
      record: { count: { count: natural } },
    },
    source: "none",
    assumes: [],
    properties: [
      {
        name: "small",
        claim: "counts stay small",
        when: "always",
        holds: (world) => world.alive.every((node) => world.state(node).count < 10),
      },
    ],
    costs: [],
    view: (state) => ({ role: `at ${state.count}` }),
  };
}

type Pair = { left: Counter; right: Counter };
const node = { self: 0, peers: [1] };

function pair(leftLimit: number, rightLimit: number) {
  return assemble<Pair>(
    "pair",
    { left: counter({ limit: leftLimit }), right: counter({ limit: rightLimit }) },
    {
      left: { counted: ({ count }, give) => give("right", { type: "add", by: count }) },
      right: { counted: (_event, give) => give("left", { type: "add", by: 1 }) },
    },
    { face: "right" },
  );
}

describe("assemble", () => {
  const protocol = pair(2, 3);
  const add = { kind: "command" as const, command: { type: "left" as const, body: { type: "add" as const, by: 1 } } };
  const first = step(protocol, node, protocol.init(0, [1]), add);

  it("carries events of one part to the other until neither emits any more", () => {
    // left 1 → right 1 → left 2 → right 3 → left 3, which is over its limit, so it emits nothing.
    expect(first.state.left.count).toBe(3);
    expect(first.state.right.count).toBe(3);
  });

  it("runs a handler to its end before any command that it caused", () => {
    expect(first.state.left.log).toEqual(["begin 1", "end 1", "begin 1", "end 1", "begin 1", "end 1"]);
  });

  it("wraps every effect of a part in the part's name", () => {
    const journalled = first.effects.filter(
      (effect): effect is Effect<never> & { kind: "persist" } => effect.kind === "persist",
    );
    expect(journalled[0]).toEqual({ kind: "persist", record: { type: "left", body: { type: "count", count: 1 } } });
    const { effects } = step(protocol, node, protocol.init(0, [1]), { kind: "start" });
    expect(effects).toEqual([
      { kind: "setTimer", timer: "left.tick", duration: 10 },
      { kind: "setTimer", timer: "right.tick", duration: 10 },
    ]);
    const received = step(protocol, node, protocol.init(0, [1]), {
      kind: "receive",
      from: 1,
      message: { type: "right", body: { type: "add", by: 5 } },
    });
    expect(received.effects).toEqual([
      { kind: "send", to: 1, message: { type: "right", body: { type: "add", by: 5 } } },
    ]);
    expect(received.state.left.count).toBe(0);
  });

  it("replays each part's records into that part", () => {
    const record = { type: "right" as const, body: { type: "count" as const, count: 7 } };
    const { state } = step(protocol, node, protocol.init(0, [1]), { kind: "replay", record });
    expect([state.left.count, state.right.count]).toEqual([0, 7]);
  });

  it("has a journal slot for each part that journals", () => {
    expect(protocol.slots).toEqual(["left", "right"]);
  });

  it("has the shapes and properties of its parts, and the view of its face", () => {
    const shape = variants(protocol.shapes.message);
    expect(problem(shape, { type: "left", body: { type: "add", by: 1 } }, "message")).toBeNull();
    expect(problem(shape, { type: "left", body: { type: "add", by: -1 } }, "message")).toContain("message.body.by");
    expect(protocol.properties.map(({ name }) => name)).toEqual(["left: small", "small"]);
    const world = {
      alive: [0],
      nodes: [0],
      history: () => null as never,
      state: () => ({ left: { count: 99, log: [] }, right: { count: 1, log: [] } }),
    };
    expect(protocol.properties[1]?.holds(world, 0)).toBe(true);
    expect(protocol.view(first.state, 0)).toEqual({ role: "at 3" });
  });

  it("throws when wires feed each other without end", () => {
    const endless = pair(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
    expect(() => step(endless, node, endless.init(0, [1]), add)).toThrow(
      "the wires of pair trigger each other forever",
    );
  });
});
