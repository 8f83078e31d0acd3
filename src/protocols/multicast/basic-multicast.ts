/**
 * Basic multicast (B-multicast): the sender sends the message to each member in turn, and a member delivers it when it
 * arrives. Coulouris et al. §15.4.1.
 *
 * Assumes   the sender does not crash while sending; reliable links, or acknowledgements over links that lose and
 *           duplicate messages; one closed group with fixed members.
 * Safety    integrity: every message is delivered at most once, and only if it was sent.
 * Liveness  validity: a node that sends a message delivers it. Agreement: a message that one node delivers is delivered
 *           by all.
 * Cost      N − 1 messages per multicast, plus as many acknowledgements if they are enabled. A sender delivers its own
 *           messages at once.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural, type Shape, text } from "../../core/shape.ts";
import { count, flag, type OptionsOf, optionTable, positive } from "../options.ts";
import { isReceived, type Received, received } from "./parts/group.ts";
import type { Multicast } from "./parts/layers.ts";

/** Vocabulary of basic multicast. */
export type BasicMulticast<P = string> = {
  state: {
    /** The number of messages that this node has sent. */
    sent: number;
    /** The messages received from each other member. Only used with acknowledgements, to detect duplicates. */
    received: Received[];
    /** This node's messages that not all members have acknowledged yet, and how often each was sent. */
    open: { number: number; payload: P; missing: NodeId[]; tries: number }[];
  };
  /** `number`: the sender's sequence number for the message, starting at 1. */
  message: { type: "multicast"; number: number; payload: P } | { type: "acknowledgement"; number: number };
  timer: "resend";
  command: Multicast<P>["command"];
  event: Multicast<P>["event"];
};

const basicMulticastOptions = optionTable("basic-multicast", {
  acknowledges: flag(
    false,
    "whether each message is acknowledged, and resent to members that have not acknowledged it; not needed with reliable links",
  ),
  dropsCopies: flag(true, "with acknowledgements, whether duplicates of a delivered message are dropped"),
  resendMs: positive(100, "how long a sender waits for acknowledgements before it resends a message"),
  maxTries: count(10, "a member counts as crashed if it has not acknowledged a message after this many transmissions"),
});

/** Options of `basicMulticast()`. */
export type BasicMulticastOptions = OptionsOf<typeof basicMulticastOptions>;

const MAX_PAYLOAD_BYTES = 65_536;

/**
 * Creates basic multicast.
 * @param payload the shape of the messages; text by default
 * @throws UsageError if an option is unknown or out of range
 */
export function basicMulticast<P = string>(
  given?: Partial<BasicMulticastOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<BasicMulticast<P>> {
  type State = BasicMulticast<P>["state"];
  type Ctx = Context<BasicMulticast<P>>;
  const { acknowledges, dropsCopies, resendMs, maxTries } = basicMulticastOptions.settle(given);

  function deliver(ctx: Ctx, from: NodeId, number: number, body: P): void {
    ctx.emit({ type: "delivered", from, payload: body, id: `${from}.${number}` });
  }

  return {
    name: "basic-multicast",
    init: () => ({ sent: 0, received: [], open: [] }),
    receive: {
      multicast(state, from, { number, payload: body }, ctx) {
        if (acknowledges) {
          // Acknowledge duplicates too, because the first acknowledgement may have been lost.
          ctx.send(from, { type: "acknowledgement", number });
          if (dropsCopies && isReceived(state.received, from, number)) return;
          if (dropsCopies) state.received = received(state.received, from, number);
        }
        deliver(ctx, from, number, body);
      },
      acknowledgement(state, from, { number }, ctx) {
        const message = state.open.find((each) => each.number === number);
        if (message === undefined) return; // All members have acknowledged the message, or the sender has given up.
        message.missing = message.missing.filter((member) => member !== from);
        if (message.missing.length > 0) return;
        state.open = state.open.filter((each) => each !== message);
        if (state.open.length === 0) ctx.cancelTimer("resend");
      },
    },
    timeout: {
      resend(state, ctx) {
        state.open = state.open.filter(({ tries }) => tries < maxTries);
        for (const message of state.open) {
          message.tries += 1;
          for (const member of message.missing)
            ctx.send(member, { type: "multicast", number: message.number, payload: message.payload });
        }
        if (state.open.length > 0) ctx.setTimer("resend", resendMs);
      },
    },
    command: {
      send(state: State, { payload: body }, ctx: Ctx) {
        state.sent += 1;
        const number = state.sent;
        ctx.broadcast({ type: "multicast", number, payload: body });
        if (acknowledges && ctx.peers.length > 0) {
          if (state.open.length === 0) ctx.setTimer("resend", resendMs);
          state.open.push({ number, payload: body, missing: [...ctx.peers], tries: 1 });
        }
        deliver(ctx, ctx.self, number, body);
      },
    },
    shapes: {
      message: { multicast: { number: natural, payload }, acknowledgement: { number: natural } },
      command: { send: { payload } },
    },
    source: "Coulouris et al. §15.4.1",
    assumes: [
      "the sender does not crash while it sends",
      acknowledges ? "fair-loss links" : "reliable links",
      "one closed group",
    ],
    properties: [],
    costs: [
      {
        when: acknowledges ? "one multicast, with acknowledgements" : "one multicast",
        messages: (nodes) => (acknowledges ? 2 : 1) * (nodes - 1),
      },
    ],
    view: ({ open }) => ({ role: open.length > 0 ? "waiting for acknowledgements" : "listening" }),
  };
}
