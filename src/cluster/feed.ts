/**
 * The messages between `coterie up` and the studio page. The page listens to `GET /api/feed` (server-sent events, each
 * a `FeedEvent` as JSON) and sends actions to `POST /api/act` (an `Act` as JSON; the response is 200 with `{}`, or 4xx
 * with `{ "error": sentence }`).
 */
import type { NodeId, View } from "../core/protocol.ts";
import type { Spans, Topology } from "../protocols/presentation.ts";
import type { TraceEntry } from "../trace/entry.ts";

/** An event from the server to the page. */
export type FeedEvent =
  /**
   * The first event of every connection: the current state and the last minute. The last element of `networks` is the
   * current network.
   */
  | {
      readonly type: "snapshot";
      readonly cluster: ClusterPicture;
      readonly networks: readonly NetworkPeriod[];
      readonly entries: readonly TraceEntry[];
    }
  /** A process or link has changed. */
  | { readonly type: "cluster"; readonly cluster: ClusterPicture }
  /**
   * New trace entries, in batches. Entries from the same node are in order. Entries from different nodes may be
   * slightly out of order.
   */
  | { readonly type: "trace"; readonly entries: readonly TraceEntry[] };

/** The state of a cluster as the page shows it. */
export interface ClusterPicture {
  readonly name: string;
  readonly protocol: string;
  /** The server's clock in milliseconds since the Unix epoch. A page whose clock differs adjusts to it. */
  readonly now: number;
  /** Whether `up` restarts crashed processes. */
  readonly restarts: boolean;
  /** Whether the members run elsewhere. If so, the studio cannot start, kill or pause them. */
  readonly isAttached: boolean;
  /** Whether links can be cut, slowed down and made to lose messages. */
  readonly takesFaults: boolean;
  readonly nodes: readonly NodePicture[];
  readonly network: NetworkPicture;
  /** When the current state of the network began, according to the server's clock. */
  readonly networkSince: number;
  /** The index of each message's color, keyed by the message's full name, such as `election.answer`. */
  readonly inks: Readonly<Record<string, number>>;
  /** The node states to draw as spans. */
  readonly spans: Spans;
  /**
   * The protocol's own summary of the current state. Null if the protocol has none, or if it cannot be computed from
   * the views.
   */
  readonly headline?: string | null;
  /** How the nodes are arranged, and the published message costs. Absent for protocols that are not in the registry. */
  readonly presented?: Presented;
}

/** How the page presents runs of the protocol. */
export interface Presented {
  readonly topology: Topology;
  /** The node ids in display order; on a ring, clockwise. */
  readonly rows: readonly NodeId[];
  /** Short names of the messages that carry an object that a node can hold, such as a token. */
  readonly carriers: readonly string[];
  /** The protocol family's unit of work. Messages are counted per unit. */
  readonly work: "election" | "entry" | "multicast" | "decision" | null;
  readonly costs: readonly { readonly when: string; readonly count: number }[];
}

/** A state of the network, which lasts until the next one begins. */
export interface NetworkPeriod {
  readonly since: number;
  readonly network: NetworkPicture;
}

/** The state of a node as the page shows it. */
export interface NodePicture {
  readonly id: NodeId;
  readonly pid: number | null;
  /** The address at which the other nodes reach this one, `host:port`. */
  readonly address: string;
  /** The base URL of the node's admin pages. */
  readonly admin: string;
  readonly process: "starting" | "running" | "paused" | "exited";
  /** How the node's last process ended, such as "killed by SIGKILL". */
  readonly exit: string | null;
  /** The latest view of the node's state. Null before the first view and after the process exits. */
  readonly view: View | null;
  /** The node's Byzantine behavior, if it was started with one. */
  readonly byzantine?: string;
  /** The commands that the node's protocol accepts, such as "election.call". */
  readonly commands: readonly string[];
}

/** Faults of the network between the nodes. */
export interface NetworkPicture {
  /** Links that are cut, each in one direction. A link that is cut in both directions is listed twice. */
  readonly cuts: readonly (readonly [from: NodeId, to: NodeId])[];
  /** The probability that a message is dropped, from 0 to 1. */
  readonly dropRate: number;
  /** The range of the extra delay added to each message. */
  readonly delayMs: readonly [min: number, max: number];
}

/** A request from the page. */
export type Act =
  | { readonly type: "kill" | "restart" | "pause" | "resume"; readonly node: NodeId }
  /** Cuts or mends the link between two nodes, in both directions. */
  | { readonly type: "cut" | "mend"; readonly nodes: readonly [NodeId, NodeId] }
  /**
   * Cuts every link between different groups and mends the links within each group. A node that is in no group is
   * isolated.
   */
  | { readonly type: "split"; readonly groups: readonly (readonly NodeId[])[] }
  /** Mends every link and clears drop rates and delays. */
  | { readonly type: "heal" }
  | { readonly type: "link-conditions"; readonly dropRate: number; readonly delayMs: readonly [number, number] }
  /** Sends a command to a node's protocol, such as `election.call`. */
  | { readonly type: "command"; readonly node: NodeId; readonly command: string };
