/**
 * The transition system of `chang-roberts.pml`: Chang–Roberts with one atomic step per receipt, a FIFO channel per link,
 * each node free to start once while it is not a participant, and deaf after `elected`. Kept for counting states beside SPIN.
 */
import type { Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import type { ModelOptions } from "../model.ts";

export type RingModel = {
  state: { participant: boolean; done: boolean };
  message: { type: "election"; id: number } | { type: "elected"; id: number };
  command: { type: "start" };
};

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
