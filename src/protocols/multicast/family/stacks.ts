/** Orders over their carriers: IP multicast, which can lose datagrams, or view synchrony. */
import type { MessageOf, Protocol, Vocabulary } from "../../../core/protocol.ts";
import type { Shape } from "../../../core/shape.ts";
import { causal } from "../causal.ts";
import { fifo } from "../fifo.ts";
import { type IpMulticastOptions, ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { isis } from "../isis.ts";
import { over } from "../parts/layers.ts";
import { causalTotalWithState, isisWithState } from "../parts/state-transfer/state-transfer.ts";
import type { ViewSynchronyOptions } from "../view-synchrony.ts";
import type { Order } from "./channels.ts";

interface CarrierOptions {
  multicast?: Partial<IpMulticastOptions>;
}

/**
 * Enables prompt acknowledgements, for orders that make a message stable once every member has it. With an agreed
 * order, a message is stable only once it has been delivered.
 */
const prompt = <O extends CarrierOptions>({ multicast, ...others }: O) => ({
  ...others,
  multicast: { promptAcks: true, ...multicast },
});

const overMulticast = <U extends Vocabulary>(upper: Protocol<U>, carrier?: Partial<IpMulticastOptions>) =>
  over(upper, (payload) => ipMulticast<MessageOf<U>>(carrier, payload));

/** The orders over IP multicast, for a group with fixed members. */
export const overDatagrams: Readonly<Record<Exclude<Order, "none">, (options?: CarrierOptions) => unknown>> = {
  fifo: (given = {}) => overMulticast(fifo(), prompt(given).multicast),
  causal: (given = {}) => overMulticast(causal(), prompt(given).multicast),
  total: (given = {}) => overMulticast(isis(), given.multicast),
  "causal-total": ({ multicast } = {}) => ({
    ...over(isis(), <P>(payload: Shape<P>) => overMulticast(causal<P>({}, payload), multicast)),
    name: "causal-total",
  }),
};

/** The total orders over view synchrony, with state transfer. Members exchange messages directly. */
export const withState: Readonly<Record<"total" | "causal-total", (options?: ViewSynchronyOptions) => unknown>> = {
  total: isisWithState,
  "causal-total": causalTotalWithState,
};
