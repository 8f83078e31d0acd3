/**
 * Consensus from total order: each node multicasts its value and decides the first value it delivers, which is the same
 * everywhere.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { Protocol } from "../../../src/core/protocol.ts";
import { type Isis, isis } from "../../../src/protocols/multicast/isis.ts";
import { consensusProperties, type Deciding, ofAReduction, undecided, validity, value } from "./deciding.ts";

type First = {
  state: Deciding;
  command: { type: "propose"; value: string } | { type: "deliver"; value: string };
  event: { type: "proposed"; value: string } | { type: "decided"; value: string };
};

const first: Protocol<First> = {
  ...ofAReduction,
  name: "first-delivered",
  init: undecided,
  command: {
    propose(state, { value: own }, ctx) {
      if (state.proposed !== null) return;
      state.proposed = own;
      ctx.emit({ type: "proposed", value: own });
    },
    deliver(state, { value: delivered }, ctx) {
      if (state.decided !== null) return; // This is not the first delivery.
      state.decided = delivered;
      ctx.emit({ type: "decided", value: delivered });
    },
  },
  shapes: { command: { propose: { value }, deliver: { value } } },
  properties: [...consensusProperties<First>(), validity],
};

/** @param order a multicast with total order */
export const consensusFromTotalOrder = (order: Protocol<Isis> = isis()) =>
  assemble<{ consensus: First; order: Isis }>(
    "consensus-from-total-order",
    { consensus: first, order },
    {
      consensus: { proposed: (event, give) => give("order", { type: "send", payload: event.value }) },
      order: { delivered: ({ payload }, give) => give("consensus", { type: "deliver", value: payload }) },
    },
    { face: "consensus" },
  );
