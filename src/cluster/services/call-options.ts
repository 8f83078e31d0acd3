/** What the calls of a member take. */
import { UsageError } from "../../core/errors.ts";
import type { ElectionOptions, MutexOptions } from "./api.ts";
import type { ChannelOptions } from "./channel-api.ts";
import { orders } from "./channel-stacks.ts";
import type { Rules } from "./known-options.ts";
import * as may from "./known-options.ts";

export const signalRule: Rules<{ signal?: AbortSignal }> = { signal: may.signal };
export const mutexRules: Rules<MutexOptions> = { algorithm: may.text, options: may.plainData };
export const electionRules: Rules<ElectionOptions> = { ...mutexRules, rank: may.finite, metadata: may.anything };
export const channelRules: Rules<ChannelOptions> = {
  order: may.needed(may.oneOf(...orders)),
  reliable: may.flag,
  transport: may.oneOf("tcp", "udp", "log"),
};

export const noMulticast = (name: string): UsageError =>
  new UsageError(
    "no-multicast",
    `expected join() to be given multicast, since the channel "${name}" is to use udp: say group, port and interface, or leave out transport`,
  );
