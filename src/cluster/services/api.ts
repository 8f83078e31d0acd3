/**
 * The API of `join()`: a cluster member with its elections, locks and channels. For the guarantees, see
 * docs/guide/guarantees.md and docs/guide/channels.md.
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

/** Options for `join()`. */
export interface JoinOptions {
  /** This member's id, which is a key of `members`. */
  readonly id: NodeId;
  /**
   * The ids of all members and the addresses at which they reach each other, `host:port`. Must be the same for all
   * members. Host names are looked up before each connection.
   */
  readonly members: Readonly<Record<NodeId, string>>;
  /**
   * The `host:port` that this member binds, such as `0.0.0.0:7101` in a container. Default: the member's address in
   * `members`.
   */
  readonly listen?: string | undefined;
  /**
   * Whether this member joins a running cluster. If so, first add it there with `member.cluster.add()` or
   * `coterie member add`. `members` then lists this member and the ones it initially connects to. Ignored once the
   * journal records a cluster. Default: false, meaning that the listed `members` form a new cluster.
   */
  readonly existing?: boolean | undefined;
  /** The folder for this member's journal. Members must not share it. `{id}` is replaced by the id. */
  readonly dataDir: string;
  /** The name of the cluster. Connections from members of other clusters are refused. Default: `coterie`. */
  readonly cluster?: string | undefined;
  /**
   * Paths to PEM files. `{id}` in a path is replaced by the id. `"off"` disables TLS; use it only on a trusted network.
   * Required unless all addresses are loopback addresses.
   */
  readonly tls?: "off" | { readonly ca: string; readonly cert: string; readonly key: string } | undefined;
  /** Overrides default limits, such as the number of waiting calls and the size of frames between members. */
  readonly limits?: Partial<ServiceLimits & Limits> | undefined;
  /**
   * Receives log lines: `console`, a logger with `info`, `warn` and `error`, or the result of `createLog()`. By
   * default, warnings and errors go to stderr.
   */
  readonly log?: Logger | undefined;
  /**
   * The loopback `host:port` for the admin pages: `/status`, `/metrics`, `/healthz`, `/readyz`, and elections and locks
   * for other programs on this machine. To use an address that is not loopback, pass `AdminOptions`. Default: none.
   */
  readonly admin?: string | AdminOptions | undefined;
  /**
   * The loopback `host:port` that serves clients (processes that are not members). To use an address that is not
   * loopback, pass `ClientsOptions`. Default: none.
   */
  readonly clients?: string | ClientsOptions | undefined;
  /**
   * The `host:port` that serves etcd's API v3, or that and the certificates. See docs/guide/etcd-api.md. Default: none.
   */
  readonly etcd?: string | EtcdOptions | undefined;
  /**
   * A prom-client `Registry` for the member's metrics, which are removed when the member leaves. Members must not share
   * a registry. docs/reference/metrics.md lists the metrics. Default: none; only `/metrics` on the admin address shows
   * them.
   */
  readonly registry?: MetricRegistry | undefined;
  /**
   * The group, port and interface for channels with `transport: "udp"`. The group and port must be the same for all
   * members.
   */
  readonly multicast?: MulticastPlace | undefined;
  /**
   * How long a member can be paused without losing its locks and leaderships: `fast` 0.2 s, `default` 4 s, `patient` 8
   * s. Must be the same for all members. A crashed member's locks are released slightly later. docs/operate/timing.md
   * lists the costs.
   */
  readonly timing?: Timing | undefined;
  /**
   * Aborting it makes the member leave. If the member has not joined yet, `join()` rejects with the signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Enables `PUT /faults` on the admin address, which drops, delays or blocks this member's messages. For tests and
   * demonstrations. Default: false.
   */
  readonly faultInjector?: boolean | undefined;
}

/** The address, roles and certificates for clients (processes that are not members). See docs/guide/clients.md. */
export interface ClientsOptions {
  /** The `host:port` for HTTP and WebSocket. `roles` and `tls` are required unless it is a loopback address. */
  readonly listen: string;
  /**
   * The URL at which clients reach this member, such as `https://node-1.example.org:7300`. Each member sends all
   * members' URLs to its clients. Default: the address in `listen`. If that means all interfaces, its host is replaced
   * by the one at which other members reach this one.
   */
  readonly url?: string | undefined;
  /**
   * A JSON file with the hashes of tokens and the names in certificates, each with a role. `{id}` is replaced by the
   * id. Default, on loopback only: every client has the role `admin`.
   */
  readonly roles?: string | undefined;
  /**
   * Paths to PEM files. `{id}` in a path is replaced by the id. With `ca`, clients may present a certificate signed by
   * that authority. `"off"` disables TLS; use it only on a trusted network.
   */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /**
   * The origins of web pages that may call this member, such as `https://console.example.org`, in addition to its own
   * address.
   */
  readonly origins?: readonly string[] | undefined;
}

/** The address of etcd's API, and its certificates. */
export interface EtcdOptions {
  /** The `host:port`. `tls` is required unless it is a loopback address. */
  readonly listen: string;
  /**
   * Paths to PEM files. `{id}` in a path is replaced by the id. With `ca`, callers must present a certificate signed by
   * that authority; without it, the address must be a loopback address. `"off"` disables TLS; use it only on a trusted
   * network, because every caller may then read and write.
   */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
}

/** The address of the admin pages, and access to them. */
export interface AdminOptions {
  /** The `host:port`. Unless it is a loopback address, the pages are read-only. */
  readonly address: string;
  /**
   * Paths to PEM files. `{id}` in a path is replaced by the id. With `ca`, callers must present a certificate signed by
   * that authority. `"off"` disables TLS; use it only on a trusted network. Required unless the address is a loopback
   * address.
   */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /**
   * Whether to serve only `/status`, `/metrics`, `/healthz` and `/readyz`, which do not act on the member. Default:
   * true unless the address is a loopback address.
   */
  readonly readOnly?: boolean | undefined;
}

/** The group, port and interface for IP multicast. */
export type MulticastPlace = Omit<UdpPlace, "tls">;

/** Limits on elections, locks and channels in this process. */
export interface ServiceLimits {
  /** The maximum number of elections, and of channels, that can be in use in this process. Default: 10,000 each. */
  readonly maxInstances: number;
  /**
   * The maximum number of calls in this process that can wait for one lock, and of messages that can wait to be sent on
   * one channel. Default: 10,000 each.
   */
  readonly maxWaiters: number;
}

/** A member of a cluster, running in this process. */
export interface Member extends StateApi, AsyncDisposable {
  /** This member's id, as passed to `join()`. */
  readonly id: NodeId;
  /** The base URL of the admin pages. Null if they are not served. */
  readonly admin: string | null;
  /** Reads and changes the member list. */
  readonly cluster: ClusterMembers;
  /** The base URL for clients (processes that are not members). Null if they are not served. */
  readonly clients: string | null;
  /** The base URL of etcd's API. Null if it is not served. */
  readonly etcd: string | null;
  /** Aborted when this member begins to leave or fails. The reason is a `CoordinationError`. */
  readonly signal: AbortSignal;

  /**
   * Opens an election with at most one leader at a time among the members that campaign in it.
   *
   * @param name must be the same at every member
   * @example
   * await member.election("nightly-report").lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws UsageError if the name or an option is invalid
   */
  election<M = unknown>(name: string, options?: ElectionOptions<M>): Election<M>;

  /**
   * Opens a lock with at most one holder at a time among all callers at all members.
   *
   * @param name must be the same at every member
   * @example
   * const lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
   * try {
   *   await charge({ token: lock.token, signal: lock.signal });
   * } finally {
   *   await lock.release();
   * }
   * @throws UsageError if the name is invalid
   */
  mutex(name: string): Mutex;

  /**
   * Opens a channel. Each message is delivered to all members that have the channel open.
   *
   * @param name must be the same at every member
   * @example
   * const room = member.channel<{ text: string }>("room", { order: "causal" });
   * await room.send({ text: "hello" });
   * for await (const { from, payload } of room) console.log(from, payload.text);
   * @throws UsageError if the name or an option is invalid, `other-setting` if this process has the channel open with
   *   different options
   */
  channel<T = unknown>(name: string, options: ChannelOptions): Channel<T>;

  /**
   * Waits until this member can acquire locks and lead elections: it can reach a majority and knows who leads the log.
   *
   * @example
   * await member.ready({ timeoutMs: 30_000 });
   * @throws CoordinationError `ready-timeout` (its `phase` names the obstacle: `no-majority` or `no-log-leader`),
   *   `ready-aborted`, `member-left` or `member-failed`
   */
  ready(options?: ReadyOptions): Promise<void>;

  /**
   * Iterates over this member's events, from now until it leaves. Rejects if the member fails. A slow reader loses the
   * oldest events; a `dropped` event reports how many.
   *
   * @example
   * for await (const event of member.events())
   *   if (event.type === "quorum-lost") console.warn(`${event.reachable} of ${event.members} members are reachable`);
   * @throws CoordinationError `member-failed`, `member-removed`
   */
  events(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<MemberEvent>;

  /** @returns a snapshot of this member's state, as plain data */
  status(): MemberStatus;

  /** Releases the member's locks, steps down in elections, and closes the member. Further calls have no effect. */
  leave(): Promise<void>;
}

/** Options for `Member.election()`. */
export interface ElectionOptions<M = unknown> {
  /**
   * Data that is published to the other members while this member leads, such as its address. JSON data of at most
   * 4,096 bytes. It applies only to campaigns started through this handle.
   */
  readonly metadata?: M | undefined;
}

/** A lock shared by all members. */
export interface Mutex {
  /** The name given to `mutex()`. */
  readonly name: string;
  /**
   * Waits for the lock. Callers at all members are served in FIFO order. If the member's session ends during the wait,
   * the call keeps waiting in the next session, behind all other callers. If the lock is granted after the call has
   * rejected, it is released.
   * @throws UsageError `bad-option`. CoordinationError, phase `never-acquired`: `acquire-timeout`, `acquire-aborted`,
   *   `too-many-waiters`, `member-left`, `member-removed`, `member-failed`; for a client, `client-closed` and
   *   `client-refused`. Phase `never-sent`: `state-full`; for a client, `forbidden`
   */
  acquire(options?: AcquireOptions): Promise<Grant>;
  /**
   * Acquires the lock, calls `work`, and releases the lock when `work` has finished.
   *
   * @returns the result of `work`
   * @example
   * await member.mutex("invoice-42").use(({ token, signal }) => charge({ token, signal }), { timeoutMs: 5_000 });
   * @throws the errors of `acquire()`; the error that `work` throws; the reason of the grant's `signal`, such as
   *   `grant-lost`, if `work` succeeded but the lock was lost before it finished
   */
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

/** Options for `Member.ready()`. */
export interface ReadyOptions {
  /** The maximum time to wait. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it rejects the promise. */
  readonly signal?: AbortSignal | undefined;
}

/** An election among the members that campaign in it. */
export interface Election<M = unknown> {
  /** The name given to `election()`. */
  readonly name: string;
  /** The leader, as far as this member knows. Null if it knows of none. */
  readonly leader: NodeId | null;
  /**
   * Campaigns, and calls `work` when this member is elected. When leadership is lost, `signal` is aborted. Once `work`
   * has finished, the member campaigns again, and calls `work` again when it is reelected. If `work` finishes while the
   * member still leads, the campaign is over: the member steps down, and the promise resolves or rejects as `work` did.
   *
   * `work` must finish soon after its signal is aborted. Its result or error is then ignored. However, if it throws
   * anything other than the signal's reason or an `AbortError`, the campaign ends with that error.
   *
   * @example
   * const election = member.election("nightly-report");
   * await election.lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws CoordinationError `lead-aborted`, `member-left`, `member-failed`, and errors that would end `acquire()` of
   *   a lock, such as `forbidden` and `state-full`; UsageError `already-campaigning`
   */
  lead<T>(work: (leadership: Leadership) => T | Promise<T>, options?: LeadOptions): Promise<T>;
  /**
   * Yields the leader immediately, and again after each change. A slow reader gets only the latest one. The iterator
   * ends or rejects in the same cases as `SharedMap.watch()`.
   *
   * @example
   * for await (const { leader, metadata } of member.election<{ url: string }>("nightly-report").watch())
   *   console.log(leader, metadata?.url);
   */
  watch(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<LeaderChange<M>>;
}

/** Options for `Election.lead()`. */
export interface LeadOptions {
  /** Aborting it makes the member step down and stop campaigning. */
  readonly signal?: AbortSignal | undefined;
}

/** A term of leadership in an election. `name` is the election's name. */
export type Leadership = Tenure & { readonly name: string };

/** The leader of an election. `leader` and `token` are null if this member knows of no leader. */
export interface LeaderChange<M = unknown> {
  /** The id of the leader. */
  readonly leader: NodeId | null;
  /** The leader's token. */
  readonly token: number | null;
  /** The leader's `metadata`. Absent if the leader has none. */
  readonly metadata?: M;
}

/** An event of a member, as `Member.events()` reports it. */
export type MemberEvent =
  /** No message has arrived from that member for too long, or messages are arriving again. */
  | { readonly type: "peer-suspected" | "peer-restored"; readonly node: NodeId }
  /**
   * This member can no longer reach a majority, so calls wait, and locks and leaderships will be lost. Or it can reach
   * one, for the first time or again.
   */
  | { readonly type: "quorum-lost" | "quorum-gained"; readonly reachable: number; readonly members: number }
  /** An election that is open in this process has a new leader. `leader` is null if this member knows of none. */
  | {
      readonly type: "leader-changed";
      readonly election: string;
      readonly leader: NodeId | null;
      readonly token: number | null;
    }
  /** The log has a new leader. `leader` is null if this member knows of none. */
  | { readonly type: "log-leader-changed"; readonly leader: NodeId | null; readonly term: number }
  /** This member's session has ended: its locks, leaderships and leased entries are lost. */
  | { readonly type: "session-lost"; readonly session: number }
  /**
   * This member retains commands for a state machine, `bytes` in total, until `replicated()` defines the machine. The
   * member stops if they exceed `maxBytes`.
   */
  | {
      readonly type: "machine-undefined";
      readonly machine: string;
      readonly bytes: number;
      readonly maxBytes: number;
    }
  /** Other members have the channel open with a different order or transport, so it has been closed at this member. */
  | { readonly type: "instance-refused"; readonly kind: Kind; readonly name: string; readonly why: string }
  /** A node has a different member list, or one of the two has lost its journal. They do not exchange messages. */
  | {
      readonly type: "node-refused";
      readonly node: NodeId;
      readonly reason: "wrong-members" | "lost-journal";
      readonly why: string;
    }
  /** This member exchanges messages with that node again. */
  | { readonly type: "node-accepted"; readonly node: NodeId }
  /** The member list has changed. */
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

/** The kinds of named objects in a process. */
export type Kind = "election" | "mutex" | "channel";

/** A member's state, as plain data. */
export interface MemberStatus extends Standing {
  /** This member's id. */
  readonly id: NodeId;
  /** The name of the cluster. */
  readonly cluster: string;
  /** The address at which the other members reach this one, `host:port`. */
  readonly address: string;
  /**
   * `joined`: in service. `left`: `leave()` was called. `failed`: the disk or an algorithm failed, or the cluster
   * removed this member.
   */
  readonly state: "joined" | "left" | "failed";
  /** The links to the other members. `suspected`: no message has arrived from that member for too long. */
  readonly peers: readonly (PeerStatus & { readonly suspected: boolean })[];
  /** The voters on the list that this member knows. Empty if the member is new and has no list yet. */
  readonly voters: readonly NodeId[];
  /** The number of members that are connected and not suspected, including this one. */
  readonly reachable: number;
  /** Whether the reachable members are a majority. */
  readonly hasQuorum: boolean;
  /** The leader of the log. Null if this member knows of none. Leaders of elections are in `instances`. */
  readonly leader: NodeId | null;
  /** The elections, locks and channels in use in this process. */
  readonly instances: readonly InstanceStatus[];
  /** The state of the replicated service at this member. */
  readonly shared: StateStatus;
  /** Milliseconds since this member joined. */
  readonly uptimeMs: number;
}

/** The state of an election, lock or channel that is in use at this member. */
export interface InstanceStatus {
  /** The kind of the object. */
  readonly kind: Kind;
  /** The name that the program used to open it. */
  readonly name: string;
  /**
   * For an election, `leader`, `candidate` or `follower`. For a lock, `held` or `wanted`. For a channel, a short
   * description.
   */
  readonly role: string;
  /** The leader of an election, as far as this member knows. Null for locks and channels. */
  readonly leader: NodeId | null;
  /** The token of the lock or leadership that this member holds. Null if it holds none. */
  readonly token: number | null;
  /** Whether this member certainly holds the lock or leadership now. */
  readonly isHeld: boolean;
  /**
   * The number of calls in this process that are waiting for it. For a channel, the number of messages waiting to be
   * sent.
   */
  readonly waiting: number;
  /** The state of a channel at this member. */
  readonly channel?: ChannelStatus;
}
