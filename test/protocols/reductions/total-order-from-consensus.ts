/**
 * Total order from consensus, slot by slot: who has something to send proposes it for the first slot that it does not know to be
 * decided, and if that went to another for the next one. Everybody delivers what the slots have decided, one after the other.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { Context, Property, Protocol, World } from "../../../src/core/protocol.ts";
import { natural } from "../../../src/core/shape.ts";
import { type PaxosOptions, paxos } from "../../../src/protocols/consensus/paxos/paxos.ts";
import { ofAReduction, value } from "./deciding.ts";

export type Slots = {
  state: {
    /** Its own messages that stand in no slot yet. */
    waiting: string[];
    /** The last slot that it has proposed something for; −1: none. */
    proposedFor: number;
    /** By slot, as far as it is known. */
    decided: Record<number, string>;
    /** In the order in which they were delivered: those of the slots from 0 on without a gap. */
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
      claim: "of two nodes, one has delivered what the other has, in the same order, and perhaps more",
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

// As many parts as there are slots: they are looked up by name.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** With so many slots, each an instance of Paxos of its own. */
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
