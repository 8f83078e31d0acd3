/** The transition systems of reference models written for SPIN. Tests use them to compare the numbers of states. */
import type { Protocol } from "../core/protocol.ts";
import { natural } from "../core/shape.ts";
import type { ModelOptions } from "./model.ts";

export type RingModel = {
  state: { participant: boolean; done: boolean };
  message: { type: "election"; id: number } | { type: "elected"; id: number };
  command: { type: "start" };
};

/** Returns a model of Chang–Roberts on a ring of `count` nodes. */
export function ringModel(count: number): ModelOptions<RingModel> {
  const id = (node: number): number => ((node * 5 + 3) % count) + 1;
  const next = (node: number): number => (node + 1) % count;
  const protocol: Protocol<RingModel> = {
    name: "chang-roberts model",
    init: () => ({ participant: false, done: false }),
    receive: {
      election(state, _from, message, ctx) {
        const own = id(ctx.self);
        if (message.id === own) return ctx.send(next(ctx.self), { type: "elected", id: own });
        if (message.id < own && state.participant) return;
        state.participant = true;
        ctx.send(next(ctx.self), { type: "election", id: Math.max(message.id, own) });
      },
      elected(state, _from, message, ctx) {
        state.done = true;
        if (message.id !== id(ctx.self)) ctx.send(next(ctx.self), message);
      },
    },
    command: {
      start(state, _command, ctx) {
        state.participant = true;
        ctx.send(next(ctx.self), { type: "election", id: id(ctx.self) });
      },
    },
    shapes: { message: { election: { id: natural }, elected: { id: natural } }, command: { start: {} } },
    source: "Chang & Roberts, CACM 1979",
    assumes: ["no crashes", "FIFO links"],
    properties: [],
    costs: [],
    view: ({ participant }) => ({ role: participant ? "participant" : "idle" }),
  };
  return {
    protocol,
    nodes: Array.from({ length: count }, (_, node) => node),
    network: "fifo",
    timers: "free",
    begin: "idle",
    commands: ({ participant }) => (participant ? [] : [{ type: "start" }]),
    accepts: ({ done }) => !done,
  };
}

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

/** Returns a model of Ricart–Agrawala with `count` nodes that enter `entries` times each. */
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
