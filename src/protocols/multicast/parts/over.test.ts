import { describe, expect, it } from "vitest";
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, type Shape, text } from "../../../core/shape.ts";
import { simulation } from "../../../sim/simulation.ts";
import type { TraceEntry } from "../../../trace/entry.ts";
import { type GroupCommand, type GroupEvent, groupCommandShapes, type Multicast, over } from "./layers.ts";

const nothing = { source: "test", assumes: [], properties: [], costs: [] };

/** Carries messages like plain links, and emits the events of a carrier with views. */
type Plain<P> = {
  state: { sent: number };
  message: { type: "data"; n: number; payload: P };
  timer: "idle";
  command: { type: "send"; payload: P } | { type: "leave" };
  event: Multicast<P>["event"] | GroupEvent | { type: "stable"; count: number };
};

function plain<P>(payload: Shape<P>): Protocol<Plain<P>> {
  return {
    name: "plain",
    ...nothing,
    init: () => ({ sent: 0 }),
    start: (_state, ctx) => ctx.setTimer("idle", 5),
    receive: {
      data: (_state, from, { n, payload: body }, ctx) =>
        ctx.emit({ type: "delivered", from, payload: body, id: `${from}.${n}` }),
    },
    timeout: { idle: (state, ctx) => ctx.emit({ type: "stable", count: state.sent }) },
    command: {
      send(state, { payload: body }, ctx) {
        state.sent += 1;
        ctx.broadcast({ type: "data", n: state.sent, payload: body });
        ctx.emit({ type: "delivered", from: ctx.self, payload: body, id: `${ctx.self}.${state.sent}` });
      },
      leave(_state, _command, ctx) {
        ctx.emit({ type: "blocked" });
        ctx.emit({ type: "installed", view: 2, members: [ctx.self] });
      },
    },
    shapes: { message: { data: { n: natural, payload } }, command: { send: { payload }, leave: {} } },
    view: ({ sent }) => ({ role: `sent ${sent}` }),
  };
}

/** Answers each message only to its sender, and emits all received messages. */
type Polite = {
  state: { heard: string[] };
  message: { type: "word"; payload: string } | { type: "thanks"; payload: string };
  timer: "forget";
  command: { type: "send"; payload: string } | GroupCommand;
  event: Multicast["event"] | GroupEvent | { type: "thanked"; by: NodeId };
};

const polite: Protocol<Polite> = {
  name: "polite",
  ...nothing,
  init: () => ({ heard: [] }),
  receive: {
    word(state, from, { payload }, ctx) {
      state.heard.push(payload);
      ctx.emit({ type: "delivered", from, payload, id: `${from}.${payload}` });
      ctx.send(from, { type: "thanks", payload });
    },
    thanks(_state, from, _message, ctx) {
      ctx.setTimer("forget", 50);
      ctx.emit({ type: "thanked", by: from }, "forget");
    },
  },
  timeout: { forget() {} },
  command: {
    send: (_state, { payload }, ctx) => ctx.broadcast({ type: "word", payload }),
    block: (state) => void state.heard.push("(blocked)"),
    install(state, { members, view }, ctx) {
      state.heard.push("(installed)");
      ctx.emit({ type: "installed", view, members });
    },
    eject() {},
    stable() {},
  },
  shapes: {
    message: { word: { payload: text(9) }, thanks: { payload: text(9) } },
    command: { send: { payload: text(9) }, ...groupCommandShapes },
  },
  view: ({ heard }) => ({ role: `heard ${heard.length}` }),
};

const stacked = over(polite, plain);

function group(protocol = stacked, trace: (entry: TraceEntry) => void = () => {}) {
  const sim = simulation({ protocol, nodes: [0, 1, 2], seed: 1, delayMs: 10, trace });
  for (const node of [0, 1, 2]) sim.start(node);
  return sim;
}

describe("one multicast over another", () => {
  it("the lower layer carries the upper layer's broadcasts, and messages to one node go there directly", () => {
    const sim = group();
    sim.command(0, { type: "send", payload: "hi" });
    sim.run();
    expect(sim.messages.byType).toEqual({ data: 2, thanks: 2 });
    expect(sim.events(1)).toEqual([
      { type: "stable", count: 0 },
      { type: "delivered", from: 0, payload: "hi", id: "0.hi" },
    ]);
    expect(sim.events(0)).toEqual([
      { type: "stable", count: 1 },
      { type: "thanked", by: 1 },
      { type: "thanked", by: 2 },
    ]);
    expect(sim.world.state(0)).toEqual({ upper: { heard: [] }, lower: { sent: 1 } });
  });

  it("an event of the upper layer is valid until the upper layer's own timer expires", () => {
    const deadlines: unknown[] = [];
    const sim = group(stacked, (entry) => {
      if (entry.kind === "event" && entry.event.type === "thanked") deadlines.push(entry.until);
    });
    sim.command(0, { type: "send", payload: "x" });
    sim.run();
    expect(deadlines).toEqual(["upper.forget", "upper.forget"]);
  });

  it("the upper layer receives group events of the lower one, and emits its own", () => {
    const sim = group();
    sim.command(1, { type: "leave" });
    expect(sim.world.state(1).upper.heard).toEqual(["(blocked)", "(installed)"]);
    expect(sim.events(1)).toEqual([{ type: "installed", view: 2, members: [1] }]);
  });

  it("is a multicast again, which can carry another", () => {
    const three = over(polite, (payload) => over(carrierOf(payload), plain));
    const sim = simulation({ protocol: three, nodes: [0, 1], seed: 1, delayMs: 10 });
    for (const node of [0, 1]) sim.start(node);
    sim.command(0, { type: "send", payload: "deep" });
    sim.run();
    expect(sim.world.state(1).upper.heard).toEqual(["deep"]);
    expect(sim.messages.byType).toEqual({ data: 1, thanks: 1 });
    expect(stacked.shapes.command).toEqual({ leave: {}, ...polite.shapes.command });
  });

  it("shows messages held back by either layer, the lower layer's with its name", () => {
    const holding = <P>(held: string[], protocol: Protocol<Plain<P>>): Protocol<Plain<P>> => ({
      ...protocol,
      view: () => ({ role: "waiting", held }),
    });
    const viewOf = (lower: string[], upper?: string[]) => {
      const above = upper === undefined ? polite : { ...polite, view: () => ({ role: "first", held: upper }) };
      const both = over(above, (payload) => holding(lower, plain(payload)));
      return both.view(both.init(0, [1]), 0);
    };
    expect(viewOf(["1.2"], ["1.1"])).toEqual({ role: "first", held: ["1.1", "plain 1.2"] });
    expect(viewOf([], ["1.1"])).toEqual({ role: "first", held: ["1.1"] });
    expect(viewOf([])).toEqual(polite.view({ heard: [] }, 0));
    expect(viewOf(["1.2"]).held).toEqual(["plain 1.2"]);
  });
});

/** Carries payloads unchanged. */
function carrierOf<P>(payload: Shape<P>): Protocol<Plain<P>> {
  const { timeout: _none, start: _never, ...carrier } = plain(payload) as never as Record<string, object>;
  return { ...carrier, timeout: {}, name: "carrier" } as never;
}
