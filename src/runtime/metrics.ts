/** A member's counters. On the hot path they are plain numbers, which Prometheus reads on each scrape. */
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
  /** Messages that were received again after a reconnect, and dropped. */
  duplicates: number;
  /** Values that a peer sent as signed by a node that had not signed them, by peer. */
  wrongSignatures: Tally<string>;
  /** Proofs of Byzantine behavior, by node. */
  exposed: Tally<string>;
  lost: Tally<LossReason>;
  refused: Tally<RefusedReason>;
  reconnects: number;
  bytesSent: number;
  bytesReceived: number;
  /** IP multicast datagrams, counted once for all receivers. */
  datagramsSent: number;
  datagramsReceived: number;
  /** Datagrams that the operating system did not accept. */
  datagramsUnsent: number;
  /** Fragmented messages that never arrived in full. */
  messagesIncomplete: number;
  readonly locks: LockCounts;
  readonly leaderships: LeadershipCounts;
  /** Sessions lost by this member's shared state, along with their locks and leaderships. */
  readonly sessionsLost: { count: number };
  readonly log: LogCounts;
  readonly clients: ClientCounts;
  readonly etcd: EtcdCounts;
  readonly journal: JournalCounts;
  /** How many days were left until each of this member's certificates expires, as of the last check. */
  readonly certificateDays: Tally<CertificateUse>;
}
/** The recipients of a certificate: members, clients, or callers of the admin API or of etcd's API. */
export type CertificateUse = "members" | "clients" | "admin" | "etcd";
/** Counts by label. A missing label counts as 0. */
export type Tally<K extends string> = Partial<Record<K, number>>;

/** Counters for the locks that this process has requested. */
export interface LockCounts {
  acquired: number;
  released: number;
  lost: number;
  timedOut: number;
  readonly acquiring: Durations;
}

/** Counters for the replicated log, as seen by this member. */
export interface LogCounts {
  /** The number of terms that elected a leader, even if it is the same member as before. */
  leaderChanges: number;
  /** The time from when this member receives a command until the command is committed and applied here. */
  readonly committing: Durations;
  /** The time from the start of a linearizable read until its answer. */
  readonly reading: Durations;
  /** How long each step of taking or installing a snapshot blocked this member. */
  readonly snapshots: Durations;
}

/** Counters for clients (processes that are not members). */
export interface ClientCounts {
  /** Clients currently connected to this member. */
  connected: number;
  /** Maps watched by clients, counted once per client. */
  watching: number;
  connections: number;
  commands: number;
  reads: number;
  /** HTTP requests. */
  requests: number;
  refused: number;
  /** Clients that were disconnected because they read too slowly. */
  dropped: number;
}

/** Counters for clients of the etcd API. */
export interface EtcdCounts {
  connected: number;
  /** Calls by method, such as `KV/Put`. */
  calls: Tally<string>;
  /** Calls in progress, including streams. */
  open: number;
  watches: number;
  /** Error responses and rejected connections, by reason. */
  refused: Tally<string>;
}

/** Counters for the elections that this process has won and the leaderships it has lost. */
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

/** A histogram of durations: counts per upper bound (in seconds), the total count and the sum. */
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

/** Adds to the counter for a label. */
export function count<K extends string>(tally: Tally<K>, key: K, by = 1): void {
  tally[key] = (tally[key] ?? 0) + by;
}

/** Counts a received protocol message, by its type and its sender. */
export function countReceived({ messagesReceived, messagesFrom }: Counts, from: number, type: string): void {
  count(messagesReceived, type);
  count(messagesFrom, String(from));
}

/** Adds a duration to a histogram. */
export function measure(durations: Durations, ms: number): void {
  const seconds = ms / 1_000;
  const bound = durationBounds.findIndex((most) => seconds <= most);
  const place = bound === -1 ? durationBounds.length : bound;
  durations.within[place] = (durations.within[place] ?? 0) + 1;
  durations.seconds += seconds;
  durations.count += 1;
}
