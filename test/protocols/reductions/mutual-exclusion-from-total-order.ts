/**
 * Mutual exclusion from total order. All nodes deliver the same requests and releases in the same order, so all have
 * the same queue. The node at its head holds the lock. Lamport's algorithm of 1978 uses its own order instead.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { NodeId, Protocol } from "../../../src/core/protocol.ts";
import { natural } from "../../../src/core/shape.ts";
import { type Isis, isis } from "../../../src/protocols/multicast/isis.ts";
import {
  type MutexWorkload,
  mutexProperties,
  mutexWorkload,
  type Section,
} from "../../../src/protocols/mutex/family/workload.ts";
import { atWorkWhile, ofAReduction, value } from "./deciding.ts";

type Queue = {
  state: { section: Section; queue: NodeId[]; entries: number };
  command: { type: "enter" } | { type: "exit" } | { type: "deliver"; from: NodeId; value: string };
  event: { type: "said"; value: string } | { type: "entered"; token: number };
};

export const queue: Protocol<Queue> = {
  ...ofAReduction,
  name: "queue",
  init: () => ({ section: "released", queue: [], entries: 0 }),
  command: {
    enter(state, _command, ctx) {
      state.section = "wanted";
      ctx.emit({ type: "said", value: "enter" });
    },
    exit(state, _command, ctx) {
      state.section = "released";
      ctx.emit({ type: "said", value: "exit" });
    },
    deliver(state, { from, value: said }, ctx) {
      if (said === "enter") {
        state.queue.push(from);
        if (state.queue.length > 1) return; // A different node holds the lock.
        // The head exits. Its next request may already be queued, because ISIS has no FIFO order.
      } else state.queue.shift();
      const head = state.queue[0];
      if (head === undefined) return;
      state.entries += 1; // All nodes count all entries, so the number is the same everywhere.
      if (head !== ctx.self) return;
      state.section = "held";
      ctx.emit({ type: "entered", token: state.entries });
    },
  },
  shapes: { command: { enter: {}, exit: {}, deliver: { from: natural, value } } },
  properties: mutexProperties<Queue>(({ section }) => section),
};

export const mutualExclusionFromTotalOrder = () =>
  atWorkWhile(
    ["workload.stay", "workload.rest"],
    assemble<{ mutex: Queue; order: Isis; workload: MutexWorkload }>(
      "mutual-exclusion-from-total-order",
      { mutex: queue, order: isis(), workload: mutexWorkload() },
      {
        mutex: {
          said: (event, give) => give("order", { type: "send", payload: event.value }),
          entered: ({ token }, give) => give("workload", { type: "entered", token }),
        },
        order: { delivered: ({ from, payload }, give) => give("mutex", { type: "deliver", from, value: payload }) },
        workload: {
          needed: (_event, give) => give("mutex", { type: "enter" }),
          finished: (_event, give) => give("mutex", { type: "exit" }),
        },
      },
      { face: "mutex" },
    ),
  );
