/**
 * Back-pressure: members whose readers cannot keep up say so to all, and senders wait for them. Coterie's own; after the soft state of
 * Clark, "The Design Philosophy of the DARPA Internet Protocols", SIGCOMM 1988, §10: what is said is good for a short time only and is
 * said again and again, so nobody waits for ever for a member that has crashed or cannot be heard of.
 *
 * Assumes   reliable FIFO links; what a node that crashes had unread is lost; `goodSweeps` of a sender take longer than `sayMs` of a slow
 *           node and a delay, for a slow node to be waited for as long as it is slow.
 * Safety    with senders that have at most a window each on its way, a reader has never more unread than its limit and the windows of all;
 *           nothing that is sent is lost for it, or comes twice.
 * Liveness  nobody is waited for for ever: a node says that it keeps up, or it is not heard of for `goodSweeps` + 1 sweeps.
 * Cost      N − 1 messages when readers fall behind, when they have caught up, and for each `sayMs` in between.
 */
import { nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { boolean } from "../../../core/shape.ts";
import { count, type OptionsOf, optionTable } from "../../options.ts";

export type BackPressure = {
  state: {
    /** Whether readers of this node cannot keep up: its own sends wait for them, too. */
    isFull: boolean;
    /** Those that are waited for: for how many sweeps they have not said so again. */
    slow: PerNode<number>;
    isSweeping: boolean;
  };
  message: { type: "pressure"; isFull: boolean };
  timer: "say" | "sweep";
  command: /** Readers here cannot keep up from now on; can again. */
    | { type: "fallBehind" }
    | { type: "catchUp" }
    /** Somebody here would send: `clear` says that nobody is waited for. */
    | { type: "wish" }
    /** Nobody sends or reads here any more. */
    | { type: "close" };
  event:
    | { type: "clear" }
    /** Somebody was waited for that is not any more. */
    | { type: "relieved" }
    /** It has not been heard of for too long: senders here go on without it. */
    | { type: "expired"; node: NodeId };
};

const backPressureOptions = optionTable("back-pressure", {
  sayMs: count(250, "the time after which a node whose readers cannot keep up reports it again"),
  sweepMs: count(250, "the time between two checks of which nodes have not reported again"),
  goodSweeps: count(4, "for how many checks a report counts"),
});

export type BackPressureOptions = OptionsOf<typeof backPressureOptions>;

type State = BackPressure["state"];
type Ctx = Context<BackPressure>;

export function backPressure(given?: Partial<BackPressureOptions>): Protocol<BackPressure> {
  const options = backPressureOptions.settle(given);
  const { sayMs, sweepMs, goodSweeps } = options;

  function say(ctx: Ctx): void {
    ctx.broadcast({ type: "pressure", isFull: true });
    ctx.setTimer("say", sayMs);
  }

  function watch(state: State, ctx: Ctx): void {
    state.isSweeping = nodesIn(state.slow).length > 0;
    if (state.isSweeping) ctx.setTimer("sweep", sweepMs);
  }

  return {
    name: "back-pressure",
    init: () => ({ isFull: false, slow: {}, isSweeping: false }),
    receive: {
      pressure(state, from, { isFull }, ctx) {
        if (isFull) {
          state.slow[from] = 0;
          if (!state.isSweeping) watch(state, ctx);
        } else if (Object.hasOwn(state.slow, from)) {
          delete state.slow[from];
          ctx.emit({ type: "relieved" });
        }
      },
    },
    timeout: {
      say: (_state, ctx) => say(ctx),
      sweep(state, ctx) {
        for (const node of nodesIn(state.slow)) {
          const sweeps = (state.slow[node] as number) + 1;
          state.slow[node] = sweeps;
          if (sweeps <= goodSweeps) continue;
          delete state.slow[node];
          ctx.emit({ type: "expired", node });
        }
        watch(state, ctx);
      },
    },
    command: {
      fallBehind(state, _command, ctx) {
        if (state.isFull) return;
        state.isFull = true;
        say(ctx);
      },
      catchUp(state, _command, ctx) {
        if (!state.isFull) return;
        state.isFull = false;
        ctx.cancelTimer("say");
        ctx.broadcast({ type: "pressure", isFull: false });
        ctx.emit({ type: "relieved" });
      },
      wish(state, _command, ctx) {
        if (!state.isFull && nodesIn(state.slow).length === 0) ctx.emit({ type: "clear" });
      },
      close(state, _command, ctx) {
        Object.assign(state, { isFull: false, slow: {}, isSweeping: false });
        ctx.cancelTimer("say");
        ctx.cancelTimer("sweep");
      },
    },
    shapes: {
      message: { pressure: { isFull: boolean } },
      command: { fallBehind: {}, catchUp: {}, wish: {}, close: {} },
    },
    source: "Clark, SIGCOMM 1988, §10; Coterie's own",
    assumes: [
      "reliable FIFO links between nodes that are up",
      "what a node that crashes had unread is lost",
      "a slow node is heard of again before what it has said expires",
    ],
    properties: [],
    costs: [{ when: "readers fall behind, or have caught up", messages: (nodes) => nodes - 1 }],
    view: ({ isFull, slow }) => {
      if (isFull) return { role: "full" };
      return { role: nodesIn(slow).length > 0 ? "waiting" : "free" };
    },
  };
}

/** Those of these nodes that are waited for. */
export const slowAmong = ({ slow }: Readonly<State>, nodes: readonly NodeId[]): readonly NodeId[] =>
  nodes.filter((node) => Object.hasOwn(slow, node));
