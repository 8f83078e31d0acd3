/**
 * The API of `join()`: a member of a cluster, its elections, its locks and its channels. Guarantees: docs/guide/guarantees.md and
 * docs/guide/channels.md.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { PeerStatus } from "../../runtime/admin-pages.ts";
import type { Logger } from "../../runtime/log.ts";
import type { MetricRegistry } from "../../runtime/metric-table.ts";
import type { Standing } from "../../runtime/transport/identity.ts";
import type { Limits } from "../../runtime/transport/limits.ts";
import type { UdpPlace } from "../../runtime/transport/udp-place.ts";
import type { Channel, ChannelOptions, ChannelStatus } from "./channel-api.ts";
import type { ClusterMembers } from "./cluster-api.ts";
import type { StateApi, StateStatus } from "./state/state-api.ts";
import type { AcquireOptions, Grant, Tenure } from "./tenure-api.ts";
import type { Timing } from "./timing.ts";

export type { AcquireOptions, Grant, Tenure };

export interface JoinOptions {
  /** This member's id, one of `members`. */
  readonly id: NodeId;
  /** Every member with the address at which the others reach it, `host:port`. The same for all members. Host names are looked up before each connection. */
  readonly members: Readonly<Record<NodeId, string>>;
  /** `host:port` that this member binds, such as `0.0.0.0:7101` in a container. Default: its own address among `members`. */
  readonly listen?: string | undefined;
  /**
   * This member joins a cluster that others have founded, and that has it on its list: call `member.cluster.add()` or `coterie member add`.
   * `members` then lists itself and the members that it connects to first. No effect once its journal knows a cluster. Default: false,
   * `members` found a cluster together.
   */
  readonly existing?: boolean | undefined;
  /** The folder of this member's journal, and of no other member's; `{id}` is replaced by the id. */
  readonly dataDir: string;
  /** Members of another cluster are refused. Default `coterie`. */
  readonly cluster?: string | undefined;
  /** PEM files, `{id}` in a path is replaced by the id; `"off"` if the network is trusted. Required off loopback. */
  readonly tls?: "off" | { readonly ca: string; readonly cert: string; readonly key: string } | undefined;
  readonly limits?: Partial<ServiceLimits & Limits> | undefined;
  /** Receives log lines: `console`, a logger with `info`, `warn` and `error`, or the result of `createLog()`. Default: warnings and errors go to stderr. */
  readonly log?: Logger | undefined;
  /**
   * `host:port` for the admin pages, on loopback: `/status`, `/metrics`, `/healthz`, `/readyz`, and elections and locks for
   * other programs of this machine. Off loopback: `AdminOptions`. Default: none.
   */
  readonly admin?: string | AdminOptions | undefined;
  /** `host:port` where clients (processes that are not members) are served, on loopback. Off loopback: `ClientsOptions`. Default: none. */
  readonly clients?: string | ClientsOptions | undefined;
  /** `host:port` where etcd's API v3 is served over gRPC, on loopback: docs/guide/etcd-api.md. Default: none. */
  readonly etcd?: string | undefined;
  /**
   * A prom-client `Registry` that contains the member's metrics until it leaves; members may not share one. docs/reference/metrics.md lists the metrics. Default: only
   * `/metrics` on the admin address shows them.
   */
  readonly registry?: MetricRegistry | undefined;
  /** Group, port and interface of channels with `transport: "udp"`: the same group and port for all members. */
  readonly multicast?: MulticastPlace | undefined;
  /**
   * How long a member may be paused and keep its locks and leaderships, the same for all members: `fast` 0.2 s, `default` 4 s, `patient`
   * 8 s. Locks of a crashed member are released a little later. docs/operate/timing.md lists the costs.
   */
  readonly timing?: Timing | undefined;
  /** Aborted: the member leaves; before it has joined, `join()` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** For tests and demonstrations: `PUT /faults` on the admin address drops, delays and cuts this member's messages. */
  readonly faultInjector?: boolean | undefined;
}

/** Address, roles and certificates for clients (processes that are not members); docs/guide/clients.md. */
export interface ClientsOptions {
  /** `host:port` for HTTP and WebSocket. Off loopback `roles` and `tls` are required. */
  readonly listen: string;
  /**
   * The address at which clients reach this member, such as `https://node-1.example.org:7300`. Members send the addresses of all members
   * to their clients. Default: `listen`, or if that is all interfaces, the host at which members reach it.
   */
  readonly url?: string | undefined;
  /** A JSON file with the hashes of tokens, the names in certificates, and the role of each; `{id}` is replaced by the id. Default, on loopback: every client may do everything. */
  readonly roles?: string | undefined;
  /** PEM files, `{id}` in a path is replaced by the id; with `ca`, clients may show a certificate of that authority. `"off"` if the network is trusted. */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /** Web pages of these origins may call, such as `https://console.example.org`, in addition to pages of the same address. */
  readonly origins?: readonly string[] | undefined;
}

export interface AdminOptions {
  /** `host:port`. Off loopback the pages are read-only. */
  readonly address: string;
  /** PEM files, `{id}` in a path is replaced by the id; with `ca`, callers must show a certificate of that authority. `"off"` if the network is trusted. Required off loopback. */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /** Only `/status`, `/metrics`, `/healthz` and `/readyz`, which do not act on the member. Default: true off loopback. */
  readonly readOnly?: boolean | undefined;
}

export type MulticastPlace = Omit<UdpPlace, "tls">;

export interface ServiceLimits {
  /** Elections in use in this process, and as many channels. Default 10,000. */
  readonly maxInstances: number;
  /** Calls of this process that wait for one lock, and messages that wait to be sent on one channel. Default 10,000. */
  readonly maxWaiters: number;
}

/** One member of a cluster, in this process. */
export interface Member extends StateApi, AsyncDisposable {
  readonly id: NodeId;
  /** The base URL of the admin pages; null if there are none. */
  readonly admin: string | null;
  /** The list of members, and changes of it. */
  readonly cluster: ClusterMembers;
  /** The base URL for clients (processes that are not members); null if they are not served. */
  readonly clients: string | null;
  /** The base URL of etcd's API; null if it is not served. */
  readonly etcd: string | null;
  /** Aborted when this member begins to leave, or fails. The reason is a `CoordinationError`. */
  readonly signal: AbortSignal;

  /**
   * The election of that name: one leader at a time among the members that campaign in it.
   *
   * @example
   * await member.election("nightly-report").lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws UsageError for an invalid name or option.
   */
  election<M = unknown>(name: string, options?: ElectionOptions<M>): Election<M>;

  /**
   * The lock of that name: one holder at a time among all members, and among all callers in this process.
   *
   * @example
   * const lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
   * try {
   *   await charge({ token: lock.token, signal: lock.signal });
   * } finally {
   *   await lock.release();
   * }
   * @throws UsageError for an invalid name or option.
   */
  mutex(name: string): Mutex;

  /**
   * The channel of that name: a message of any member is delivered to all members that have the channel open.
   *
   * @example
   * const room = member.channel<{ text: string }>("room", { order: "causal" });
   * await room.send({ text: "hello" });
   * for await (const { from, payload } of room) console.log(from, payload.text);
   * @throws UsageError for an invalid name or option, `other-setting` if this process has the channel open with other options.
   */
  channel<T = unknown>(name: string, options: ChannelOptions): Channel<T>;

  /**
   * Resolves once a lock or an election is possible: this member reaches a majority and knows the leader of the log.
   *
   * @throws CoordinationError `ready-timeout`, whose `phase` names the obstacle (`no-majority`, `no-log-leader`),
   * `ready-aborted`, `member-left` or `member-failed`.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /** Events of this member, from now on, until it leaves; rejects if the member fails. A slow reader loses the oldest events, and `dropped` reports how many. */
  events(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<MemberEvent>;

  /** The state of this member, as plain data. */
  status(): MemberStatus;

  /** Releases locks, steps down in elections, and closes. A second call does nothing more. */
  leave(): Promise<void>;
}

export interface ElectionOptions<M = unknown> {
  /** Published to the others while this member leads, such as its address. JSON data, at most 4,096 bytes. It belongs to the campaigns of this handle. */
  readonly metadata?: M | undefined;
}

export interface Mutex {
  readonly name: string;
  /**
   * Waits for the lock; callers of all members are served in FIFO order. If the session of the member ends meanwhile, the call keeps
   * waiting in the next session, behind all others. A rejected call leaves nothing behind: a grant that arrives later is released.
   * @throws UsageError `bad-option`. CoordinationError, phase `never-acquired`: `acquire-timeout`, `acquire-aborted`, `too-many-waiters`,
   * `member-left`, `member-removed`, `member-failed`; of a client `client-closed`, `client-refused`. Phase `never-sent`: `state-full`, and
   * `forbidden` of a client.
   */
  acquire(options?: AcquireOptions): Promise<Grant>;
  /**
   * Acquires, calls `work`, and releases when the work has ended.
   * @throws as `acquire()` does; the error of the work; the reason of the grant's `signal`, such as `grant-lost`, if the work succeeded but
   * the lock was lost before it ended.
   */
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

export interface ReadyOptions {
  /** How long to wait at most. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the wait ends. */
  readonly signal?: AbortSignal | undefined;
}

export interface Election<M = unknown> {
  readonly name: string;
  /** The leader, as this member knows; null while it knows none. */
  readonly leader: NodeId | null;
  /**
   * Campaigns, and calls `work` while this member leads. When leadership is lost, `signal` is aborted. Once the work has ended, the
   * member campaigns again, and calls `work` again when it is elected again. Work that ends while the member leads ends the campaign: the
   * member steps down, and the promise resolves or rejects as the work did.
   *
   * The work must end soon after its signal is aborted. Its result or error is then ignored, unless it throws something other than the
   * signal's reason or an `AbortError`, which ends the campaign as well.
   * @throws CoordinationError `lead-aborted`, `member-left`, `member-failed`, and errors that would end `acquire()` of a lock, such as
   * `forbidden` and `state-full`; UsageError `already-campaigning`.
   */
  lead<T>(work: (leadership: Leadership) => T | Promise<T>, options?: LeadOptions): Promise<T>;
  /** The leader, at once and after each change. A slow reader sees the latest only. It ends, or rejects, as watches of maps do. */
  watch(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<LeaderChange<M>>;
}

export interface LeadOptions {
  /** Aborted: the member stops campaigning, and leading. */
  readonly signal?: AbortSignal | undefined;
}

export type Leadership = Tenure & { readonly name: string };

export interface LeaderChange<M = unknown> {
  readonly leader: NodeId | null;
  /** Of that leader; null while there is none. */
  readonly token: number | null;
  /** The leader's `metadata`; absent if it has none. */
  readonly metadata?: M;
}

export type MemberEvent =
  /** No message from that member for too long, or messages again. */
  | { readonly type: "peer-suspected" | "peer-restored"; readonly node: NodeId }
  /**
   * This member reaches no majority: calls wait, and locks and leaderships will be lost. Or it reaches one, for the first time or
   * again.
   */
  | { readonly type: "quorum-lost" | "quorum-gained"; readonly reachable: number; readonly members: number }
  /** The leader of an election that this process has open; null while it knows none. */
  | {
      readonly type: "leader-changed";
      readonly election: string;
      readonly leader: NodeId | null;
      readonly token: number | null;
    }
  /** The leader of the log; null while this member knows none. */
  | { readonly type: "log-leader-changed"; readonly leader: NodeId | null; readonly term: number }
  /** This member's session is over: its locks, leaderships and leased entries are lost. */
  | { readonly type: "session-lost"; readonly session: number }
  /** Commands wait here for `replicated()` to define that machine, with `bytes` in all. Above `maxBytes` the member stops. */
  | {
      readonly type: "machine-undefined";
      readonly machine: string;
      readonly bytes: number;
      readonly maxBytes: number;
    }
  /** Other members have the channel open with another order or transport: it is closed here. */
  | { readonly type: "instance-refused"; readonly kind: Kind; readonly name: string; readonly why: string }
  /** A node has another list of members, or one of the two has lost its journal: there is no link between them. */
  | {
      readonly type: "node-refused";
      readonly node: NodeId;
      readonly reason: "wrong-members" | "lost-journal";
      readonly why: string;
    }
  /** There is a link to that node again. */
  | { readonly type: "node-accepted"; readonly node: NodeId }
  /** The list of members has changed. */
  | {
      readonly type: "members-changed";
      readonly members: readonly NodeId[];
      readonly voters: readonly NodeId[];
      readonly revision: number;
    }
  /** This process, or the whole machine, was paused for `forMs`. */
  | { readonly type: "stalled"; readonly forMs: number }
  /** This reader was too slow: that many events were lost. */
  | { readonly type: "dropped"; readonly events: number };

export type Kind = "election" | "mutex" | "channel";

export interface MemberStatus extends Standing {
  readonly id: NodeId;
  readonly cluster: string;
  readonly address: string;
  readonly state: "joined" | "left" | "failed";
  readonly peers: readonly (PeerStatus & { readonly suspected: boolean })[];
  /** The voters on the list that this member knows; empty if it is new and knows none. */
  readonly voters: readonly NodeId[];
  /** The number of members that are connected and not suspected, this one included. */
  readonly reachable: number;
  /** Whether these are a majority. */
  readonly hasQuorum: boolean;
  /** The leader of the log; null while this member knows none. Leaders of elections are in `instances`. */
  readonly leader: NodeId | null;
  readonly instances: readonly InstanceStatus[];
  /** The state of the replicated service at this member. */
  readonly shared: StateStatus;
  readonly uptimeMs: number;
}

export interface InstanceStatus {
  readonly kind: Kind;
  readonly name: string;
  readonly role: string;
  /** Of an election: the leader, as this member knows. Otherwise null. */
  readonly leader: NodeId | null;
  /** Of the lock or leadership that this member holds; null if it holds none. */
  readonly token: number | null;
  readonly isHeld: boolean;
  /** Calls of this process that wait for it; of a channel, messages that wait to be sent. */
  readonly waiting: number;
  /** Of a channel: its state here. */
  readonly channel?: ChannelStatus;
}
