/**
 * The transition system of `ricart-agrawala.pml`: one FIFO inbox per node, entering and leaving are steps of their own,
 * each node enters K times, the clock is max + 1 on every receipt and replies carry it. Kept for counting states beside
 * SPIN.
 */
import type { Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import type { ModelOptions } from "../model.ts";

export type MutexModel = {
  state: {
    clock: number;
    stamp: number;
    replies: number;
    entries: number;
    wants: boolean;
    inside: boolean;
    deferred: number[];
  };
  message: { type: "request"; stamp: number } | { type: "reply"; clock: number };
  command: { type: "request" } | { type: "enter" } | { type: "exit" };
};

export function mutexModel(count: number, entries: number): ModelOptions<MutexModel> {
  const protocol: Protocol<MutexModel> = {
    name: "ricart-agrawala model",
    init: () => ({ clock: 0, stamp: 0, replies: 0, entries: 0, wants: false, inside: false, deferred: [] }),
    receive: {
      request(state, from, { stamp }, ctx) {
        state.clock = Math.max(state.clock, stamp) + 1;
        const isFirst = state.stamp < stamp || (state.stamp === stamp && ctx.self < from);
        if (state.wants && isFirst) state.deferred = [...state.deferred, from].sort((a, b) => a - b);
        else ctx.send(from, { type: "reply", clock: state.clock });
      },
      reply(state, _from, { clock }) {
        state.clock = Math.max(state.clock, clock) + 1;
        state.replies += 1;
      },
    },
    command: {
      request(state, _command, ctx) {
        state.wants = true;
        state.clock += 1;
        state.stamp = state.clock;
        state.replies = 0;
        ctx.broadcast({ type: "request", stamp: state.stamp });
      },
      enter(state) {
        state.inside = true;
      },
      exit(state, _command, ctx) {
        state.inside = false;
        state.wants = false;
        state.entries += 1;
        for (const waiting of state.deferred) ctx.send(waiting, { type: "reply", clock: state.clock });
        state.deferred = [];
      },
    },
    shapes: {
      message: { request: { stamp: natural }, reply: { clock: natural } },
      command: { request: {}, enter: {}, exit: {} },
    },
    source: "Ricart & Agrawala, CACM 1981",
    assumes: ["no crashes", "reliable links"],
    properties: [
      {
        name: "ME1 safety",
        claim: "at most one node is inside",
        when: "always",
        holds: ({ alive, state }) => alive.filter((node) => state(node).inside).length <= 1,
      },
    ],
    costs: [],
    view: ({ inside }) => ({ role: inside ? "inside" : "outside" }),
  };
  return {
    protocol,
    nodes: Array.from({ length: count }, (_, node) => node),
    network: "inbox",
    timers: "free",
    begin: "idle",
    commands: (state) => {
      if (state.inside) return [{ type: "exit" }];
      if (state.wants) return state.replies === count - 1 ? [{ type: "enter" }] : [];
      return state.entries < entries ? [{ type: "request" }] : [];
    },
  };
}
