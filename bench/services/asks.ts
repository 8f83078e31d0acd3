/** What the processes of `coterie bench services` are asked, what they answer, and what they note by themselves. */
import type { ChannelOptions } from "../../src/cluster/services/channel-api.ts";
import type { Timing } from "../../src/cluster/services/timing.ts";
import type { Throughput, Work } from "../cluster/subject.ts";

/** What one of the processes is: a member, with the channel `ROOM` open from its start. */
export interface Being {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly timing: Timing;
}

/** The channel whose views are looked at. */
export const ROOM = "room";

/** By its order: over links, but for the last. */
export const channelKinds = ["none", "fifo", "causal", "total", "causal-total", "total, on the log"] as const;
export type ChannelKind = (typeof channelKinds)[number];

export const optionsOf = (kind: ChannelKind): ChannelOptions =>
  kind === "total, on the log" ? { order: "total", transport: "log" } : { order: kind };

export type Ask =
  | { ask: "standing" }
  /** So many clients take one lock in turn and give it back, for so long. */
  | { ask: "pairs"; clients: number; ms: number }
  | { ask: "open" | "close"; name: string; kind: ChannelKind }
  /** Sends for so long, and waits for each message before the next one is sent. */
  | { ask: "send-one-by-one"; name: string; kind: ChannelKind; ms: number }
  /** Sends for so long, with many messages on their way. */
  | { ask: "send-many"; name: string; kind: ChannelKind; ms: number }
  /** Opens a channel that is nowhere yet, and sends one message. */
  | { ask: "send-first"; name: string; kind: ChannelKind }
  | { ask: "campaign" | "want" | "resign" | "give-back"; name: string }
  /** Whether this member has the leadership and the lock of that name without a break. */
  | { ask: "tenures"; name: string }
  /** Takes a lock and gives it back again and again, until it is asked for the longest time between two grants. */
  | { ask: "begin-turns" | "end-turns"; name: string }
  /** So many clients write to the shared map, read from it, or take one lock of the replicated log in turn, for so long. */
  | { ask: "load"; work: Exclude<Work, "watch">; inFlight: number; ms: number }
  /** Watches one key of the shared map, until so many writes have come. */
  | { ask: "begin-watch" }
  | { ask: "end-watch"; count: number }
  /** Writes to that key for so long, one write after the other. */
  | { ask: "write-watched"; ms: number }
  /** One write to the shared map; whether it was acknowledged in time. */
  | { ask: "write"; timeoutMs: number }
  | { ask: "leave" };

export interface Standing {
  readonly reachable: number;
  /** The leader of the replicated log. */
  readonly leader: number | null;
  /** Of the channel `ROOM`. */
  readonly view: number | null;
  readonly viewMembers: readonly number[];
  readonly isInView: boolean;
}

export interface Answers {
  standing: Standing;
  pairs: { pairs: number };
  open: null;
  close: null;
  "send-one-by-one": { tookMs: number[] };
  "send-many": { perSecond: number };
  "send-first": { tookMs: number };
  campaign: null;
  want: null;
  resign: null;
  "give-back": null;
  tenures: { leads: boolean; holds: boolean };
  "begin-turns": null;
  "end-turns": { longestGapMs: number };
  load: Throughput;
  "begin-watch": null;
  /** On the clock that all processes of the machine share, one of each write. */
  "end-watch": { arrivedAt: number[] };
  "write-watched": { beganAt: number[] };
  write: { isAccepted: boolean };
  leave: { tookMs: number };
}

/** `atMs`: on the clock that all processes of the machine share. */
export type Note =
  | { readonly note: "leads" | "holds"; readonly name: string; readonly atMs: number }
  | { readonly note: "view"; readonly members: readonly number[]; readonly atMs: number };

export const sharedNowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
