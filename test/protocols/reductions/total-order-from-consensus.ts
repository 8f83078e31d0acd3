/**
 * Total order from consensus, slot by slot. A node with a message proposes it for the first slot that it does not know
 * to be decided. If a different message wins, it tries the next slot. All nodes deliver the decided slots in order.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { Context, Property, Protocol, World } from "../../../src/core/protocol.ts";
import { natural } from "../../../src/core/shape.ts";
import { type PaxosOptions, paxos } from "../../../src/protocols/consensus/paxos/paxos.ts";
import { ofAReduction, value } from "./deciding.ts";

export type Slots = {
  state: {
    /** The node's own messages that no slot contains yet. */
    waiting: string[];
    /** The last slot that the node has proposed for, or −1. */
    proposedFor: number;
    /** The decided messages that the node knows, keyed by slot. */
    decided: Record<number, string>;
    /** Delivered messages in order: the decided slots from 0 up to the first gap. */
    delivered: string[];
  };
  command: { type: "send"; value: string } | { type: "settle"; slot: number; value: string };
  event: { type: "proposed"; slot: number; value: string } | { type: "delivered"; value: string };
};

type State = Slots["state"];

function deliverAndPropose(state: State, slots: number, ctx: Context<Slots>): void {
  let next = state.decided[state.delivered.length];
  while (next !== undefined) {
    state.delivered.push(next);
    ctx.emit({ type: "delivered", value: next });
    if (state.waiting[0] === next) state.waiting.shift();
    next = state.decided[state.delivered.length];
  }
  const slot = state.delivered.length;
  const own = state.waiting[0];
  if (own === undefined || state.proposedFor === slot || slot === slots) return;
  state.proposedFor = slot;
  ctx.emit({ type: "proposed", slot, value: own });
}

const inSlots = (slots: number): Protocol<Slots> => ({
  ...ofAReduction,
  name: "slots",
  init: () => ({ waiting: [], proposedFor: -1, decided: {}, delivered: [] }),
  command: {
    send(state, { value: own }, ctx) {
      state.waiting.push(own);
      deliverAndPropose(state, slots, ctx);
    },
    settle(state, { slot, value: chosen }, ctx) {
      state.decided[slot] = chosen;
      deliverAndPropose(state, slots, ctx);
    },
  },
  shapes: { command: { send: { value }, settle: { slot: natural, value } } },
  properties: [
    {
      name: "total order",
      claim:
        "the messages that one node has delivered begin with those that the other has delivered, in the same order, or vice versa",
      when: "always",
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) =>
          alive.every((other) => {
            const [one, two] = [state(node).delivered, state(other).delivered];
            return one.slice(0, two.length).join() === two.slice(0, one.length).join();
          }),
        ),
    },
    {
      name: "integrity",
      claim: "a node delivers a message once",
      when: "always",
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) => new Set(state(node).delivered).size === state(node).delivered.length),
    },
  ] as Property<Slots>[],
});

// There is one part per slot, looked up by name.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** Uses a separate instance of Paxos for each slot. */
export function totalOrderFromConsensus(slots: number, options: Partial<PaxosOptions> = {}) {
  const names = Array.from({ length: slots }, (_, slot) => `slot${slot}`);
  const wires = Object.fromEntries(
    names.map((name, slot) => [
      name,
      { decided: (event: Any, give: Any) => give("order", { type: "settle", slot, value: event.value }) },
    ]),
  );
  const order = {
    proposed: ({ slot, value: own }: Any, give: Any) => give(`slot${slot}`, { type: "propose", value: own }),
  };
  return assemble<Any>(
    "total-order-from-consensus",
    { order: inSlots(slots), ...Object.fromEntries(names.map((name) => [name, paxos(options)])) } as Any,
    { order, ...wires } as Any,
    { face: "order" },
  );
}
