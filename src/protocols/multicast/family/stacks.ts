/** The orders over what carries their messages: IP multicast, whose datagrams get lost, or views, in which members come and go. */
import type { MessageOf, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { watching } from "../../membership/family/watching.ts";
import { heartbeat } from "../../membership/heartbeat.ts";
import { withService } from "../../service/coordination-service/coordination-service.ts";
import { type AnyMaker, joined, type System } from "../../system.ts";
import { causal } from "../causal.ts";
import { fifo } from "../fifo.ts";
import { type IpMulticastOptions, ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { isis } from "../isis.ts";
import { logWires } from "../log-multicast.ts";
import { type LogViewSynchronyOptions, logViewSynchrony } from "../log-view-synchrony.ts";
import { flushCausal, flushFifo, type ViewCarrier } from "../parts/flush.ts";
import { MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { over } from "../parts/over.ts";
import { causalTotalWithState, isisWithState } from "../parts/state-transfer/state-transfer.ts";
import type { ViewSynchronyOptions } from "../view-synchrony.ts";

/** `none` and `fifo` keep each sender's order at most; `causal` what depends on what; `total` is the same everywhere. */
export type Order = "none" | "fifo" | "causal" | "total" | "causal-total";

interface CarrierOptions {
  multicast?: Partial<IpMulticastOptions>;
}

/** Where a message is settled once every member has it. With an agreed order it is settled when it has been delivered. */
const prompt = <O extends CarrierOptions>({ multicast, ...others }: O) => ({
  ...others,
  multicast: { promptAcks: true, ...multicast },
});

const overMulticast = <U extends Vocabulary>(upper: Protocol<U>, carrier?: Partial<IpMulticastOptions>) =>
  over(upper, (payload) => ipMulticast<MessageOf<U>>(carrier, payload));

/** Over IP multicast, in a group that stays as it is. */
export const overDatagrams: Readonly<Record<Exclude<Order, "none">, (options?: CarrierOptions) => unknown>> = {
  fifo: (given = {}) => overMulticast(fifo(), prompt(given).multicast),
  causal: (given = {}) => overMulticast(causal(), prompt(given).multicast),
  total: (given = {}) => overMulticast(isis(), given.multicast),
  "causal-total": ({ multicast } = {}) => ({
    ...over(isis(), <P>(payload: Shape<P>) => overMulticast(causal<P>({}, payload), multicast)),
    name: "causal-total",
  }),
};

/** Over view synchrony by messages between the members, with the state of the group. */
export const withState: Readonly<Record<"total" | "causal-total", (options?: ViewSynchronyOptions) => unknown>> = {
  total: isisWithState,
  "causal-total": causalTotalWithState,
};

/** An algorithm of channels, as members run it: on the wire it has this name. */
export interface ChannelStack {
  readonly algorithm: string;
  readonly make: (options?: LogViewSynchronyOptions) => Protocol<Vocabulary>;
}

const onLog = logViewSynchrony as unknown as ViewCarrier;
const anyText = text(MAX_PAYLOAD_BYTES);

const stack = (algorithm: string, make: (options: never) => unknown): ChannelStack => ({
  algorithm,
  make: (options = {}) => make(options as never) as Protocol<Vocabulary>,
});

/** In views that are entries of the log of a coordination service. */
export const channelStacks: Readonly<Record<Order, ChannelStack>> = {
  none: stack("log-view-synchrony", (given) => onLog(prompt(given), anyText)),
  fifo: stack("fifo over log-view-synchrony", (given) => flushFifo(prompt(given), anyText, onLog)),
  causal: stack("causal over log-view-synchrony", (given) => flushCausal(prompt(given), anyText, onLog)),
  total: stack("isis over log-view-synchrony", (given) => isisWithState(given, anyText, onLog)),
  "causal-total": stack("causal-total over log-view-synchrony", (given) => causalTotalWithState(given, anyText, onLog)),
};

/** The same with the service, and a failure detector. @param log may be another form of Raft. */
export const channelSystem = (order: Order, log?: AnyMaker): System => ({
  ...withService(
    { detector: heartbeat, multicast: channelStacks[order].make as AnyMaker },
    joined(logWires, watching("multicast")),
    log,
  ),
  algorithm: "multicast",
});
