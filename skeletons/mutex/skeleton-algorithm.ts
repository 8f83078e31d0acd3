/**
 * Skeleton algorithm: in one sentence, which node may enter and why.
 * The paper, with year and section, or Coulouris et al. §15.2.
 *
 * Assumes   no crashes; reliable links, in any order; no node stays inside forever.
 * Safety    ME1: at most one node is inside.
 * Liveness  ME2: every request is granted.
 * Cost      3 messages per entry: request, grant, release; none for the coordinator itself.
 *
 * Placeholder until you write the algorithm: the lowest node coordinates and keeps a queue.
 */
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";
import { natural } from "../../src/core/shape.ts";
import { mutexProperties, type Section } from "../../src/protocols/mutex/family/workload.ts";
import { requireNoOptions } from "../../src/protocols/options.ts";

/** The types of the skeleton algorithm: its state, messages, commands and events. */
export type SkeletonAlgorithm = {
  state: {
    section: Section;
    /** On the coordinator: the node inside, followed by the waiting nodes. */
    queue: NodeId[];
    /** On the coordinator: the number of grants so far, which is the last token. */
    grants: number;
  };
  message: { type: "request" } | { type: "grant"; token: number } | { type: "release" };
  /** `enter` is ignored unless released, `exit` unless held. */
  command: { type: "enter" } | { type: "exit" };
  /** The token increases with every entry. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

type State = SkeletonAlgorithm["state"];
type Ctx = Context<SkeletonAlgorithm>;

/**
 * Lets one node at a time enter the critical section.
 *
 * @throws UsageError if an option is given, because there are none
 */
export function skeletonAlgorithm(given?: Record<never, never>): Protocol<SkeletonAlgorithm> {
  requireNoOptions("skeleton-algorithm", given);
  const coordinator = (ctx: Ctx): NodeId => Math.min(ctx.self, ...ctx.peers);

  function request(state: State, from: NodeId, ctx: Ctx): void {
    if (state.queue.includes(from)) return; // A duplicate.
    state.queue.push(from);
    if (state.queue.length === 1) grant(state, from, ctx);
  }

  function release(state: State, from: NodeId, ctx: Ctx): void {
    if (state.queue[0] !== from) return; // A duplicate.
    state.queue.shift();
    const [next] = state.queue;
    if (next !== undefined) grant(state, next, ctx);
  }

  function grant(state: State, to: NodeId, ctx: Ctx): void {
    state.grants += 1;
    if (to === ctx.self) enter(state, state.grants, ctx);
    else ctx.send(to, { type: "grant", token: state.grants });
  }

  function enter(state: State, token: number, ctx: Ctx): void {
    if (state.section !== "wanted") return; // A duplicate.
    state.section = "held";
    ctx.emit({ type: "entered", token });
  }

  return {
    name: "skeleton-algorithm",
    init: () => ({ section: "released", queue: [], grants: 0 }),
    receive: {
      request: (state, from, _message, ctx) => request(state, from, ctx),
      grant: (state, _from, { token }, ctx) => enter(state, token, ctx),
      release: (state, from, _message, ctx) => release(state, from, ctx),
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // Already waiting or inside.
        state.section = "wanted";
        if (coordinator(ctx) === ctx.self) request(state, ctx.self, ctx);
        else ctx.send(coordinator(ctx), { type: "request" });
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // Not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        if (coordinator(ctx) === ctx.self) release(state, ctx.self, ctx);
        else ctx.send(coordinator(ctx), { type: "release" });
      },
    },
    shapes: {
      message: { request: {}, grant: { token: natural }, release: {} },
      command: { enter: {}, exit: {} },
    },
    source: "the paper, with year and section",
    assumes: ["no crashes", "reliable links", "no node stays inside forever"],
    properties: mutexProperties(({ section }) => section),
    costs: [{ when: "one entry and exit, by a node other than the coordinator", messages: () => 3 }],
    view: ({ section }) => ({ role: section }),
  };
}
