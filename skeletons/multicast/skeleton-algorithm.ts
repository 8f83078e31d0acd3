/**
 * Skeleton algorithm: in one sentence, how messages are delivered.
 * The paper, with year and section, or Coulouris et al. §15.4.
 *
 * Assumes   the sender does not crash while it sends; reliable links; one closed group.
 * Safety    integrity: every message is delivered at most once, and only if it was sent.
 * Liveness  validity: a sender delivers its own message. Agreement: if one member delivers a message, all do.
 * Cost      N − 1 messages per multicast.
 *
 * Placeholder until you write the algorithm: one message to each member, delivered on receipt.
 */
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";
import { natural, type Shape, text } from "../../src/core/shape.ts";
import type { Multicast } from "../../src/protocols/multicast/parts/layers.ts";
import { requireNoOptions } from "../../src/protocols/options.ts";

/** The types of the skeleton algorithm: its state, messages, commands and events. */
export type SkeletonAlgorithm<P = string> = {
  /** Messages that this node has sent. */
  state: { sent: number };
  /** `number` counts the messages of the sender, from 1. */
  message: { type: "multicast"; number: number; payload: P };
  command: Multicast<P>["command"];
  event: Multicast<P>["event"];
};

/** The options of `skeletonAlgorithm()`. */
export type SkeletonAlgorithmOptions = Record<never, never>;

const MAX_PAYLOAD_BYTES = 65_536;

/**
 * Delivers every message to all members of a group.
 *
 * @throws UsageError if an option is given, because there are none
 */
export function skeletonAlgorithm<P = string>(
  given?: Partial<SkeletonAlgorithmOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<SkeletonAlgorithm<P>> {
  requireNoOptions("skeleton-algorithm", given);

  function deliver(ctx: Context<SkeletonAlgorithm<P>>, from: NodeId, number: number, body: P): void {
    ctx.emit({ type: "delivered", from, payload: body, id: `${from}.${number}` });
  }

  return {
    name: "skeleton-algorithm",
    init: () => ({ sent: 0 }),
    receive: {
      multicast: (_state, from, message, ctx) => deliver(ctx, from, message.number, message.payload),
    },
    command: {
      send(state, command, ctx) {
        state.sent += 1;
        ctx.broadcast({ type: "multicast", number: state.sent, payload: command.payload });
        deliver(ctx, ctx.self, state.sent, command.payload);
      },
    },
    shapes: { message: { multicast: { number: natural, payload } }, command: { send: { payload } } },
    source: "the paper, with year and section",
    assumes: ["the sender does not crash while it sends", "reliable links", "one closed group"],
    // The workload checks deliveries: its properties are listed in the registry entry.
    properties: [],
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
    view: () => ({ role: "listening" }),
  };
}
