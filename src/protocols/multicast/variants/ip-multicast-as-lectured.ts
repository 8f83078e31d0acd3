/**
 * Reliable multicast over IP multicast as presented in a lecture: S and R both start at 0, a message carries S before S
 * is incremented, and a node that has delivered R delivers R + 1 next. Each sender's first message carries 0, so all
 * nodes, including the sender, treat it as a duplicate. The variant is kept because the checker refutes it. The correct
 * form is in `../ip-multicast/ip-multicast.ts`.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { list, natural, text } from "../../../core/shape.ts";
import { requireNoOptions } from "../../options.ts";
import { MAX_MEMBERS } from "../parts/layers.ts";

export type IpMulticastAsLectured = {
  state: {
    group: NodeId[];
    /** S_g^p: the number of the next message. */
    next: number;
    /** R_g^q for each member q: the number of the last message from q that this node delivered. */
    delivered: number[];
    /** Sent messages, in order of their numbers, for nodes that lack any of them. */
    sent: string[];
  };
  message:
    | { type: "data"; number: number; acks: number[]; payload: string }
    /** Requests the receiver's messages from this number onward, because they were lost. */
    | { type: "nack"; from: number };
  command: { type: "send"; payload: string };
  event: { type: "delivered"; from: NodeId; payload: string; id: string };
};

type State = IpMulticastAsLectured["state"];
type Ctx = Context<IpMulticastAsLectured>;
type Data = { number: number; acks: number[]; payload: string };

/**
 * Creates reliable multicast as presented in a lecture.
 * @throws UsageError if any option is given, because there are none.
 */
export function ipMulticastAsLectured(given?: Record<never, never>): Protocol<IpMulticastAsLectured> {
  requireNoOptions("ip-multicast", given);

  const deliveredOf = ({ group, delivered }: State, node: NodeId): number => delivered[group.indexOf(node)] ?? 0;

  function receive(state: State, from: NodeId, { number, acks, payload }: Data, ctx: Ctx): void {
    if (number === deliveredOf(state, from) + 1) {
      state.delivered[state.group.indexOf(from)] = number;
      ctx.emit({ type: "delivered", from, payload, id: `${from}.${number}` });
    } else if (number > deliveredOf(state, from)) ctx.send(from, { type: "nack", from: deliveredOf(state, from) + 1 });
    for (const [place, ack] of acks.entries()) {
      const member = state.group[place] as NodeId;
      const known = deliveredOf(state, member);
      if (member !== ctx.self && member !== from && ack > known) ctx.send(member, { type: "nack", from: known + 1 });
    }
  }

  return {
    name: "ip-multicast",
    init(self, peers) {
      const group = [self, ...peers].sort((a, b) => a - b);
      return { group, next: 0, delivered: group.map(() => 0), sent: [] };
    },
    receive: {
      data: receive,
      nack(state, from, message, ctx) {
        for (const [number, payload] of state.sent.entries())
          if (number >= message.from) ctx.send(from, { type: "data", number, acks: [...state.delivered], payload });
      },
    },
    command: {
      send(state, { payload }, ctx) {
        const message = { number: state.next, acks: [...state.delivered], payload };
        ctx.broadcast({ type: "data", ...message });
        state.sent.push(payload);
        state.next += 1;
        receive(state, ctx.self, message, ctx);
      },
    },
    shapes: {
      message: {
        data: { number: natural, acks: list(natural, MAX_MEMBERS), payload: text(65_536) },
        nack: { from: natural },
      },
      command: { send: { payload: text(65_536) } },
    },
    source: "a lecture on multicast, after Coulouris et al. §15.4.2",
    assumes: ["no crashes", "losses that a later message reveals"],
    properties: [],
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
    view: ({ next }) => ({ role: next === 0 ? "listening" : `sent ${next}` }),
  };
}
