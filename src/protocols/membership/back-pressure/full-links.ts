/**
 * Sending again over links that refuse: every node sends numbered items to all others, and each link takes what it is offered or refuses
 * it, as it likes. What it has taken arrives, in order.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { Context, NodeId, Protocol, World } from "../../../core/protocol.ts";
import { list, natural } from "../../../core/shape.ts";
import { type OptionsOf, optionTable, whole } from "../../options.ts";
import { composed } from "../../system.ts";
import { type Resending, type ResendingOptions, resending, settledResending } from "./resending.ts";

export type Links = {
  state: { left: number; sent: number };
  message: { type: "item"; item: number };
  timer: "send";
  command: { type: "offer"; to: NodeId; ids: number[] };
  event:
    | { type: "insists"; to: NodeId; item: number }
    | { type: "took"; to: NodeId; count: number }
    | { type: "got"; from: NodeId; item: number };
};

const linksOptions = optionTable("workload", { items: whole(3, "how many items each node sends to every other node") });

export type LinksOptions = OptionsOf<typeof linksOptions>;

type Ctx = Context<Links>;
type State = Links["state"];

function links(given?: Partial<LinksOptions>): Protocol<Links> {
  const { items } = linksOptions.settle(given);

  function wish(state: State, ctx: Ctx): void {
    if (state.left > 0) ctx.setTimer("send", [1, 10]);
  }

  return {
    name: "workload",
    init: () => ({ left: items, sent: 0 }),
    start: wish,
    receive: { item: (_state, from, { item }, ctx) => ctx.emit({ type: "got", from, item }) },
    timeout: {
      send(state, ctx) {
        state.left -= 1;
        state.sent += 1;
        for (const to of ctx.peers) ctx.emit({ type: "insists", to, item: state.sent });
        wish(state, ctx);
      },
    },
    command: {
      offer(_state, { to, ids }, ctx) {
        const count = ctx.choose(
          "taken",
          Array.from({ length: ids.length + 1 }, (_, taken) => taken),
        );
        for (const item of ids.slice(0, count)) ctx.send(to, { type: "item", item });
        ctx.emit({ type: "took", to, count });
      },
    },
    shapes: {
      message: { item: { item: natural } },
      command: { offer: { to: natural, ids: list(natural, 10_000) } },
    },
    source: "links with queues of their own",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ left }) => ({ role: left > 0 ? "sending" : "done" }),
  };
}

type Pair = { resending: Resending; workload: Links };

const wires: Wires<Pair> = {
  workload: {
    insists: ({ to, item }, give) => give("resending", { type: "insist", to, id: item, bytes: 1 }),
    took: ({ to, count }, give) => give("resending", { type: "taken", to, count }),
  },
  resending: { offer: (offered, give) => give("workload", offered) },
};

export interface FullLinksOptions {
  workload?: Partial<LinksOptions>;
  resending?: Partial<ResendingOptions>;
}

/** Room for two, so that the third drops the first. */
const littleRoom = { maxWaiting: 2, batch: 2 };

export function overFullLinks(options?: FullLinksOptions): Protocol<Assembly<Pair>> {
  const given = { ...littleRoom, ...options?.resending };
  const whole = composed<Pair, FullLinksOptions>({
    parts: { resending, workload: links },
    wires: wires as never,
    algorithm: "resending",
  })({ ...options, resending: given });
  const properties = [inOrder, nothingIsLost, boundsAreKept(settledResending(given)), allIsOnItsWay];
  return { ...whole, name: "back-pressure", properties }; // Of which it is the other half: what is refused at a link, not at a reader.
}

type Whole = World<{ resending: Resending["state"]; workload: State }>;

/** What a node has had of each other, what it has dropped of what was for each, and whether anything came out of turn. */
interface Seen {
  readonly got: Readonly<Record<NodeId, readonly number[]>>;
  readonly dropped: Readonly<Record<NodeId, readonly number[]>>;
  readonly wrongly: boolean;
}

type Emitted = {
  readonly type: string;
  readonly from?: NodeId;
  readonly to?: NodeId;
  readonly item?: number;
  readonly id?: number;
};

const history = {
  empty: { got: {}, dropped: {}, wrongly: false } as Seen,
  after(before: Seen, { body }: { body: Emitted }): Seen {
    const { type, from = 0, to = 0, item = 0, id = 0 } = body;
    if (type === "dropped")
      return { ...before, dropped: { ...before.dropped, [to]: [...(before.dropped[to] ?? []), id] } };
    if (type !== "got") return before;
    const known = before.got[from] ?? [];
    const wrongly = before.wrongly || item <= (known.at(-1) ?? 0);
    return { ...before, got: { ...before.got, [from]: [...known, item] }, wrongly };
  },
};

const inOrder = {
  name: "each once, in order",
  claim: "what reaches a node of another comes in the order in which it was sent, and once",
  when: "always",
  history,
  holds: ({ nodes, history: of }: Whole): boolean => nodes.every((node) => !of<Seen>(node).wrongly),
} as const;

const nothingIsLost = {
  name: "what is missing was dropped",
  claim: "what a node has not had of what came before something that it has had, its sender has dropped, and told so",
  when: "always",
  history,
  holds: ({ nodes, history: of }: Whole): boolean =>
    nodes.every((to) =>
      Object.entries(of<Seen>(to).got).every(([from, items]) => {
        const dropped = of<Seen>(Number(from)).dropped[to] ?? [];
        const last = items.at(-1) ?? 0;
        return Array.from({ length: last }, (_, at) => at + 1).every(
          (item) => items.includes(item) || dropped.includes(item),
        );
      }),
    ),
} as const;

const boundsAreKept = ({ maxWaiting, maxBytes }: ResendingOptions) =>
  ({
    name: "bounds are kept",
    claim: "no more waits for a node than the bounds allow",
    when: "always",
    holds: ({ alive, state }: Whole): boolean =>
      alive.every((node) =>
        Object.values(state(node).resending.waiting).every(
          ({ messages, bytes }) => messages.length <= maxWaiting && bytes <= maxBytes,
        ),
      ),
  }) as const;

const allIsOnItsWay = {
  name: "nothing is left behind",
  claim: "at rest, all that was sent has arrived or was dropped",
  when: "quiescent",
  pendingTimers: ["resending.again", "workload.send"],
  history,
  holds: ({ alive, nodes, state, history: of }: Whole): boolean =>
    alive.length < nodes.length ||
    alive.every((from) =>
      alive.every((to) => {
        if (to === from) return true;
        const { sent } = state(from).workload;
        return (of<Seen>(to).got[from] ?? []).length + (of<Seen>(from).dropped[to] ?? []).length === sent;
      }),
    ),
} as const;
