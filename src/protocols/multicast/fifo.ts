/**
 * FIFO multicast: messages from the same sender are delivered in the order they were sent. Coulouris et al. §15.4.3,
 * with R-multicast's numbers; ISIS FBCAST (Birman & Joseph, ACM TOCS 1987).
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. If the carrier has views, members may crash.
 * Safety    C4: if a node multicasts m and then m′, every node that delivers m′ has already delivered m. Integrity:
 *           every message is delivered at most once, and only if it was sent.
 * Liveness  validity: a node that sends a message delivers it. Agreement: a message that one node delivers is delivered
 *           by all.
 * Cost      N − 1 messages per multicast, each with one number. A sender delivers its own messages at once.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural, type Shape, text } from "../../core/shape.ts";
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
  type Multicast,
  type Refusal,
} from "./parts/layers.ts";

/** Vocabulary of FIFO multicast. */
export type Fifo<P = string> = {
  state: Group<P> & {
    /** S: the number of messages that this node has multicast. */
    sent: number;
    /** R: the number of the last message delivered from each member, in the order of `members`. */
    delivered: number[];
    /** The hold-back queue: messages that arrived too early. */
    heldBack: Message<P>[];
    /** The number of messages dropped at the end of a view because an earlier one reached no surviving member. */
    dropped: number;
  };
  message: { type: "multicast"; number: number; payload: P };
  command: Multicast<P>["command"] | GroupCommand;
  event: Multicast<P>["event"] | Refusal<P> | GroupEvent;
};

type Message<P> = { from: NodeId; number: number; payload: P };

/**
 * Creates FIFO multicast.
 * @param payload the shape of the messages; text by default
 * @throws UsageError if an option is unknown or out of range
 */
export function fifo<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<Fifo<P>> {
  type State = Fifo<P>["state"];
  type Ctx = Context<Fifo<P>>;
  const { group, hasRoom } = beginning<P>(options, "fifo");

  const deliveredOf = ({ members, delivered }: State, node: NodeId): number => delivered[members.indexOf(node)] ?? 0;

  /** Whether S = R + 1. */
  const isNext = (state: State, { from, number }: Message<P>): boolean => number === deliveredOf(state, from) + 1;

  /** Whether the message has already been delivered or is being held back. */
  const isKnown = (state: State, { from, number }: Message<P>): boolean =>
    number <= deliveredOf(state, from) || state.heldBack.some((held) => held.from === from && held.number === number);

  function deliver(state: State, { from, number, payload: body }: Message<P>, ctx: Ctx): void {
    state.delivered[state.members.indexOf(from)] = number;
    ctx.emit({ type: "delivered", from, payload: body, id: `${from}.${number}` });
  }

  return {
    name: "fifo",
    init(self, peers) {
      const begun = group(self, peers);
      return { ...begun, sent: 0, delivered: begun.members.map(() => 0), heldBack: [], dropped: 0 };
    },
    receive: {
      multicast(state, from, { number, payload: body }, ctx) {
        const received = { from, number, payload: body };
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
      hasRoom: (state) => hasRoom(state.sent, state),
      multicast(body, state, ctx) {
        state.sent += 1;
        ctx.broadcast({ type: "multicast", number: state.sent, payload: body });
        deliver(state, { from: ctx.self, number: state.sent, payload: body }, ctx);
      },
      finish(state) {
        state.dropped += state.heldBack.length;
      },
      renew(state) {
        Object.assign(state, { sent: 0, delivered: state.members.map(() => 0), heldBack: [] });
      },
    }),
    shapes: {
      message: { multicast: { number: natural, payload } },
      command: { send: { payload }, ...groupCommandShapes },
    },
    source: "Coulouris et al. §15.4.3; Birman & Joseph, ACM TOCS 1987",
    assumes: ["no crashes, or a lower layer with views", "reliable links", "one closed group"],
    properties: countingProperties<State>(deliveredOf, ({ delivered }) => delivered),
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
    view: (state) => standing(state, state.heldBack, ({ from, number }) => `${from}.${number}`),
  };
}
