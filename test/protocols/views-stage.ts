/** Views in the simulator, with a stub for the message layer and a failure detector. */
import { type Assembly, assemble } from "../../src/core/assemble.ts";
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";
import { list, natural } from "../../src/core/shape.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../../src/protocols/membership/heartbeat.ts";
import { type Views, type ViewsOptions, views } from "../../src/protocols/membership/views/agreement.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";

/** A stub for the message layer. It counts each member's messages, starting with the first, and delivers nothing. */
type Store = {
  state: {
    view: number;
    members: NodeId[];
    received: number[];
    wanted: { round: number; cut: number[] } | null;
    isBlocked: boolean;
    /** For each view that the node left for the next: the numbers of messages that it had from the members. */
    went: Record<number, number[]>;
  };
  message:
    | { type: "item"; view: number; number: number }
    | { type: "want"; view: number }
    | { type: "have"; view: number; received: number[] };
  command:
    | { type: "say" }
    | { type: "flush"; round: number }
    | { type: "fill"; round: number; cut: number[]; holders: NodeId[] }
    | { type: "change"; view: number; members: NodeId[]; cut: number[] }
    | { type: "eject" };
  event: { type: "flushed"; round: number; received: number[] } | { type: "filled"; round: number };
};

const outside = (): Store["state"] => ({
  view: 0,
  members: [],
  received: [],
  wanted: null,
  isBlocked: false,
  went: {},
});

function sayIfFilled(state: Store["state"], ctx: Context<Store>): void {
  const { wanted, received } = state;
  if (wanted === null || wanted.cut.some((count, k) => count > (received[k] ?? 0))) return;
  state.wanted = null;
  ctx.emit({ type: "filled", round: wanted.round });
}

const store: Protocol<Store> = {
  name: "store",
  init: outside,
  receive: {
    item(state, from, { view, number }) {
      const at = state.members.indexOf(from);
      // Other messages are lost.
      if (view === state.view && number === (state.received[at] ?? 0) + 1) state.received[at] = number;
    },
    want: (state, from, { view }, ctx) => {
      if (view === state.view) ctx.send(from, { type: "have", view, received: state.received });
    },
    have(state, _from, { view, received }, ctx) {
      if (view !== state.view) return;
      state.received = state.received.map((count, k) => Math.max(count, received[k] ?? 0));
      sayIfFilled(state, ctx);
    },
  },
  command: {
    say(state, _command, ctx) {
      const at = state.members.indexOf(ctx.self);
      if (at < 0 || state.isBlocked) return;
      state.received[at] = (state.received[at] ?? 0) + 1;
      ctx.broadcast({ type: "item", view: state.view, number: state.received[at] });
    },
    flush(state, { round }, ctx) {
      state.isBlocked = true;
      ctx.emit({ type: "flushed", round, received: [...state.received] });
    },
    fill(state, { round, cut, holders }, ctx) {
      state.wanted = { round, cut };
      const needed = holders.filter((_, k) => (cut[k] ?? 0) > (state.received[k] ?? 0));
      for (const holder of new Set(needed)) ctx.send(holder, { type: "want", view: state.view });
      sayIfFilled(state, ctx);
    },
    change(state, { view, members, cut }) {
      const { went } = state;
      if (cut.length > 0) went[view] = state.received.map((count, k) => Math.min(count, cut[k] ?? 0));
      Object.assign(state, { ...outside(), view, members, received: members.map(() => 0), went });
    },
    eject: (state) => void Object.assign(state, { ...outside(), went: state.went }),
  },
  shapes: {
    message: {
      item: { view: natural, number: natural },
      want: { view: natural },
      have: { view: natural, received: list(natural, 64) },
    },
    command: {
      say: {},
      flush: { round: natural },
      fill: { round: natural, cut: list(natural, 64), holders: list(natural, 64) },
      change: { view: natural, members: list(natural, 64), cut: list(natural, 64) },
      eject: {},
    },
  },
  source: "this test",
  assumes: [],
  properties: [
    {
      name: "the cut is held",
      claim: "a node that moves from one view to the next has received the view's whole cut",
      when: "always",
      holds: ({ alive, state }) => {
        const cuts = new Map<string, string>();
        return alive.every((node) =>
          Object.entries(state(node).went).every(([view, went]) => {
            if (!cuts.has(view)) cuts.set(view, went.join());
            return cuts.get(view) === went.join();
          }),
        );
      },
    },
  ],
  costs: [],
  view: ({ view }) => ({ role: "store", term: view }),
};

export type Group = Assembly<{ store: Store; views: Views; detector: Heartbeat }>;

const group = (options?: Partial<ViewsOptions>, detector?: Partial<HeartbeatOptions>): Protocol<Group> =>
  assemble<{ store: Store; views: Views; detector: Heartbeat }>(
    "group",
    { store, views: views(options), detector: heartbeat(detector) },
    {
      views: {
        flush: ({ round }, give) => give("store", { type: "flush", round }),
        fill: ({ round, cut, holders }, give) => give("store", { type: "fill", round, cut, holders }),
        installed: ({ view, members, cut }, give) => give("store", { type: "change", view, members, cut }),
        ejected: (_event, give) => give("store", { type: "eject" }),
      },
      store: {
        flushed: ({ round, received }, give) => give("views", { type: "flushed", round, received }),
        filled: ({ round }, give) => give("views", { type: "filled", round }),
      },
      detector: {
        suspected: ({ node }, give) => give("views", { type: "suspect", node }),
        restored: ({ node }, give) => give("views", { type: "restore", node }),
      },
    },
    { face: "views" },
  );

export const range = (nodes: number): NodeId[] => Array.from({ length: nodes }, (_, i) => i);

/** The messages and events of the views in the last stage. */
export const story: string[] = [];

export function stage(
  nodes: number,
  options?: Partial<ViewsOptions>,
  seed = 1,
  started = range(nodes),
): Simulation<Group> {
  story.length = 0;
  const sim = simulation<Group>({
    protocol: group(options),
    nodes: range(nodes),
    seed,
    delayMs: [1, 10],
    trace(entry) {
      const line = logLine(entry);
      if (!/alive|beat|suspected|restored/.test(line)) story.push(line);
    },
  });
  for (const node of started) sim.start(node);
  return sim;
}

/**
 * Returns a simulation with a failure detector that never reports anything. Liveness properties are checked at the end.
 */
export function undetected(nodes: number): Simulation<Group> {
  const protocol = group({ remindMs: 0 }, { intervalMs: 1_000_000 });
  const sim = simulation<Group>({ protocol, nodes: range(nodes), seed: 1, delayMs: 5, properties: "at the end" });
  for (const node of range(nodes)) sim.start(node);
  sim.run(1_000);
  return sim;
}

export const viewOf = (sim: Simulation<Group>, node: NodeId): string => {
  const { view } = sim.world.state(node).views;
  return `${view.number}: ${view.members.map((member) => `${member.node}.${member.incarnation}`).join(" ")}`;
};
/** Returns the current views of live nodes, without duplicates. */
export const viewsOf = (sim: Simulation<Group>): string[] => [
  ...new Set(sim.world.alive.map((node) => viewOf(sim, node))),
];
export const say = { type: "store", body: { type: "say" } } as const;
export const join = { type: "views", body: { type: "join" } } as const;
export const leave = { type: "views", body: { type: "leave" } } as const;
export const suspect = (node: NodeId) => ({ type: "views", body: { type: "suspect", node } }) as const;
export const restore = (node: NodeId) => ({ type: "views", body: { type: "restore", node } }) as const;
/** Returns the views' messages to parts other than the store. */
export const said = (sim: Simulation<Group>, node: NodeId): string[] =>
  sim
    .events(node)
    .map(({ type, body }) => (type === "views" ? body.type : ""))
    .filter((type) => ["ejected", "left", "stalled", "resumed"].includes(type));
