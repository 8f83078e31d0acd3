/** Counters of a member. They are plain numbers on the hot path, which Prometheus reads on each scrape. */
import type { LossReason } from "../trace/entry.ts";
import type { Refusal } from "./transport/frames.ts";

/** Why incoming bytes or connections were rejected. */
export type RefusedReason =
  | Refusal
  | "handshake-timeout"
  | "too-many-strangers"
  | "tls"
  | "bad-command"
  | "instance"
  | "too-many-sessions"
  | "forged"
  | "replayed"
  | "old-run";

export interface Counts {
  messagesSent: Tally<string>;
  messagesReceived: Tally<string>;
  /** Received messages by peer. */
  messagesFrom: Tally<string>;
  /** Messages received again after a reconnect, and dropped. */
  duplicates: number;
  /** By peer: values that the peer sent as signed by a node that did not sign them. */
  wrongSignatures: Tally<string>;
  /** By node: proofs of Byzantine behavior. */
  exposed: Tally<string>;
  lost: Tally<LossReason>;
  refused: Tally<RefusedReason>;
  reconnects: number;
  bytesSent: number;
  bytesReceived: number;
  /** IP multicast datagrams, counted once for all receivers. */
  datagramsSent: number;
  datagramsReceived: number;
  /** Datagrams that the system did not accept. */
  datagramsUnsent: number;
  /** Fragmented messages that never became complete. */
  messagesIncomplete: number;
  readonly locks: LockCounts;
  readonly leaderships: LeadershipCounts;
  /** Lost sessions of shared state. Their locks and leaderships were lost, too. */
  readonly sessionsLost: { count: number };
  readonly log: LogCounts;
  readonly clients: ClientCounts;
  readonly etcd: EtcdCounts;
  readonly journal: JournalCounts;
  /** Days until each certificate of this member expires, as of the last check. */
  readonly certificateDays: Tally<CertificateUse>;
}
/** The peers that see a certificate: members, clients, or callers of the admin API. */
export type CertificateUse = "members" | "clients" | "admin";
export type Tally<K extends string> = Partial<Record<K, number>>;

/** Counters of the locks that this process requested. */
export interface LockCounts {
  acquired: number;
  released: number;
  lost: number;
  timedOut: number;
  readonly acquiring: Durations;
}

/** Counters of the replicated log, as this member sees it. */
export interface LogCounts {
  /** Terms that began with a leader, whether a new one or the same member again. */
  leaderChanges: number;
  /** From the time this member receives a command until it is committed and applied here. */
  readonly committing: Durations;
  /** From a linearizable read until its answer. */
  readonly reading: Durations;
  /** How long a step of taking or installing a snapshot blocked this member. */
  readonly snapshots: Durations;
}

/** Counters of clients (processes that are not members). */
export interface ClientCounts {
  /** Clients connected to this member now. */
  connected: number;
  /** Maps watched by clients, counted once per client. */
  watching: number;
  connections: number;
  commands: number;
  reads: number;
  /** Requests over HTTP. */
  requests: number;
  refused: number;
  /** Clients disconnected because they read too slowly. */
  dropped: number;
}

/** Counters of clients of the etcd API. */
export interface EtcdCounts {
  connected: number;
  /** By method, such as `KV/Put`. */
  calls: Tally<string>;
  /** Calls in progress, including streams. */
  open: number;
  watches: number;
  /** By reason: error responses and rejected connections. */
  refused: Tally<string>;
}

/** Counters of the elections that this process won, and of leaderships it lost. */
export interface LeadershipCounts {
  won: number;
  lost: number;
}

export interface JournalCounts {
  bytes: number;
  records: number;
  failures: number;
  readonly syncing: Durations;
}

/** A histogram of durations: counts per upper bound in seconds, the total count and the sum. */
export interface Durations {
  readonly within: number[];
  seconds: number;
  count: number;
}

/** Upper bounds in seconds. Longer durations are counted in the last bucket. */
export const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function newCounts(): Counts {
  return {
    messagesSent: {},
    messagesReceived: {},
    messagesFrom: {},
    duplicates: 0,
    wrongSignatures: {},
    exposed: {},
    lost: {},
    refused: {},
    reconnects: 0,
    bytesSent: 0,
    bytesReceived: 0,
    datagramsSent: 0,
    datagramsReceived: 0,
    datagramsUnsent: 0,
    messagesIncomplete: 0,
    locks: { acquired: 0, released: 0, lost: 0, timedOut: 0, acquiring: newDurations() },
    leaderships: { won: 0, lost: 0 },
    sessionsLost: { count: 0 },
    log: { leaderChanges: 0, committing: newDurations(), reading: newDurations(), snapshots: newDurations() },
    clients: { connected: 0, watching: 0, connections: 0, commands: 0, reads: 0, requests: 0, refused: 0, dropped: 0 },
    etcd: { connected: 0, calls: {}, open: 0, watches: 0, refused: {} },
    journal: { bytes: 0, records: 0, failures: 0, syncing: newDurations() },
    certificateDays: {},
  };
}

function newDurations(): Durations {
  return { within: Array.from({ length: durationBounds.length + 1 }, () => 0), seconds: 0, count: 0 };
}

export function count<K extends string>(tally: Tally<K>, key: K, by = 1): void {
  tally[key] = (tally[key] ?? 0) + by;
}

/** Counts a protocol message of this type. */
export function countReceived({ messagesReceived, messagesFrom }: Counts, from: number, type: string): void {
  count(messagesReceived, type);
  count(messagesFrom, String(from));
}

export function measure(durations: Durations, ms: number): void {
  const seconds = ms / 1_000;
  const bound = durationBounds.findIndex((most) => seconds <= most);
  const place = bound === -1 ? durationBounds.length : bound;
  durations.within[place] = (durations.within[place] ?? 0) + 1;
  durations.seconds += seconds;
  durations.count += 1;
}
