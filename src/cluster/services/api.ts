/**
 * What `join()` offers: a member of a cluster, its elections, its locks and its channels. The words are the same for every
 * algorithm; what each guarantees stands in docs/guarantees.md and docs/channels.md, and on the algorithm's own page.
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
  /** Every member with the address at which the others reach it, `host:port`. The same for all members. Names are looked up whenever a member is dialled. */
  readonly members: Readonly<Record<NodeId, string>>;
  /** `host:port` that this member binds, such as `0.0.0.0:7101` in a container. Default: its own address among `members`. */
  readonly listen?: string | undefined;
  /**
   * This member joins a cluster that others have founded, and that has it on its list: `member.cluster.add()` or `coterie member add` puts it
   * there. `members` are then itself and those that it calls first. Without effect once its journal knows a cluster. Default: false,
   * `members` found one together.
   */
  readonly existing?: boolean | undefined;
  /**
   * The folder of this member's journal, and of no other's; `{id}` is replaced by the id.
   */
  readonly dataDir: string;
  /** Members of another cluster are refused. Default `coterie`. */
  readonly cluster?: string | undefined;
  /** PEM files, `{id}` in a path stands for the id; `"off"` where a network is trusted. Off loopback it must be said. */
  readonly tls?: "off" | { readonly ca: string; readonly cert: string; readonly key: string } | undefined;
  readonly limits?: Partial<ServiceLimits & Limits> | undefined;
  /** Takes the log's lines: `console`, a logger with `info`, `warn` and `error`, or what `createLog()` makes. Default: warnings and errors go to stderr. */
  readonly log?: Logger | undefined;
  /**
   * `host:port` for the admin pages, on loopback: `/status`, `/metrics`, `/healthz`, `/readyz`, and elections and locks for
   * other programs of this machine. Off loopback: `AdminOptions`. Default: there are none.
   */
  readonly admin?: string | AdminOptions | undefined;
  /** `host:port` where clients that are no members are served, on loopback. Off loopback: `ClientsOptions`. Default: nowhere. */
  readonly clients?: string | ClientsOptions | undefined;
  /** `host:port` where etcd's API v3 is served over gRPC, on loopback: docs/etcd-api.md. Default: nowhere. */
  readonly etcd?: string | undefined;
  /**
   * A prom-client `Registry`, in which the member's metrics are until it leaves; no two members may share one. docs/metrics.md lists them. Default: only
   * `/metrics` on the admin address shows them.
   */
  readonly registry?: MetricRegistry | undefined;
  /** Where channels with `transport: "udp"` multicast: the same group and port for all members. */
  readonly multicast?: MulticastPlace | undefined;
  /**
   * How long a member may be paused and keep its locks and leaderships, the same for all members: `fast` 0.2 s, `default` 4 s, `patient`
   * 8 s. Locks of a crashed member are released a little later. docs/timing.md says what each costs.
   */
  readonly timing?: Timing | undefined;
  /** Aborted: the member leaves; before it has joined, `join()` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** For tests and demonstrations: `PUT /faults` on the admin address drops, delays and cuts this member's messages. */
  readonly faultInjector?: boolean | undefined;
}

/** Where clients that are no members are served, and who may do what; docs/clients.md. */
export interface ClientsOptions {
  /** `host:port`: HTTP and WebSocket. Off loopback `roles` and `tls` must be said. */
  readonly listen: string;
  /**
   * By which clients reach this member, such as `https://node-1.example.org:7300`: members tell it to each other's clients, so that these
   * know all of them. Default: what `listen` says, or where that is all interfaces, the host at which members reach it.
   */
  readonly url?: string | undefined;
  /** A JSON file with the hashes of tokens, and names in certificates, and what each may do; `{id}` stands for the id. Default, on loopback: everybody may do everything. */
  readonly roles?: string | undefined;
  /** PEM files, `{id}` in a path stands for the id; with `ca`, clients may show a certificate of that authority. `"off"` where a network is trusted. */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /** Web pages of these origins may call, such as `https://console.example.org`, beside those of the same address. */
  readonly origins?: readonly string[] | undefined;
}

export interface AdminOptions {
  /** `host:port`. Off loopback the pages are read-only. */
  readonly address: string;
  /** PEM files, `{id}` in a path stands for the id; with `ca`, callers show a certificate of that authority. `"off"` where a network is trusted. Off loopback it must be said. */
  readonly tls?: "off" | { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  /** Only `/status`, `/metrics`, `/healthz` and `/readyz`: nothing acts on the member. Default: true off loopback. */
  readonly readOnly?: boolean | undefined;
}

export type MulticastPlace = Omit<UdpPlace, "tls">;

export interface ServiceLimits {
  /** Elections, locks and channels of a cluster, each counted once whatever it is used for. Default 10,000. */
  readonly maxInstances: number;
  /** Who waits for one lock in this process, and what waits to be sent on one channel. Default 10,000. */
  readonly maxWaiters: number;
}

/** One member of a cluster, in this process. */
export interface Member extends StateApi, AsyncDisposable {
  readonly id: NodeId;
  /** `host:port` of the admin pages, as a base URL; null where there are none. */
  readonly admin: string | null;
  /** Who the members are, and how that is changed. */
  readonly cluster: ClusterMembers;
  /** Where clients that are no members are served, as a base URL; null where they are not. */
  readonly clients: string | null;
  /** Where etcd's API is served, as a base URL; null where it is not. */
  readonly etcd: string | null;
  /** Aborted as this member begins to leave, or fails; its reason, a `CoordinationError`, says which. */
  readonly signal: AbortSignal;

  /**
   * The election of that name: one leader at a time among the members that campaign in it.
   *
   * @example
   * await member.election("nightly-report").lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws UsageError for a name or option that cannot be.
   */
  election<M = unknown>(name: string, options?: ElectionOptions<M>): Election<M>;

  /**
   * The lock of that name: one holder at a time among all members, and among all who ask in this process.
   *
   * @example
   * const lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
   * try {
   *   await charge({ token: lock.token, signal: lock.signal });
   * } finally {
   *   await lock.release();
   * }
   * @throws UsageError for a name or option that cannot be.
   */
  mutex(name: string): Mutex;

  /**
   * The channel of that name: what any member sends comes to all of them.
   *
   * @example
   * const room = member.channel<{ text: string }>("room", { order: "causal" });
   * await room.send({ text: "hello" });
   * for await (const { from, payload } of room) console.log(from, payload.text);
   * @throws UsageError for a name or option that cannot be, or that differs from what is in use.
   */
  channel<T = unknown>(name: string, options: ChannelOptions): Channel<T>;

  /**
   * Resolves once a lock or an election could be had: a majority of the members is heard of, and, with a `dataDir`, it is
   * known who leads their log.
   *
   * @throws CoordinationError `ready-timeout`, whose `phase` says what is missing (`no-majority`, `no-log-leader`),
   * `ready-aborted`, `member-left` or `member-failed`.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /** What happens to this member, from now on, until it leaves; it rejects if the member fails. Who reads too slowly loses the oldest and is told how many. */
  events(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<MemberEvent>;

  /** How things stand, as plain data. */
  status(): MemberStatus;

  /** Gives back what is held, steps down where it leads, and closes. Twice is once. */
  leave(): Promise<void>;
}

export interface ElectionOptions<M = unknown> {
  /** What the others are told of this member while it leads, such as its address. JSON data, at most 4,096 bytes. It belongs to the campaigns of this handle. */
  readonly metadata?: M | undefined;
}

export interface Mutex {
  readonly name: string;
  /**
   * Waits for the lock; callers of one process are served first come, first served. If the session of the member ends meanwhile, the call
   * waits on in the next session, behind all others. A rejected call leaves nothing behind: a grant that comes later is given back.
   * @throws UsageError `bad-option`; `other-setting` if the name is in use with another algorithm. CoordinationError, phase `never-acquired`:
   * `acquire-timeout`, `acquire-aborted`, `too-many-waiters`, `member-left`, `member-removed`, `member-failed`, `instance-refused`; of a client
   * `client-closed`, `client-refused`. Phase `never-sent`: `state-full`, and `forbidden` of a client.
   */
  acquire(options?: AcquireOptions): Promise<Grant>;
  /**
   * Acquires, works, and releases when the work has ended.
   * @throws as `acquire()` does; the error of the work; the reason of the grant's `signal`, such as `grant-lost`, if the work succeeded but
   * the lock was lost before it ended.
   */
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

export interface ReadyOptions {
  /** How long to wait at most. Default: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the wait ends. */
  readonly signal?: AbortSignal | undefined;
}

export interface Election<M = unknown> {
  readonly name: string;
  /** Who leads in this member's eyes; null while it knows of nobody. */
  readonly leader: NodeId | null;
  /**
   * Campaigns, and works while this member leads. When leadership is lost, `signal` is aborted; once the work has ended, the
   * member campaigns again, and works anew when it is elected anew. Work that ends while the member leads ends it all: the
   * member steps down, and what the work returned or threw is handed on.
   *
   * The work must end soon after its signal is aborted; what it returns or throws then does not count, unless it throws
   * something else than the signal's reason or an `AbortError`, which ends it all as well.
   * @throws CoordinationError `lead-aborted`, `member-left`, `member-failed`, `instance-refused`, and what `acquire()` of a lock would be
   * refused with, such as `forbidden` and `state-full`; UsageError `already-campaigning`.
   */
  lead<T>(work: (leadership: Leadership) => T | Promise<T>, options?: LeadOptions): Promise<T>;
  /** Who leads, at once and whenever it changes. Who reads slowly sees the latest only. It ends, or rejects, as watches of maps do. */
  watch(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<LeaderChange<M>>;
}

export interface LeadOptions {
  /** Aborted: the member stops campaigning, and leading. */
  readonly signal?: AbortSignal | undefined;
}

export type Leadership = Tenure & { readonly name: string };

export interface LeaderChange<M = unknown> {
  readonly leader: NodeId | null;
  /** Of that leader; null while nobody leads. */
  readonly token: number | null;
  /** What the leader gave as its `metadata`, in elections on the log; absent where it gave none. */
  readonly metadata?: M;
}

export type MemberEvent =
  /** Has not been heard of for too long, or is heard of again. */
  | { readonly type: "peer-suspected" | "peer-restored"; readonly node: NodeId }
  /**
   * Fewer than a majority can be heard of: what needs one stands still, and what is held will be lost. Or a majority can, for
   * the first time or again.
   */
  | { readonly type: "quorum-lost" | "quorum-gained"; readonly reachable: number; readonly members: number }
  /** Who leads in an election of that name that this member runs; null while it knows of nobody. */
  | {
      readonly type: "leader-changed";
      readonly election: string;
      readonly leader: NodeId | null;
      readonly token: number | null;
    }
  /** Who leads the log of the replicated service; null while this member knows of nobody. */
  | { readonly type: "log-leader-changed"; readonly leader: NodeId | null; readonly term: number }
  /** This member's session of the replicated service is over: what it held there is lost. */
  | { readonly type: "session-lost"; readonly session: number }
  /** Commands wait here for `replicated()` to define that machine, so many bytes in all. With more than `maxBytes` the member stops. */
  | {
      readonly type: "machine-undefined";
      readonly machine: string;
      readonly bytes: number;
      readonly maxBytes: number;
    }
  /** Other members use the channel with other settings than this one wants. */
  | { readonly type: "instance-refused"; readonly kind: Kind; readonly name: string; readonly why: string }
  /** A node has another list of members, or one of the two has lost its journal: there is no link between them. */
  | {
      readonly type: "node-refused";
      readonly node: NodeId;
      readonly reason: "wrong-members" | "lost-journal";
      readonly why: string;
    }
  /** That is mended. */
  | { readonly type: "node-accepted"; readonly node: NodeId }
  /** The list of members has changed: who is on it, and who votes. */
  | {
      readonly type: "members-changed";
      readonly members: readonly NodeId[];
      readonly voters: readonly NodeId[];
      readonly revision: number;
    }
  /** This process, or the whole machine, stood still for so long. */
  | { readonly type: "stalled"; readonly forMs: number }
  /** Who reads these events was too slow: so many were lost. */
  | { readonly type: "dropped"; readonly events: number };

export type Kind = "election" | "mutex" | "channel";

export interface MemberStatus extends Standing {
  readonly id: NodeId;
  readonly cluster: string;
  readonly address: string;
  readonly state: "joined" | "left" | "failed";
  readonly peers: readonly (PeerStatus & { readonly suspected: boolean })[];
  /** Who votes, by the list that this member knows; empty of a newcomer that knows none. */
  readonly voters: readonly NodeId[];
  /** How many members have been heard and are not suspected, this one included. */
  readonly reachable: number;
  /** Whether these are a majority. */
  readonly hasQuorum: boolean;
  /** Who leads the log of the replicated service; null while this member knows of none. Leaders of elections are in `instances`. */
  readonly leader: NodeId | null;
  readonly instances: readonly InstanceStatus[];
  /** How the replicated service stands here. */
  readonly shared: StateStatus;
  readonly uptimeMs: number;
}

export interface InstanceStatus {
  readonly kind: Kind;
  readonly name: string;
  readonly role: string;
  /** Of an election: who leads in this member's eyes. Otherwise null. */
  readonly leader: NodeId | null;
  /** Of what this member holds; null if it holds nothing. */
  readonly token: number | null;
  readonly isHeld: boolean;
  /** Who waits for it in this process; of a channel, what waits to be sent. */
  readonly waiting: number;
  /** Of a channel, how it stands here. */
  readonly channel?: ChannelStatus;
}
