/** Rules for the options of a member's calls. */
import { UsageError } from "../../core/errors.ts";
import type { ElectionOptions } from "./api.ts";
import type { ChannelOptions, Order } from "./channel-api.ts";
import type { Rules } from "./known-options.ts";
import * as may from "./known-options.ts";

export const signalRule: Rules<{ signal?: AbortSignal }> = { signal: may.signal };
export const electionRules: Rules<ElectionOptions> = { metadata: may.anything };
export const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];
export const channelRules: Rules<ChannelOptions> = {
  order: may.needed(may.oneOf(...orders)),
  transport: may.oneOf("tcp", "udp", "log"),
};

export const noMulticast = (name: string): UsageError =>
  new UsageError(
    "no-multicast",
    `expected join() to be given multicast, since the channel "${name}" is to use udp: say group, port and interface, or leave out transport`,
  );
