/**
 * The workload of back-pressure: every node sends numbered items to all others, a window of them at a time, and has a reader that takes
 * one now and then. It stands for a channel: what arrives is acknowledged at once, and unread until the reader takes it.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import { nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId, Protocol, World } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { include } from "../../node-set.ts";
import { count, type OptionsOf, optionTable, positive, whole } from "../../options.ts";
import { type AnyMaker, composed, joined, type System } from "../../system.ts";
import type { BackPressure, BackPressureOptions } from "./back-pressure.ts";

export type PressureWorkload = {
  state: {
    /** How many items it has yet to send, and how many it has sent. */
    left: number;
    sent: number;
    /** How many of them each other node has acknowledged. */
    acknowledged: PerNode<number>;
    /** Of which node each item is, the oldest first. */
    unread: { from: NodeId; item: number }[];
    /** Whether the reader has been told to be behind. */
    isFull: boolean;
    /** A node that is down is not waited for. Ascending. */
    suspected: NodeId[];
  };
  message: { type: "item"; item: number } | { type: "acknowledge"; item: number };
  timer: "send" | "take";
  command: /** From back-pressure: nobody is waited for; somebody was that is not any more. */
  { type: "go" } | { type: "again" } | { type: "suspect"; node: NodeId };
  event:
    | { type: "wishes" }
    | { type: "fellBehind" }
    | { type: "caughtUp" }
    | { type: "consumed"; from: NodeId; item: number };
};

const workloadOptions = optionTable("workload", {
  items: whole(3, "how many items each node sends by itself"),
  window: count(1, "how many items may be on their way to one node"),
  limit: count(1, "a reader with this many unread items cannot keep up, until it has none"),
  takeMs: positive(200, "the longest time between two items that the reader takes"),
  sendMs: positive(10, "the longest time until a node checks again whether it may send"),
});

export type PressureWorkloadOptions = OptionsOf<typeof workloadOptions>;

type State = PressureWorkload["state"];
type Ctx = Context<PressureWorkload>;

const outstanding = ({ sent, acknowledged, suspected }: State): number =>
  sent -
  Math.min(
    sent,
    ...nodesIn(acknowledged)
      .filter((node) => !suspected.includes(node))
      .map((node) => acknowledged[node] as number),
  );

function pressureWorkload(given?: Partial<PressureWorkloadOptions>): Protocol<PressureWorkload> {
  const options = workloadOptions.settle(given);
  const { window, limit, takeMs, sendMs } = options;

  const wish = (state: State, ctx: Ctx): void => {
    if (state.left > 0) ctx.setTimer("send", [1, sendMs]);
  };

  return {
    name: "workload",
    init: (_self, peers) => ({
      left: options.items,
      sent: 0,
      acknowledged: Object.fromEntries(peers.map((peer) => [peer, 0])),
      unread: [],
      isFull: false,
      suspected: [],
    }),
    start: wish,
    receive: {
      item(state, from, { item }, ctx) {
        ctx.send(from, { type: "acknowledge", item });
        state.unread.push({ from, item });
        if (state.unread.length === 1) ctx.setTimer("take", [1, takeMs]);
        if (state.unread.length < limit || state.isFull) return;
        state.isFull = true;
        ctx.emit({ type: "fellBehind" });
      },
      acknowledge(state, from, { item }, ctx) {
        state.acknowledged[from] = Math.max(state.acknowledged[from] ?? 0, item);
        wish(state, ctx);
      },
    },
    timeout: {
      send: (_state, ctx) => ctx.emit({ type: "wishes" }),
      take(state, ctx) {
        const oldest = state.unread.shift();
        if (oldest !== undefined) ctx.emit({ type: "consumed", ...oldest });
        if (state.unread.length > 0) return ctx.setTimer("take", [1, takeMs]);
        if (!state.isFull) return;
        state.isFull = false;
        ctx.emit({ type: "caughtUp" });
      },
    },
    command: {
      again: (state, _command, ctx) => wish(state, ctx),
      go(state, _command, ctx) {
        if (state.left === 0 || outstanding(state) >= window) return; // An acknowledgement is on its way.
        state.left -= 1;
        state.sent += 1;
        ctx.broadcast({ type: "item", item: state.sent });
        wish(state, ctx);
      },
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        wish(state, ctx);
      },
    },
    shapes: {
      message: { item: { item: natural }, acknowledge: { item: natural } },
      command: { go: {}, again: {}, suspect: { node: natural } },
    },
    source: "a channel with a window, and its reader",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ unread }) => ({ role: unread.length > 0 ? "reading" : "idle" }),
  };
}

type Pair = { workload: PressureWorkload; pressure: BackPressure };

const wires: Wires<Pair> = {
  workload: {
    wishes: (_event, give) => give("pressure", { type: "wish" }),
    fellBehind: (_event, give) => give("pressure", { type: "fallBehind" }),
    caughtUp: (_event, give) => give("pressure", { type: "catchUp" }),
  },
  pressure: {
    clear: (_event, give) => give("workload", { type: "go" }),
    relieved: (_event, give) => give("workload", { type: "again" }),
    expired: (_event, give) => give("workload", { type: "again" }),
  },
};

export type PressureModel = Assembly<Pair>;

export interface PressureModelOptions {
  workload?: Partial<PressureWorkloadOptions>;
  pressure?: Partial<BackPressureOptions>;
}

/** The system with senders and readers at every node. */
export function withPressureWorkload({ parts, wires: own, algorithm }: System): AnyMaker {
  const make = composed<Pair, PressureModelOptions>({
    parts: { ...parts, workload: pressureWorkload },
    wires: joined(wires as never, own),
    algorithm,
  });
  return (options?: PressureModelOptions): Protocol<PressureModel> => {
    const assembly = make(options);
    const settled = { ...workloadOptions.defaults, ...options?.workload };
    const own = [eachOnce, windowIsKept(settled), readersHaveRoom(settled), allIsRead];
    return { ...assembly, properties: [...assembly.properties, ...own] as never };
  };
}

type Whole = World<{ workload: State; pressure: BackPressure["state"] }>;

/** What a reader has taken of each node, and whether each item came after the one before. */
interface Taken {
  readonly last: PerNode<number>;
  readonly wrongly: boolean;
}

const eachOnce = {
  name: "each once, in order",
  claim: "a reader takes what each node has sent in order: nothing is left out, nothing comes twice",
  when: "always",
  history: {
    empty: { last: {}, wrongly: false } as Taken,
    after(before: Taken, { body }: { body: { type: string; from?: NodeId; item?: number } }): Taken {
      const { type, from = 0, item = 0 } = body;
      if (type !== "consumed") return before;
      const wrongly = before.wrongly || item !== (before.last[from] ?? 0) + 1;
      return { last: { ...before.last, [from]: item }, wrongly };
    },
  },
  holds: ({ nodes, history }: Whole): boolean => nodes.every((node) => !history<Taken>(node).wrongly),
} as const;

const windowIsKept = ({ window }: PressureWorkloadOptions) =>
  ({
    name: "the window is kept",
    claim: "no node has more on its way than its window",
    when: "always",
    holds: ({ alive, state }: Whole): boolean => alive.every((node) => outstanding(state(node).workload) <= window),
  }) as const;

/** Whether a node has gone on without another that was slow. */
const readersHaveRoom = ({ window, limit }: PressureWorkloadOptions) =>
  ({
    name: "readers have room",
    claim:
      "unless somebody has gone on without it, a reader has no more unread than its limit and a window of each other node",
    when: "always",
    history: {
      empty: { hasGoneOn: false },
      after: (before: { hasGoneOn: boolean }, { body }: { body: { type: string } }) =>
        body.type === "expired" ? { hasGoneOn: true } : before,
    },
    holds: ({ alive, nodes, state, history }: Whole): boolean =>
      nodes.some((node) => history<{ hasGoneOn: boolean }>(node).hasGoneOn) ||
      alive.every((node) => state(node).workload.unread.length <= limit + window * (nodes.length - 1)),
  }) as const;

const allIsRead = {
  name: "all is sent and read",
  claim: "in the end, all is sent and read, unless a node is down that nobody suspects",
  when: "eventually",
  holds: ({ alive, nodes, state }: Whole): boolean => {
    const down = nodes.filter((node) => !alive.includes(node));
    const isNoticed = alive.every((node) => down.every((other) => state(node).workload.suspected.includes(other)));
    return !isNoticed || alive.every((node) => state(node).workload.left + state(node).workload.unread.length === 0);
  },
} as const;
