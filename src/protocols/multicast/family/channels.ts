/**
 * The protocol stacks for the channels of `join()`: every order, over direct messages between members, in views agreed
 * through the log.
 */
import type { Protocol, Vocabulary } from "../../../core/protocol.ts";
import { text } from "../../../core/shape.ts";
import { heartbeat, watching } from "../../membership/heartbeat.ts";
import { withService } from "../../service/coordination-service/coordination-service.ts";
import { type AnyMaker, joined, type System } from "../../system.ts";
import { logWires } from "../log-multicast.ts";
import { ordersOver, type ViewCarrier } from "../parts/flush.ts";
import { MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { type LogViewSynchronyOptions, logViewSynchrony } from "../parts/log-views/log-view-synchrony.ts";
import { stateTransfer } from "../parts/state-transfer/state-transfer.ts";

/**
 * The order of deliveries. `none` guarantees no order, `fifo` preserves each sender's order, `causal` preserves
 * causality, and `total` is the same at all nodes.
 */
export type Order = "none" | "fifo" | "causal" | "total" | "causal-total";

/** A channel algorithm as members run it, with its name in messages. */
export interface ChannelStack {
  readonly algorithm: string;
  readonly make: (options?: LogViewSynchronyOptions) => Protocol<Vocabulary>;
}

const carrier = logViewSynchrony as unknown as ViewCarrier<LogViewSynchronyOptions>;
const anyText = text(MAX_PAYLOAD_BYTES);

/**
 * Enables prompt acknowledgements, for orders that make a message stable once every member has it. With an agreed
 * order, a message is stable only once it has been delivered.
 */
const prompt = ({ multicast, ...others }: LogViewSynchronyOptions): LogViewSynchronyOptions => ({
  ...others,
  multicast: { promptAcks: true, ...multicast },
});

const stack = (algorithm: string, make: (options: LogViewSynchronyOptions) => unknown): ChannelStack => ({
  algorithm,
  make: (options = {}) => make(options) as Protocol<Vocabulary>,
});

/** The stack for each order, over messages between members. */
export const channelStacks: Readonly<Record<Order, ChannelStack>> = {
  none: stack("log-view-synchrony", (given) => carrier(prompt(given), anyText)),
  fifo: stack("fifo over log-view-synchrony", (given) => ordersOver(carrier, prompt(given)).fifo(anyText)),
  causal: stack("causal over log-view-synchrony", (given) => ordersOver(carrier, prompt(given)).causal(anyText)),
  total: stack("isis over log-view-synchrony", (given) =>
    stateTransfer((entry) => ordersOver(carrier, given).total(entry), anyText),
  ),
  "causal-total": stack("causal-total over log-view-synchrony", (given) =>
    stateTransfer((entry) => ordersOver(carrier, given).causalTotal(entry), anyText),
  ),
};

/** Creates the system for a channel, with the service and a failure detector. @param log another form of Raft to use */
export const channelSystem = (order: Order, log?: AnyMaker): System => ({
  ...withService(
    { detector: heartbeat, multicast: channelStacks[order].make },
    joined(logWires, watching("multicast")),
    log,
  ),
  algorithm: "multicast",
});
