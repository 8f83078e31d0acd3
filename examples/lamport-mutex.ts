/**
 * Lamport's mutual exclusion, as a protocol in a file of its own:
 *
 *     coterie sim ./examples/lamport-mutex.ts --nodes 4
 *     coterie check ./examples/lamport-mutex.ts --nodes 2
 *     coterie up --protocol ./examples/lamport-mutex.ts
 *
 * L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System. CACM 21 (1978), pages 558–565.
 */
import { type Context, type NodeId, natural, type Protocol } from "coterie/core";
import { defineProtocol, mutexProperties, type Section } from "coterie/protocols";

/** A request for the critical section. Requests are ordered by time, then by node. */
type Request = { at: number; node: NodeId };

type LamportMutex = {
  state: {
    section: Section;
    clock: number;
    /** The pending requests of all nodes, in order. */
    queue: Request[];
    /** The time of the last message from each peer. */
    heard: Record<NodeId, number>;
  };
  message: { type: "request"; at: number } | { type: "acknowledge"; at: number } | { type: "release"; at: number };
  command: { type: "enter" } | { type: "exit" };
  /** The token increases from one entry to the next, because it follows the order of the requests. */
  event: { type: "entered"; token: number } | { type: "exited" };
};
type State = LamportMutex["state"];
type Ctx = Context<LamportMutex>;

const isBefore = (one: Request, other: Request): boolean =>
  one.at < other.at || (one.at === other.at && one.node < other.node);

/** Advances the clock past the time of a message. */
function hear(state: State, from: NodeId, at: number): void {
  state.clock = Math.max(state.clock, at) + 1;
  state.heard[from] = at;
}

/** Rule 5: a node enters when its request is first, and it has received something later from every other node. */
function enterIfFirst(state: State, ctx: Ctx): void {
  const [first] = state.queue;
  if (state.section !== "wanted" || first?.node !== ctx.self) return;
  if (!ctx.peers.every((peer) => isBefore(first, { at: state.heard[peer] ?? 0, node: peer }))) return;
  state.section = "held";
  ctx.emit({ type: "entered", token: first.at * (Math.max(ctx.self, ...ctx.peers) + 1) + ctx.self });
}

const lamportMutex: Protocol<LamportMutex> = {
  name: "lamport-mutex",
  init: () => ({ section: "released", clock: 0, queue: [], heard: {} }),
  receive: {
    request(state, from, { at }, ctx) {
      hear(state, from, at);
      state.queue = [...state.queue, { at, node: from }].sort((a, b) => (isBefore(a, b) ? -1 : 1));
      ctx.send(from, { type: "acknowledge", at: ++state.clock });
    },
    acknowledge(state, from, { at }, ctx) {
      hear(state, from, at);
      enterIfFirst(state, ctx);
    },
    release(state, from, { at }, ctx) {
      hear(state, from, at);
      state.queue = state.queue.filter(({ node }) => node !== from);
      enterIfFirst(state, ctx);
    },
  },
  command: {
    enter(state, _command, ctx) {
      if (state.section !== "released") return;
      state.section = "wanted";
      state.clock += 1;
      const own = { at: state.clock, node: ctx.self };
      state.queue = [...state.queue, own].sort((a, b) => (isBefore(a, b) ? -1 : 1));
      ctx.broadcast({ type: "request", at: own.at });
      enterIfFirst(state, ctx); // A node without peers enters at once.
    },
    exit(state, _command, ctx) {
      if (state.section !== "held") return;
      state.section = "released";
      state.queue = state.queue.filter(({ node }) => node !== ctx.self);
      ctx.emit({ type: "exited" });
      ctx.broadcast({ type: "release", at: ++state.clock });
    },
  },
  shapes: {
    message: { request: { at: natural }, acknowledge: { at: natural }, release: { at: natural } },
    command: { enter: {}, exit: {} },
  },
  source: "L. Lamport, Time, Clocks, and the Ordering of Events in a Distributed System (1978)",
  assumes: ["no crashes", "reliable links that keep their order"],
  properties: mutexProperties(({ section }) => section),
  costs: [{ when: "one entry and exit", messages: (nodes) => 3 * (nodes - 1) }],
  view: ({ section, clock }) => ({ role: section, term: clock }),
};

export default defineProtocol({
  protocol: lamportMutex,
  family: "mutual exclusion",
  summary: "requests wait in a queue that every node keeps, in the order of logical clocks",
});
