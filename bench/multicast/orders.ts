/** What the processes of `coterie bench multicast` are told, and what they answer. */
import type { ChannelOptions } from "../../src/cluster/services/channel-api.ts";

/** What one of the processes is: member `self` of as many as there are addresses. */
export interface Being {
  readonly self: number;
  /** For `join()`. */
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly multicast: { readonly group: string; readonly port: number; readonly interface: string };
  /** For the bare fan-out over `node:net` and `node:dgram`. */
  readonly barePorts: readonly number[];
}

/** What carries the messages: a channel, or a bare fan-out without order, repair or hand-shake. */
export type Way =
  | { readonly kind: "channel"; readonly name: string; readonly options: ChannelOptions }
  | { readonly kind: "net" | "net-batches" | "dgram" };

export type Ask =
  | { ask: "open"; way: Way }
  /** Sends messages for so long, if it is a sender; everybody counts what arrives. */
  | { ask: "load"; bytes: number; ms: number; sends: boolean }
  /** Answers once so many have arrived; bare datagrams get lost, so there it answers when no more come. */
  | { ask: "arrived"; total: number }
  /** From now on it notes how old what arrives from others is. */
  | { ask: "listen" }
  /** Sends one message every so often for so long. */
  | { ask: "pace"; bytes: number; ms: number; everyMs: number; sends: boolean }
  /** Answers once what all have sent at a pace has arrived, as with `arrived`. */
  | { ask: "ages"; total: number }
  | { ask: "close" };

/** What has arrived, and in which order: folded after each `MARK_EVERY` messages, and after the last one. */
export interface Sequence {
  readonly count: number;
  readonly marks: readonly number[];
  readonly order: number;
}

export const MARK_EVERY = 16;

export interface Answers {
  open: Record<never, never>;
  load: { sent: number };
  /** `ms`: from the beginning of the load to the last arrival; `cpuMs`: what the process has worked for it. */
  arrived: Sequence & { ms: number; cpuMs: number };
  listen: Record<never, never>;
  pace: { sent: number };
  ages: { ages: number[] };
  close: Record<never, never>;
}
