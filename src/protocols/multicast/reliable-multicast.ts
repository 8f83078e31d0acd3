/**
 * Reliable multicast over basic multicast (R-multicast): when a member receives a message for the first time, it
 * multicasts the message again before delivering it. If a sender crashes midway, its message therefore does not stay
 * with only some of the members. Coulouris et al. §15.4.2; the eager algorithm of Hadzilacos & Toueg, "A Modular
 * Approach to Fault-Tolerant Broadcasts and Related Problems", Cornell TR 94-1425, 1994.
 *
 * Assumes   crash-stop nodes, in any number and at any time; a basic multicast over reliable links, in any order, which
 *           may duplicate messages; one closed group with fixed members.
 * Safety    integrity: every message is delivered at most once, and only if it was sent.
 * Liveness  validity: a node that sends a message and does not crash delivers it. Uniform agreement: a message that any
 *           node delivers, even just before it crashes, is delivered by all nodes that do not crash.
 * Cost      N(N − 1) messages per multicast, plus as many acknowledgements if the basic multicast uses them. A sender
 *           delivers its own messages at once, and the others deliver them after one message delay.
 */
import type { NodeId, Protocol } from "../../core/protocol.ts";
import { natural, type Shape, text } from "../../core/shape.ts";
import { flag, type OptionsOf, optionTable } from "../options.ts";
import { type BasicMulticast, basicMulticast } from "./basic-multicast.ts";
import { isReceived, type Received, received } from "./parts/group.ts";
import { type Multicast, type Over, over } from "./parts/layers.ts";

type Relaying<P> = {
  state: {
    /** The number of messages that this node has sent. */
    sent: number;
    /** The messages delivered by this node, including its own. */
    received: Received[];
  };
  /** `origin` and `number`: the original sender, and its sequence number for the message, starting at 1. */
  message: { type: "message"; origin: NodeId; number: number; payload: P };
  command: Multicast<P>["command"];
  event: Multicast<P>["event"];
};

const reliableMulticastOptions = optionTable("reliable-multicast", {
  acknowledges: flag(
    false,
    "whether the basic multicast below requires acknowledgements and resends unacknowledged messages, for links that lose messages",
  ),
});

/** Options of `reliableMulticast()`. */
export type ReliableMulticastOptions = OptionsOf<typeof reliableMulticastOptions>;

/** Vocabulary of reliable multicast. */
export type ReliableMulticast<P = string> = Over<Relaying<P>, BasicMulticast<Relaying<P>["message"]>>;

const MAX_PAYLOAD_BYTES = 65_536;

/** Creates reliable multicast. @throws UsageError if an option is unknown or out of range. */
export function reliableMulticast<P = string>(
  given?: Partial<ReliableMulticastOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<ReliableMulticast<P>> {
  const options = reliableMulticastOptions.settle(given);
  return over(relaying(payload), (carried) => basicMulticast(options, carried));
}

function relaying<P>(payload: Shape<P>): Protocol<Relaying<P>> {
  return {
    name: "reliable-multicast",
    init: () => ({ sent: 0, received: [] }),
    receive: {
      message(state, _from, message, ctx) {
        const { origin, number, payload: body } = message;
        if (isReceived(state.received, origin, number)) return; // A copy, or the node's own message.
        state.received = received(state.received, origin, number);
        ctx.broadcast(message);
        ctx.emit({ type: "delivered", from: origin, payload: body, id: `${origin}.${number}` });
      },
    },
    command: {
      send(state, { payload: body }, ctx) {
        state.sent += 1;
        const number = state.sent;
        state.received = received(state.received, ctx.self, number);
        ctx.broadcast({ type: "message", origin: ctx.self, number, payload: body });
        ctx.emit({ type: "delivered", from: ctx.self, payload: body, id: `${ctx.self}.${number}` });
      },
    },
    shapes: {
      message: { message: { origin: natural, number: natural, payload } },
      command: { send: { payload } },
    },
    source: "Coulouris et al. §15.4.2; Hadzilacos & Toueg, TR 94-1425, 1994",
    assumes: ["crash-stop nodes", "reliable links", "one closed group"],
    properties: [],
    costs: [{ when: "one multicast", messages: (nodes) => nodes * (nodes - 1) }],
    view: () => ({ role: "listening" }),
  };
}
