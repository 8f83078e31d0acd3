/**
 * FIFO multicast as presented in a lecture: S and R both start at 0, and a message carries S before S is incremented
 * and is delivered when S = R + 1. Each sender's first message carries 0 and is never delivered. The variant is kept
 * because the checker refutes it. The correct form is in `../fifo.ts`.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, text } from "../../../core/shape.ts";
import { requireNoOptions } from "../../options.ts";
import { heldIds, holdBack, MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import type { Multicast } from "../parts/layers.ts";

type FifoAsLectured = {
  state: {
    /** S: the number of the next message. */
    sent: number;
    /** All nodes, including this one, in ascending order. */
    members: NodeId[];
    /** R for each member, in the order of `members`. */
    delivered: number[];
    heldBack: Message[];
  };
  message: { type: "multicast"; number: number; payload: string };
  command: Multicast["command"];
  event: Multicast["event"];
};

type Message = { from: NodeId; number: number; payload: string };
type State = FifoAsLectured["state"];
type Ctx = Context<FifoAsLectured>;

/**
 * Creates FIFO multicast as presented in a lecture.
 * @throws UsageError if any option is given, because there are none.
 */
export function fifoAsLectured(given?: Record<never, never>): Protocol<FifoAsLectured> {
  requireNoOptions("fifo", given);

  const isNext = ({ members, delivered }: State, { from, number }: Message): boolean =>
    number === (delivered[members.indexOf(from)] ?? 0) + 1;

  /** Handles all messages, including the sender's own. */
  function receive(state: State, message: Message, ctx: Ctx): void {
    holdBack(
      state.heldBack,
      message,
      (held) => isNext(state, held),
      ({ from, number, payload }) => {
        state.delivered[state.members.indexOf(from)] = number;
        ctx.emit({ type: "delivered", from, payload, id: `${from}.${number}` });
      },
    );
  }

  return {
    name: "fifo",
    init(self, peers) {
      const members = [self, ...peers].sort((a, b) => a - b);
      return { sent: 0, members, delivered: members.map(() => 0), heldBack: [] };
    },
    receive: {
      multicast: (state, from, { number, payload }, ctx) => receive(state, { from, number, payload }, ctx),
    },
    command: {
      send(state, { payload }, ctx) {
        const number = state.sent;
        ctx.broadcast({ type: "multicast", number, payload });
        state.sent += 1;
        receive(state, { from: ctx.self, number, payload }, ctx);
      },
    },
    shapes: {
      message: { multicast: { number: natural, payload: text(MAX_PAYLOAD_BYTES) } },
      command: { send: { payload: text(MAX_PAYLOAD_BYTES) } },
    },
    source: "a lecture on Coulouris et al. §15.4.3",
    assumes: ["no crashes", "reliable links", "one closed group"],
    properties: [],
    costs: [],
    view: ({ heldBack }) => ({
      role: heldBack.length > 0 ? "holding back" : "up to date",
      held: heldIds(heldBack, ({ from, number }) => `${from}.${number}`),
    }),
  };
}
