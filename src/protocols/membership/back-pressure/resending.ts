/**
 * Sending again: a link takes a message, or refuses it because it is full or cut. What is refused waits, and is offered again until the
 * link takes it; what comes later waits behind it. From there on links see to it that it arrives. Coterie's own; stop-and-wait towards
 * the link, as in Bartlett, Scantlebury & Wilkinson, CACM 1969.
 *
 * Assumes   a link says at once whether it has taken a message, and keeps the order of those that it has taken.
 * Safety    what reaches a node comes in order and once; what is missing was dropped here, the oldest first, and that is said; no more
 *           waits for a node than the bounds allow.
 * Liveness  once a link takes messages, all that waits for it is on its way.
 * Cost      none: what is refused has not been sent.
 *
 * Messages stay with the driver, which knows them by number: only the order and how much they take stand here.
 */
import { nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { count, type OptionsOf, optionTable } from "../../options.ts";

export type Resending = {
  state: {
    /** What waits for each node, the oldest first. */
    waiting: PerNode<Waiting>;
    isRunning: boolean;
  };
  timer: "again";
  command: /** It is to reach that node. */
    | { type: "insist"; to: NodeId; id: number; bytes: number }
    /** Of what was offered the link has taken so many, and refused the rest. */
    | { type: "taken"; to: NodeId; count: number }
    | { type: "close" };
  event: /** To be given to the link, in this order, up to the first that it refuses. */
    | { type: "offer"; to: NodeId; ids: number[] }
    /** There was no room for it any more. */
    | { type: "dropped"; to: NodeId; id: number };
};

export interface Waiting {
  messages: { id: number; bytes: number }[];
  bytes: number;
}

type State = Resending["state"];
type Ctx = Context<Resending>;

const resendingOptions = optionTable("resending", {
  againMs: count(20, "the time after which waiting items are offered again"),
  maxWaiting: count(10_000, "how many items wait for each node"),
  maxBytes: count(16 * 1024 * 1024, "how many bytes of items wait for each node"),
  batch: count(256, "how many items are offered at a time"),
});

export type ResendingOptions = OptionsOf<typeof resendingOptions>;

export const settledResending = (given: Partial<ResendingOptions> | undefined): ResendingOptions =>
  resendingOptions.settle(given);

export function resending(given?: Partial<ResendingOptions>): Protocol<Resending> {
  const { againMs, maxWaiting, maxBytes, batch } = settledResending(given);

  function offer(to: NodeId, { messages }: Waiting, ctx: Ctx): void {
    ctx.emit({ type: "offer", to, ids: messages.slice(0, batch).map(({ id }) => id) });
  }

  function drop(waiting: Waiting, count: number): void {
    for (const { bytes } of waiting.messages.splice(0, count)) waiting.bytes -= bytes;
  }

  function run(state: State, ctx: Ctx): void {
    state.isRunning = nodesIn(state.waiting).length > 0;
    if (state.isRunning) ctx.setTimer("again", againMs);
    else ctx.cancelTimer("again");
  }

  return {
    name: "resending",
    init: () => ({ waiting: {}, isRunning: false }),
    timeout: {
      again(state, ctx) {
        for (const node of nodesIn(state.waiting)) offer(node, state.waiting[node] as Waiting, ctx);
        run(state, ctx);
      },
    },
    command: {
      insist(state, { to, id, bytes }, ctx) {
        const before = state.waiting[to];
        const waiting = before ?? { messages: [], bytes: 0 };
        waiting.messages.push({ id, bytes });
        waiting.bytes += bytes;
        if (before === undefined) {
          state.waiting[to] = waiting;
          return offer(to, waiting, ctx);
        }
        while (waiting.messages.length > maxWaiting || waiting.bytes > maxBytes) {
          const [oldest] = waiting.messages;
          if (oldest === undefined) return;
          drop(waiting, 1);
          ctx.emit({ type: "dropped", to, id: oldest.id });
        }
      },
      taken(state, { to, count }, ctx) {
        const waiting = state.waiting[to];
        if (waiting === undefined) return; // It was closed meanwhile.
        const isAll = count >= Math.min(batch, waiting.messages.length);
        drop(waiting, count);
        if (waiting.messages.length === 0) delete state.waiting[to];
        else if (isAll) offer(to, waiting, ctx);
        if (state.isRunning !== nodesIn(state.waiting).length > 0) run(state, ctx);
      },
      close(state, _command, ctx) {
        state.waiting = {};
        run(state, ctx);
      },
    },
    shapes: {
      command: {
        insist: { to: natural, id: natural, bytes: natural },
        taken: { to: natural, count: natural },
        close: {},
      },
    },
    source: "Bartlett, Scantlebury & Wilkinson, CACM 1969; Coterie's own",
    assumes: ["a link says at once whether it has taken a message", "it keeps the order of those that it has taken"],
    properties: [],
    costs: [],
    view: ({ waiting }) => ({ role: nodesIn(waiting).length > 0 ? "waiting" : "free" }),
  };
}

/** Whether a sender that can wait before it sends more to that node should: half of the room is taken. */
export function isHalfFull({ waiting }: Readonly<State>, to: NodeId, bounds: ResendingOptions): boolean {
  const of = waiting[to];
  return of !== undefined && (of.messages.length > bounds.maxWaiting / 2 || of.bytes > bounds.maxBytes / 2);
}
