/**
 * What `coterie up` and the studio page say to each other. The page listens to `GET /api/feed` (server-sent events, each
 * one `FeedEvent` as JSON) and acts by `POST /api/act` (one `Act` as JSON; 200 `{}`, or 4xx `{ "error": sentence }`).
 */
import type { NodeId, View } from "../core/protocol.ts";
import type { Spans, Topology } from "../protocols/presentation.ts";
import type { TraceEntry } from "../trace/entry.ts";

export type FeedEvent =
  /** The first event of every connection: how things stand, and the last minute. `networks` ends with the present one. */
  | {
      readonly type: "snapshot";
      readonly cluster: ClusterPicture;
      readonly networks: readonly NetworkPeriod[];
      readonly entries: readonly TraceEntry[];
    }
  /** Something about the processes or the links changed. */
  | { readonly type: "cluster"; readonly cluster: ClusterPicture }
  /** New trace entries, in batches. Within one node they are in order; across nodes they may be late by a little. */
  | { readonly type: "trace"; readonly entries: readonly TraceEntry[] };

export interface ClusterPicture {
  readonly name: string;
  readonly protocol: string;
  /** The server's clock in milliseconds of the Unix epoch, so that a page with another clock can align itself. */
  readonly now: number;
  /** Whether `up` starts a dead process again by itself. */
  readonly restarts: boolean;
  /** The members run elsewhere: nothing here may start, kill or pause them. */
  readonly isAttached: boolean;
  /** Whether links can be cut, slowed down and made to lose messages. */
  readonly takesFaults: boolean;
  readonly nodes: readonly NodePicture[];
  readonly network: NetworkPicture;
  /** Since when the network is like that, by the server's clock. */
  readonly networkSince: number;
  /** The place of the ink of each message, by full names such as `election.answer`. */
  readonly inks: Readonly<Record<string, number>>;
  /** Which states of its nodes last and are drawn. */
  readonly spans: Spans;
  /** How things stand, in a sentence of the protocol's own; null where it has none that pictures tell. */
  readonly headline?: string | null;
  /** How its nodes stand to each other, and what the literature says that it costs; absent for what is not in the registry. */
  readonly presented?: Presented;
}

export interface Presented {
  readonly topology: Topology;
  /** The ids of the nodes in the order in which they stand: on a ring, clockwise. */
  readonly rows: readonly NodeId[];
  /** Short names of messages that carry what a node can have. */
  readonly carriers: readonly string[];
  /** What its family does: of it the messages are counted. */
  readonly work: "election" | "entry" | "multicast" | "decision" | null;
  readonly costs: readonly { readonly when: string; readonly count: number }[];
}

/** What the network was like from a moment on, until the next one. */
export interface NetworkPeriod {
  readonly since: number;
  readonly network: NetworkPicture;
}

export interface NodePicture {
  readonly id: NodeId;
  readonly pid: number | null;
  /** Where the other nodes reach it, `host:port`. */
  readonly address: string;
  /** The base URL of its admin pages. */
  readonly admin: string;
  readonly process: "starting" | "running" | "paused" | "exited";
  /** How the last process ended, in words such as "killed by SIGKILL". */
  readonly exit: string | null;
  /** The latest picture of its state; null before the first one and after an exit. */
  readonly view: View | null;
  /** How it lies, where it was started so. */
  readonly byzantine?: string;
  /** The commands that its protocol takes from outside, such as "election.call". */
  readonly commands: readonly string[];
}

export interface NetworkPicture {
  /** Links cut in that direction. A link cut both ways stands here twice. */
  readonly cuts: readonly (readonly [from: NodeId, to: NodeId])[];
  /** The probability that a message is dropped, 0 … 1. */
  readonly dropRate: number;
  /** Extra delay of each message, drawn between the two. */
  readonly delayMs: readonly [min: number, max: number];
}

export type Act =
  | { readonly type: "kill" | "restart" | "pause" | "resume"; readonly node: NodeId }
  /** Cuts or mends the link between two nodes, both ways. */
  | { readonly type: "cut" | "mend"; readonly nodes: readonly [NodeId, NodeId] }
  /** Cuts every link between different groups and mends those within. Who is in no group is alone. */
  | { readonly type: "split"; readonly groups: readonly (readonly NodeId[])[] }
  /** Mends every link and clears drops and delays. */
  | { readonly type: "heal" }
  | { readonly type: "link-conditions"; readonly dropRate: number; readonly delayMs: readonly [number, number] }
  /** Hands a command to a node's protocol, such as `election.call`. */
  | { readonly type: "command"; readonly node: NodeId; readonly command: string };
