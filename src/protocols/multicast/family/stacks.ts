/** Orders over their carriers: IP multicast, which loses datagrams, or view synchrony. */
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
 * For orders where a message is stable once every member has it. With an agreed order, it is stable once it has been
 * delivered.
 */
const prompt = <O extends CarrierOptions>({ multicast, ...others }: O) => ({
  ...others,
  multicast: { promptAcks: true, ...multicast },
});

const overMulticast = <U extends Vocabulary>(upper: Protocol<U>, carrier?: Partial<IpMulticastOptions>) =>
  over(upper, (payload) => ipMulticast<MessageOf<U>>(carrier, payload));

/** Over IP multicast, in a group with fixed members. */
export const overDatagrams: Readonly<Record<Exclude<Order, "none">, (options?: CarrierOptions) => unknown>> = {
  fifo: (given = {}) => overMulticast(fifo(), prompt(given).multicast),
  causal: (given = {}) => overMulticast(causal(), prompt(given).multicast),
  total: (given = {}) => overMulticast(isis(), given.multicast),
  "causal-total": ({ multicast } = {}) => ({
    ...over(isis(), <P>(payload: Shape<P>) => overMulticast(causal<P>({}, payload), multicast)),
    name: "causal-total",
  }),
};

/** Over view synchrony by messages between the members, with state transfer. */
export const withState: Readonly<Record<"total" | "causal-total", (options?: ViewSynchronyOptions) => unknown>> = {
  total: isisWithState,
  "causal-total": causalTotalWithState,
};
