/**
 * A protocol with a counter at node 0. Any node that receives an `add` forwards it to node 0 and replies with the sum.
 */
import { natural, type Protocol, type RequestId } from "../../src/core/index.ts";

export type Counter = {
  state: { sum: number; waiting: RequestId[] };
  message: { type: "add"; request: RequestId; by: number } | { type: "added"; request: RequestId; sum: number };
  command: { type: "add"; request: RequestId; by: number };
  reply: { type: "sum"; sum: number };
};

export const forwardedCounter: Protocol<Counter> = {
  name: "forwarded-counter",
  init: () => ({ sum: 0, waiting: [] }),
  command: {
    add(state, { request, by }, ctx) {
      state.waiting.push(request);
      ctx.send(0, { type: "add", request, by });
    },
  },
  receive: {
    add(state, from, { request, by }, ctx) {
      state.sum += by;
      ctx.send(from, { type: "added", request, sum: state.sum });
    },
    added(state, _from, { request, sum }, ctx) {
      if (!state.waiting.includes(request)) return; // Already answered, or sent before a crash.
      state.waiting = state.waiting.filter((other) => other !== request);
      ctx.reply(request, { type: "sum", sum });
    },
  },
  shapes: {
    message: { add: { request: natural, by: natural }, added: { request: natural, sum: natural } },
    command: { add: { request: natural, by: natural } },
    reply: { sum: { sum: natural } },
  },
  source: "none",
  assumes: ["node 0 does not crash"],
  properties: [
    {
      name: "sums grow",
      claim: "the sums that a node receives grow if it makes one request at a time",
      when: "always",
      history: {
        empty: { requests: 0, last: 0, isRight: true },
        after: (before) => before,
        afterRequest: (before: Heard) => ({ ...before, requests: before.requests + 1 }),
        afterReply: ({ requests, last, isRight }: Heard, _request, { sum }) => ({
          requests,
          last: sum,
          isRight: isRight && requests > 0 && sum > last,
        }),
      },
      holds: ({ nodes, history }) => nodes.every((node) => history<Heard>(node).isRight),
    },
    {
      name: "answered",
      claim: "every request is answered",
      when: "leadsTo",
      given: ({ state }, node) => state(node).waiting.length > 0,
      holds: ({ state }, node) => state(node).waiting.length === 0,
    },
  ],
  costs: [{ when: "one addition", messages: () => 2 }],
  view: ({ waiting }) => ({ role: waiting.length === 0 ? "idle" : "waiting" }),
};
type Heard = { requests: number; last: number; isRight: boolean };
