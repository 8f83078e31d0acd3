/**
 * Causal multicast (ISIS CBCAST): a message is delivered after all that its sender had delivered or sent before it.
 * Birman, Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 1991; words of Coulouris et al.
 * §15.4.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group.
 * Safety    C5: if multicast(m) → multicast(m′), whoever delivers m′ has delivered m before. Integrity: every message at
 *           most once, and only what was sent.
 * Liveness  agreement: every message is delivered by everybody in the end.
 * Cost      N − 1 messages per multicast, each with N counters. A sender delivers its own at once.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { list, natural, struct, text } from "../../core/shape.ts";
import { settle } from "../options.ts";

export type Causal = {
  state: {
    /** The members of the group, ascending. A vector has a counter for each, in this order. */
    group: NodeId[];
    /** V: how many messages of each member have been delivered here. */
    vector: number[];
    /** The hold-back queue: received, and not yet to be delivered. */
    heldBack: { from: NodeId; vector: number[]; payload: string }[];
  };
  message: { type: "multicast"; vector: number[]; payload: string };
  command: { type: "send"; payload: string };
  /** `id` names a message: its sender, and which of its messages it is, from 1. */
  event: { type: "delivered"; from: NodeId; payload: string; id: string };
};

const MAX_PAYLOAD_BYTES = 65_536;
const MAX_MEMBERS = 10_000;

type State = Causal["state"];
type Ctx = Context<Causal>;
type Held = State["heldBack"][number];

export function causal(given?: Record<never, never>): Protocol<Causal> {
  settle({}, struct({}), given, "causal"); // It has no options.

  /** How many messages `from` had sent when it sent this one, which counts. */
  const number = ({ group }: State, { from, vector }: Held): number => vector[group.indexOf(from)] ?? 0;
  const deliveredOf = ({ group, vector }: State, node: NodeId): number => vector[group.indexOf(node)] ?? 0;

  /** V_j[j] = V_i[j] + 1 and V_j[k] ≤ V_i[k] for k ≠ j. */
  const isNext = (state: State, message: Held): boolean =>
    state.group.every((member, k) =>
      member === message.from
        ? number(state, message) === deliveredOf(state, member) + 1
        : (message.vector[k] ?? 0) <= (state.vector[k] ?? 0),
    );

  /** Delivered already, or held back. */
  const isKnown = (state: State, message: Held): boolean =>
    number(state, message) <= deliveredOf(state, message.from) ||
    state.heldBack.some((held) => held.from === message.from && number(state, held) === number(state, message));

  function deliver(state: State, message: Held, ctx: Ctx): void {
    const { from, payload } = message;
    state.vector[state.group.indexOf(from)] = number(state, message);
    ctx.emit({ type: "delivered", from, payload, id: `${from}.${number(state, message)}` });
  }

  return {
    name: "causal",
    init(self, peers) {
      const group = [self, ...peers].sort((a, b) => a - b);
      return { group, vector: group.map(() => 0), heldBack: [] };
    },
    receive: {
      multicast(state, from, { vector, payload }, ctx) {
        const received = { from, vector, payload };
        if (isKnown(state, received)) return; // A duplicate.
        state.heldBack.push(received);
        for (let next = state.heldBack.find((held) => isNext(state, held)); next !== undefined; ) {
          deliver(state, next, ctx);
          state.heldBack.splice(state.heldBack.indexOf(next), 1);
          next = state.heldBack.find((held) => isNext(state, held)); // What has waited for this one may follow.
        }
      },
    },
    command: {
      send(state, { payload }, ctx) {
        const vector = state.vector.map((count, k) => (state.group[k] === ctx.self ? count + 1 : count));
        ctx.broadcast({ type: "multicast", vector, payload });
        deliver(state, { from: ctx.self, vector, payload }, ctx);
      },
    },
    shapes: {
      message: { multicast: { vector: list(natural, MAX_MEMBERS), payload: text(MAX_PAYLOAD_BYTES) } },
      command: { send: { payload: text(MAX_PAYLOAD_BYTES) } },
    },
    source: "Birman, Schiper & Stephenson, ACM TOCS 1991; Coulouris et al. §15.4",
    assumes: ["no crashes", "reliable links", "one closed group"],
    properties: [
      {
        name: "integrity",
        claim: "nobody has delivered more of a member's messages than it has sent",
        when: "always",
        holds: ({ alive, state }) =>
          alive.every((sender) =>
            alive.every((node) => deliveredOf(state(node), sender) <= deliveredOf(state(sender), sender)),
          ),
      },
      {
        name: "agreement",
        claim: "at rest, everybody has delivered what anybody has, and holds nothing back",
        when: "atRest",
        holds: ({ alive, state }) =>
          alive.every((node) => {
            const { heldBack, vector } = state(node);
            return heldBack.length === 0 && vector.join() === state(alive[0] as NodeId).vector.join();
          }),
      },
    ],
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
    view: ({ heldBack }) => ({ role: heldBack.length > 0 ? "holding back" : "up to date" }),
  };
}
