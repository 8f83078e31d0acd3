/**
 * Join a cluster from a Node process: locks, elections, shared state and channels.
 *
 * ```ts
 * import { join } from "coterie";
 *
 * const member = await join({ id: 1, members: { 1: "127.0.0.1:7131" }, dataDir: "./data" });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * ```
 *
 * @module coterie
 */

export type { Client, ClientStatus, ConnectOptions } from "./client/client.ts";
export { connect, type NodeConnectOptions } from "./client/node.ts";
export { type DiscoverOptions, discover } from "./cluster/discover.ts";
export { join } from "./cluster/join.ts";
export type {
  AcquireOptions,
  AdminOptions,
  ClientsOptions,
  Election,
  ElectionOptions,
  EtcdOptions,
  Grant,
  InstanceStatus,
  JoinOptions,
  Kind,
  LeaderChange,
  Leadership,
  LeadOptions,
  Member,
  MemberEvent,
  MemberStatus,
  Mutex,
  ReadyOptions,
  ServiceLimits,
  Tenure,
} from "./cluster/services/api.ts";
export type {
  Channel,
  ChannelMessage,
  ChannelOptions,
  ChannelStart,
  ChannelState,
  ChannelStatus,
  ChannelView,
  Order,
  ReadOptions,
  SendOptions,
  Sent,
  StateReadOptions,
  Transport,
} from "./cluster/services/channel-api.ts";
export type {
  AddOptions,
  ClusterMember,
  ClusterMembers,
  MemberChange,
  NewMember,
} from "./cluster/services/cluster-api.ts";
export { type CoordinationCode, CoordinationError, type Phase } from "./cluster/services/coordination-error.ts";
export type { EngineJoinOptions, EngineMember, ExternalEngine } from "./cluster/services/external-engine.ts";
export { guard, StaleToken } from "./cluster/services/guard.ts";
export type {
  Barrier,
  BarrierOptions,
  CallOptions,
  Change,
  Entry,
  PermitOptions,
  PutOptions,
  QueueItem,
  Range,
  RangeOptions,
  ReadWriteLock,
  Replicated,
  Semaphore,
  SemaphoreOptions,
  SharedCounter,
  SharedMap,
  SharedQueue,
  StateMachine as ReplicatedMachine,
  StateStatus,
  Transaction,
  WatchOptions,
} from "./cluster/services/state/state-api.ts";
export { type Span, type Tracer, traced } from "./cluster/traced.ts";
export * from "./core/index.ts";
export { createLog, type Log, type LogFields, type Logger, type LogLevel } from "./runtime/log.ts";
