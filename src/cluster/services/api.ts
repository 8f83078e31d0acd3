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

/** Options of `join()`. */
export interface JoinOptions {
  /** This member's id, one of `members`. */
  readonly id: NodeId;
  /**
   * All members with the addresses at which they reach each other, `host:port`. The same for all members. Host names are
   * looked up before each connection.
   */
  readonly members: Readonly<Record<NodeId, string>>;
  /** `host:port` that this member binds, such as `0.0.0.0:7101` in a container. Default: its own address among `members`. */
  readonly listen?: string | undefined;
  /**
   * Set it for a member that joins a running cluster. First add it there with `member.cluster.add()` or
   * `coterie member add`. `members` then lists this member and the members that it connects to first. Ignored once the
   * journal knows a cluster. Default: false, the `members` found a cluster together.
   */
  readonly existing?: boolean | undefined;
  /** The folder of this member's journal. Members must not share it. `{id}` is replaced by the id. */
  readonly dataDir: string;
  /** The name of the cluster. Connections from members of another cluster are refused. Default `coterie`. */
  readonly cluster?: string | undefined;
  /** PEM files; `{id}` in a path is replaced by the id. `"off"` if the network is trusted. Required off loopback. */
  readonly tls?: "off" | { readonly ca: string; readonly cert: string; readonly key: string } | undefined;
  readonly limits?: Partial<ServiceLimits & Limits> | undefined;
  /**
   * Receives log lines: `console`, a logger with `info`, `warn` and `error`, or the result of `createLog()`. Default:
   * warnings and errors go to stderr.
   */
  readonly log?: Logger | undefined;
  /**
   * `host:port` for the admin pages, on loopback: `/status`, `/metrics`, `/healthz`, `/readyz`, and elections and locks for
   * other programs of this machine. Off loopback: `AdminOptions`. Default: none.
   */
  readonly admin?: string | AdminOptions | undefined;
  /**
   * `host:port` on loopback where clients (processes that are not members) are served. Off loopback: `ClientsOptions`.
   * Default: none.
   */
  readonly clients?: string | ClientsOptions | undefined;
  /** `host:port` where etcd's API v3 is served over gRPC, on loopback: docs/guide/etcd-api.md. Default: none. */
  readonly etcd?: string | undefined;
  /**
   * A prom-client `Registry` that contains the member's metrics until it leaves. Members may not share one.
   * docs/reference/metrics.md lists the metrics. Default: only `/metrics` on the admin address shows them.
   */
  readonly registry?: MetricRegistry | undefined;
  /** Group, port and interface of channels with `transport: "udp"`: the same group and port for all members. */
  readonly multicast?: MulticastPlace | undefined;
  /**
   * How long a member may be paused and keep its locks and leaderships, the same for all members: `fast` 0.2 s, `default` 4
   * s, `patient` 8 s. Locks of a crashed member are released a little later. docs/operate/timing.md lists the costs.
   */
  readonly timing?: Timing | undefined;
  /** Aborting it makes the member leave. Before the member has joined, `join()` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * For tests and demonstrations: `PUT /faults` on the admin address drops, delays and cuts this member's messages.
   * Default: false.
   */
  readonly faultInjector?: boolean | undefined;
}

/** Address, roles and certificates for clients (processes that are not members); docs/guide/clients.md. */
export interface ClientsOptions {
  /** `host:port` for HTTP and WebSocket. Off loopback `roles` and `tls` are required. */
  readonly listen: string;
  /**
   * The address at which clients reach this member, such as `https://node-1.example.org:7300`. Members send the addresses
   * of all members to their clients. Default: `listen`; if that is all interfaces, the host at which members reach it.
   */
  readonly url?: string | undefined;
  /**
   * A JSON file with the hashes of tokens, the names in certificates, and the role of each; `{id}` is replaced by the id.
   * Default, on loopback: every client may do everything.
   */
  readonly roles?: string | undefined;
  /**
   * PEM files; `{id}` in a path is replaced by the id. With `ca`, clients may present a certificate of that authority.
   * `"off"` if the network is trusted.
   */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /** Origins of web pages that may call this member, such as `https://console.example.org`, in addition to its own address. */
  readonly origins?: readonly string[] | undefined;
}

/** Address and access of the admin pages. */
export interface AdminOptions {
  /** `host:port`. Off loopback the pages are read-only. */
  readonly address: string;
  /**
   * PEM files; `{id}` in a path is replaced by the id. With `ca`, callers must present a certificate of that authority.
   * `"off"` if the network is trusted. Required off loopback.
   */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /**
   * Serves only `/status`, `/metrics`, `/healthz` and `/readyz`, which do not act on the member. Default: true off
   * loopback.
   */
  readonly readOnly?: boolean | undefined;
}

/** Group, port and interface of IP multicast. */
export type MulticastPlace = Omit<UdpPlace, "tls">;

/** Limits of elections, locks and channels in this process. */
export interface ServiceLimits {
  /** Elections in use in this process, and channels in use, each. Default 10,000. */
  readonly maxInstances: number;
  /** Calls of this process that wait for one lock, and messages that wait to be sent on one channel. Default 10,000. */
  readonly maxWaiters: number;
}

/** A member of a cluster, running in this process. */
export interface Member extends StateApi, AsyncDisposable {
  readonly id: NodeId;
  /** The base URL of the admin pages; null if they are not served. */
  readonly admin: string | null;
  /** Reads and changes the list of members. */
  readonly cluster: ClusterMembers;
  /** The base URL for clients (processes that are not members); null if they are not served. */
  readonly clients: string | null;
  /** The base URL of etcd's API; null if it is not served. */
  readonly etcd: string | null;
  /** Aborted when this member begins to leave, or fails. The reason is a `CoordinationError`. */
  readonly signal: AbortSignal;

  /**
   * Opens an election: at most one leader at a time among the members that campaign in it.
   *
   * @param name the same at every member
   * @example
   * await member.election("nightly-report").lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws UsageError if a name or an option is invalid.
   */
  election<M = unknown>(name: string, options?: ElectionOptions<M>): Election<M>;

  /**
   * Opens a lock: at most one holder at a time among all members, and among all callers in this process.
   *
   * @param name the same at every member
   * @example
   * const lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
   * try {
   *   await charge({ token: lock.token, signal: lock.signal });
   * } finally {
   *   await lock.release();
   * }
   * @throws UsageError if the name is invalid.
   */
  mutex(name: string): Mutex;

  /**
   * Opens a channel: each message is delivered to all members that have the channel open.
   *
   * @param name the same at every member
   * @example
   * const room = member.channel<{ text: string }>("room", { order: "causal" });
   * await room.send({ text: "hello" });
   * for await (const { from, payload } of room) console.log(from, payload.text);
   * @throws UsageError if a name or an option is invalid, `other-setting` if this process has the channel open with other
   *   options.
   */
  channel<T = unknown>(name: string, options: ChannelOptions): Channel<T>;

  /**
   * Waits until this member can acquire locks and lead elections: it reaches a majority and knows the leader of the log.
   *
   * @throws CoordinationError `ready-timeout`, whose `phase` names the obstacle (`no-majority`, `no-log-leader`),
   *   `ready-aborted`, `member-left` or `member-failed`.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /**
   * Events of this member, from now until it leaves. Rejects if the member fails. A slow reader loses the oldest events;
   * `dropped` reports how many.
   */
  events(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<MemberEvent>;

  /** @returns a snapshot of the state of this member, as plain data */
  status(): MemberStatus;

  /** Releases locks, steps down in elections, and closes. Further calls have no effect. */
  leave(): Promise<void>;
}

/** Options of `Member.election()`. */
export interface ElectionOptions<M = unknown> {
  /**
   * Published to the other members while this member leads, such as its address. JSON data, at most 4,096 bytes. It applies
   * to campaigns of this handle only.
   */
  readonly metadata?: M | undefined;
}

/** A lock that all members share. */
export interface Mutex {
  readonly name: string;
  /**
   * Waits for the lock. Callers of all members are served in FIFO order. If the member's session ends meanwhile, the call
   * keeps waiting in the next session, behind all others. If the call rejects, a grant that arrives later is released.
   * @throws UsageError `bad-option`. CoordinationError, phase `never-acquired`: `acquire-timeout`, `acquire-aborted`,
   *   `too-many-waiters`, `member-left`, `member-removed`, `member-failed`; of a client `client-closed`, `client-refused`.
   *   Phase `never-sent`: `state-full`, and `forbidden` of a client.
   */
  acquire(options?: AcquireOptions): Promise<Grant>;
  /**
   * Acquires the lock, calls `work`, and releases the lock when the work has ended.
   *
   * @returns the result of `work`
   * @throws the errors of `acquire()`; the error of the work; the reason of the grant's `signal`, such as `grant-lost`,
   *   if the work succeeded but the lock was lost before it ended.
   */
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

/** Options of `Member.ready()`. */
export interface ReadyOptions {
  /** How long to wait at most. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it rejects the call. */
  readonly signal?: AbortSignal | undefined;
}

/** An election among the members that campaign in it. */
export interface Election<M = unknown> {
  readonly name: string;
  /** The leader as far as this member knows; null while it knows none. */
  readonly leader: NodeId | null;
  /**
   * Campaigns, and calls `work` while this member leads. When leadership is lost, `signal` is aborted. Once the work has
   * ended, the member campaigns again, and calls `work` again when it is elected again. Work that ends while the member
   * leads ends the campaign: the member steps down, and the promise resolves or rejects as the work did.
   *
   * The work must end soon after its signal is aborted. Its result or error is then ignored, unless it throws something
   * other than the signal's reason or an `AbortError`, which ends the campaign as well.
   * @throws CoordinationError `lead-aborted`, `member-left`, `member-failed`, and errors that would end `acquire()` of a
   *   lock, such as `forbidden` and `state-full`; UsageError `already-campaigning`.
   */
  lead<T>(work: (leadership: Leadership) => T | Promise<T>, options?: LeadOptions): Promise<T>;
  /**
   * The leader, at once and after each change. A slow reader gets only the latest. It ends and rejects in the same cases as
   * `SharedMap.watch()`.
   */
  watch(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<LeaderChange<M>>;
}

/** Options of `Election.lead()`. */
export interface LeadOptions {
  /** Aborting it makes the member step down and stop campaigning. */
  readonly signal?: AbortSignal | undefined;
}

/** A term of leadership in the election of that name. */
export type Leadership = Tenure & { readonly name: string };

/** The leader of an election; each field is null while this member knows no leader. */
export interface LeaderChange<M = unknown> {
  readonly leader: NodeId | null;
  /** The leader's token. */
  readonly token: number | null;
  /** The leader's `metadata`; absent if it has none. */
  readonly metadata?: M;
}

/** An event of a member, as `Member.events()` reports it. */
export type MemberEvent =
  /** No message from that member for too long, or messages again. */
  | { readonly type: "peer-suspected" | "peer-restored"; readonly node: NodeId }
  /**
   * This member reaches no majority: calls wait, and locks and leaderships will be lost. Or it reaches one, for the first
   * time or again.
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
  /**
   * This member holds commands of that machine, `bytes` in all, until `replicated()` defines it. Above `maxBytes` the
   * member stops.
   */
  | {
      readonly type: "machine-undefined";
      readonly machine: string;
      readonly bytes: number;
      readonly maxBytes: number;
    }
  /** Other members have the channel open with another order or transport, so it is closed here. */
  | { readonly type: "instance-refused"; readonly kind: Kind; readonly name: string; readonly why: string }
  /** A node has another list of members, or one of the two has lost its journal: they do not exchange messages. */
  | {
      readonly type: "node-refused";
      readonly node: NodeId;
      readonly reason: "wrong-members" | "lost-journal";
      readonly why: string;
    }
  /** This member exchanges messages with that node again. */
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
  /** This reader was too slow and lost this many events. */
  | { readonly type: "dropped"; readonly events: number };

/** The kinds of named objects of a process. */
export type Kind = "election" | "mutex" | "channel";

/** The state of a member, as plain data. */
export interface MemberStatus extends Standing {
  readonly id: NodeId;
  readonly cluster: string;
  readonly address: string;
  readonly state: "joined" | "left" | "failed";
  readonly peers: readonly (PeerStatus & { readonly suspected: boolean })[];
  /** The voters on the list that this member knows; empty if it is new and knows none. */
  readonly voters: readonly NodeId[];
  /** Members that are connected and not suspected, including this one. */
  readonly reachable: number;
  /** Whether the reachable members are a majority. */
  readonly hasQuorum: boolean;
  /** The leader of the log; null while this member knows none. Leaders of elections are in `instances`. */
  readonly leader: NodeId | null;
  readonly instances: readonly InstanceStatus[];
  /** The state of the replicated service at this member. */
  readonly shared: StateStatus;
  readonly uptimeMs: number;
}

/** The state of an election, lock or channel in use at this member. */
export interface InstanceStatus {
  readonly kind: Kind;
  readonly name: string;
  readonly role: string;
  /** For an election: the leader, as far as this member knows. Otherwise null. */
  readonly leader: NodeId | null;
  /** The token of the lock or leadership that this member holds; null if it holds none. */
  readonly token: number | null;
  readonly isHeld: boolean;
  /** Calls of this process that wait for it; for a channel, messages that wait to be sent. */
  readonly waiting: number;
  /** For a channel: its state at this member. */
  readonly channel?: ChannelStatus;
}
