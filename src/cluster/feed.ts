/**
 * The messages between `coterie up` and the studio page. The page listens to `GET /api/feed` (server-sent events, each one
 * `FeedEvent` as JSON) and acts by `POST /api/act` (one `Act` as JSON; 200 `{}`, or 4xx `{ "error": sentence }`).
 */
import type { NodeId, View } from "../core/protocol.ts";
import type { Spans, Topology } from "../protocols/presentation.ts";
import type { TraceEntry } from "../trace/entry.ts";

export type FeedEvent =
  /** The first event of every connection: the present state, and the last minute. `networks` ends with the present one. */
  | {
      readonly type: "snapshot";
      readonly cluster: ClusterPicture;
      readonly networks: readonly NetworkPeriod[];
      readonly entries: readonly TraceEntry[];
    }
  /** Something about the processes or the links changed. */
  | { readonly type: "cluster"; readonly cluster: ClusterPicture }
  /** New trace entries, in batches. Entries of one node are in order; entries of different nodes may be slightly late. */
  | { readonly type: "trace"; readonly entries: readonly TraceEntry[] };

export interface ClusterPicture {
  readonly name: string;
  readonly protocol: string;
  /** The server's clock in milliseconds of the Unix epoch, so that a page with another clock can align itself. */
  readonly now: number;
  /** Whether `up` restarts crashed processes. */
  readonly restarts: boolean;
  /** The members run elsewhere: the studio cannot start, kill or pause them. */
  readonly isAttached: boolean;
  /** Whether links can be cut, slowed down and made to lose messages. */
  readonly takesFaults: boolean;
  readonly nodes: readonly NodePicture[];
  readonly network: NetworkPicture;
  /** When this state of the network began, by the server's clock. */
  readonly networkSince: number;
  /** The index of each message's color, by full names such as `election.answer`. */
  readonly inks: Readonly<Record<string, number>>;
  /** Which states of its nodes are drawn as spans. */
  readonly spans: Spans;
  /** The protocol's own summary of the present state; null if it has none that can be computed from pictures. */
  readonly headline?: string | null;
  /** How its nodes are arranged, and its published message costs; absent for protocols that are not in the registry. */
  readonly presented?: Presented;
}

export interface Presented {
  readonly topology: Topology;
  /** The ids of the nodes in their order: on a ring, clockwise. */
  readonly rows: readonly NodeId[];
  /** Short names of messages that carry an object which a node can hold. */
  readonly carriers: readonly string[];
  /** The unit of its family's work, for which messages are counted. */
  readonly work: "election" | "entry" | "multicast" | "decision" | null;
  readonly costs: readonly { readonly when: string; readonly count: number }[];
}

/** The state of the network from a moment on, until the next one. */
export interface NetworkPeriod {
  readonly since: number;
  readonly network: NetworkPicture;
}

export interface NodePicture {
  readonly id: NodeId;
  readonly pid: number | null;
  /** The address at which the other nodes reach it, `host:port`. */
  readonly address: string;
  /** The base URL of its admin pages. */
  readonly admin: string;
  readonly process: "starting" | "running" | "paused" | "exited";
  /** How the last process ended, such as "killed by SIGKILL". */
  readonly exit: string | null;
  /** The latest view of its state; null before the first one and after an exit. */
  readonly view: View | null;
  /** Its Byzantine behavior, if it was started with one. */
  readonly byzantine?: string;
  /** The commands that its protocol accepts, such as "election.call". */
  readonly commands: readonly string[];
}

export interface NetworkPicture {
  /** Links cut in that direction. A link cut both ways is listed twice. */
  readonly cuts: readonly (readonly [from: NodeId, to: NodeId])[];
  /** The probability that a message is dropped, 0 … 1. */
  readonly dropRate: number;
  /** The range of the extra delay of each message. */
  readonly delayMs: readonly [min: number, max: number];
}

export type Act =
  | { readonly type: "kill" | "restart" | "pause" | "resume"; readonly node: NodeId }
  /** Cuts or mends the link between two nodes, both ways. */
  | { readonly type: "cut" | "mend"; readonly nodes: readonly [NodeId, NodeId] }
  /** Cuts every link between different groups and mends those within. A node in no group is alone. */
  | { readonly type: "split"; readonly groups: readonly (readonly NodeId[])[] }
  /** Mends every link and clears drops and delays. */
  | { readonly type: "heal" }
  | { readonly type: "link-conditions"; readonly dropRate: number; readonly delayMs: readonly [number, number] }
  /** Sends a command to a node's protocol, such as `election.call`. */
  | { readonly type: "command"; readonly node: NodeId; readonly command: string };
