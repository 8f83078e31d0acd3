/**
 * Who uses a multicast: sends so many messages, one after the other, and remembers what it has delivered. Each message
 * says what its sender had delivered before, so whether an order is kept can be seen without a look at the protocol's
 * own clocks. For simulator and checker: what it remembers is never forgotten.
 */
import { type Assembly, assemble, type Wires } from "../../../core/assemble.ts";
import type { Context, Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { natural, real, struct, text } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export type MulticastUser = {
  state: {
    /** How many messages it is still to send. */
    left: number;
    /** In the order of delivery; `past`: what the sender had delivered before it sent. */
    delivered: { id: string; past: string[] }[];
  };
  timer: "pause";
  command: /** Send so many messages more. */
    | { type: "send"; messages: number }
    /** From the multicast. */
    | { type: "delivered"; id: string; payload: string };
  event: { type: "said"; payload: string };
};

export interface MulticastUserOptions {
  /** Between two messages of one sender. */
  pauseMs: number;
}

const defaults: MulticastUserOptions = { pauseMs: 5 };

const optionShape = struct<MulticastUserOptions>({ pauseMs: real });

/** What every ordered multicast offers to whoever uses it. */
export interface Multicast extends Vocabulary {
  command: { type: "send"; payload: string };
  event: { type: "delivered"; from: number; payload: string; id: string };
}

type State = MulticastUser["state"];
type Ctx = Context<MulticastUser>;

export function multicastUser(given?: Partial<MulticastUserOptions>): Protocol<MulticastUser> {
  const { pauseMs } = settle(defaults, optionShape, given, "user");
  requirePositive("user.pauseMs", pauseMs);

  function say(state: State, ctx: Ctx): void {
    state.left -= 1;
    ctx.emit({ type: "said", payload: state.delivered.map(({ id }) => id).join(" ") });
    if (state.left > 0) ctx.setTimer("pause", pauseMs);
  }

  return {
    name: "user",
    init: () => ({ left: 0, delivered: [] }),
    timeout: { pause: say },
    command: {
      send(state, { messages }, ctx) {
        const isBusy = state.left > 0;
        state.left += messages;
        if (!isBusy && state.left > 0) say(state, ctx);
      },
      delivered(state, { id, payload }) {
        state.delivered.push({ id, past: payload === "" ? [] : payload.split(" ") });
      },
    },
    shapes: { command: { send: { messages: natural }, delivered: { id: text(64), payload: text(65_536) } } },
    source: "Coulouris et al. §15.4: multicast(g, m), deliver(m)",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ left }) => ({ role: left > 0 ? "sending" : "listening" }),
  };
}

export type UsedMulticast<M extends Multicast> = Assembly<{ user: MulticastUser; multicast: M }>;

/** A multicast with a user at every node, and orders that the users' deliveries should keep. */
export function usedMulticast<M extends Multicast>(
  multicast: Protocol<M>,
  orders: readonly Property<MulticastUser>[],
  options?: Partial<MulticastUserOptions>,
): Protocol<UsedMulticast<M>> {
  const wires: Wires<{ user: MulticastUser; multicast: Multicast }> = {
    user: { said: ({ payload }, give) => give("multicast", { type: "send", payload }) },
    multicast: { delivered: ({ id, payload }, give) => give("user", { type: "delivered", id, payload }) },
  };
  const user = multicastUser(options);
  return assemble<{ user: MulticastUser; multicast: M }>(
    multicast.name,
    { user: { ...user, properties: orders }, multicast },
    wires,
    { face: "multicast" },
  );
}

export const happenedBeforeOrder: Property<MulticastUser> = {
  name: "C5 happened-before order",
  claim: "whoever has delivered a message had delivered before it whatever its sender had",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const before = new Set<string>();
      return state(node).delivered.every(({ id, past }) => {
        const isInOrder = past.every((earlier) => before.has(earlier));
        before.add(id);
        return isInOrder;
      });
    }),
};
