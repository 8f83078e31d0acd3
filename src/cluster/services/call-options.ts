/** Rules for the options of a member's calls. */
import { UsageError } from "../../core/errors.ts";
import type { ElectionOptions } from "./api.ts";
import type { ChannelOptions, Order } from "./channel-api.ts";
import type { Rules } from "./known-options.ts";
import * as may from "./known-options.ts";

/** The rules for options that consist only of a signal. */
export const signalRule: Rules<{ signal?: AbortSignal }> = { signal: may.signal };
export const electionRules: Rules<ElectionOptions> = { metadata: may.anything };
/** The delivery orders of a channel. */
export const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];
/** The rules for `ChannelOptions`. */
export const channelRules: Rules<ChannelOptions> = {
  order: may.needed(may.oneOf(...orders)),
  transport: may.oneOf("tcp", "udp", "log"),
};

/** Returns the error for a UDP channel if the `multicast` option is missing. */
export const noMulticast = (name: string): UsageError =>
  new UsageError(
    "no-multicast",
    `expected multicast of join() to be set, since the channel "${name}" uses udp: set its group, port and interface, or omit transport`,
  );
