/**
 * Causal multicast (ISIS CBCAST): a message is delivered after all messages that its sender delivered or sent before
 * sending it. Birman, Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 1991; terms of
 * Coulouris et al. §15.4.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. If the carrier has views, members may crash.
 * Safety    C5: if multicast(m) → multicast(m′), every node that delivers m′ has already delivered m. Integrity: every
 *           message is delivered at most once, and only if it was sent.
 * Liveness  validity: a node that sends a message delivers it. Agreement: a message that one node delivers is delivered
 *           by all.
 * Cost      N − 1 messages per multicast, each with N counters. A sender delivers its own messages at once.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { list, natural, type Shape, text } from "../../core/shape.ts";
import {
  beginning,
  countingProperties,
  type Group,
  groupCommands,
  holdBack,
  MAX_PAYLOAD_BYTES,
  type OrderOptions,
  standing,
} from "./parts/group.ts";
import {
  type GroupCommand,
  type GroupEvent,
  groupCommandShapes,
  MAX_MEMBERS,
  type Multicast,
  type Refusal,
} from "./parts/layers.ts";

/** Vocabulary of causal multicast. */
export type Causal<P = string> = {
  state: Group<P> & {
    /** V: the number of messages from each member that this node has delivered, in the order of `members`. */
    vector: number[];
    /** The hold-back queue: received messages that cannot be delivered yet. */
    heldBack: Message<P>[];
    /** The number of messages dropped at the end of a view because one of their causes reached no surviving member. */
    dropped: number;
  };
  message: { type: "multicast"; vector: number[]; payload: P };
  command: Multicast<P>["command"] | GroupCommand;
  /** `id` identifies a message by its sender and its sequence number, starting at 1. */
  event: Multicast<P>["event"] | Refusal<P> | GroupEvent;
};

type Message<P> = { from: NodeId; vector: number[]; payload: P };

/**
 * Creates causal multicast.
 * @param payload the shape of the messages; text by default
 * @throws UsageError if an option is unknown or out of range
 */
export function causal<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<Causal<P>> {
  type State = Causal<P>["state"];
  type Ctx = Context<Causal<P>>;
  const { group, hasRoom } = beginning<P>(options, "causal");

  /** Returns the sender's sequence number for the message, starting at 1. */
  const number = ({ members }: State, { from, vector }: Message<P>): number => vector[members.indexOf(from)] ?? 0;
  const deliveredOf = ({ members, vector }: State, node: NodeId): number => vector[members.indexOf(node)] ?? 0;
  const idOf = (state: State, message: Message<P>): string => `${message.from}.${number(state, message)}`;

  /** Whether V_j[j] = V_i[j] + 1, and V_j[k] ≤ V_i[k] for k ≠ j. */
  const isNext = (state: State, message: Message<P>): boolean =>
    state.members.every((member, k) =>
      member === message.from
        ? number(state, message) === deliveredOf(state, member) + 1
        : (message.vector[k] ?? 0) <= (state.vector[k] ?? 0),
    );

  /** Whether the message has already been delivered or is being held back. */
  const isKnown = (state: State, message: Message<P>): boolean =>
    number(state, message) <= deliveredOf(state, message.from) ||
    state.heldBack.some((held) => held.from === message.from && number(state, held) === number(state, message));

  function deliver(state: State, message: Message<P>, ctx: Ctx): void {
    state.vector[state.members.indexOf(message.from)] = number(state, message);
    ctx.emit({ type: "delivered", from: message.from, payload: message.payload, id: idOf(state, message) });
  }

  return {
    name: "causal",
    init(self, peers) {
      const begun = group(self, peers);
      return { ...begun, vector: begun.members.map(() => 0), heldBack: [], dropped: 0 };
    },
    receive: {
      multicast(state, from, { vector, payload: body }, ctx) {
        const received = { from, vector, payload: body };
        if (isKnown(state, received)) return; // A duplicate.
        holdBack(
          state.heldBack,
          received,
          (held) => isNext(state, held),
          (next) => deliver(state, next, ctx),
        );
      },
    },
    command: groupCommands<P, State, Ctx>({
      hasRoom: (state, self) => hasRoom(deliveredOf(state, self), state),
      multicast(body, state, ctx) {
        const vector = state.vector.map((count, k) => (state.members[k] === ctx.self ? count + 1 : count));
        ctx.broadcast({ type: "multicast", vector, payload: body });
        deliver(state, { from: ctx.self, vector, payload: body }, ctx);
      },
      finish(state) {
        state.dropped += state.heldBack.length;
      },
      renew(state) {
        Object.assign(state, { vector: state.members.map(() => 0), heldBack: [] });
      },
    }),
    shapes: {
      message: { multicast: { vector: list(natural, MAX_MEMBERS), payload } },
      command: { send: { payload }, ...groupCommandShapes },
    },
    source: "Birman, Schiper & Stephenson, ACM TOCS 1991; Coulouris et al. §15.4",
    assumes: ["no crashes, or a lower layer with views", "reliable links", "one closed group"],
    properties: countingProperties<State>(deliveredOf, ({ vector }) => vector),
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
    view: (state) => standing(state, state.heldBack, (message) => idOf(state, message)),
  };
}
