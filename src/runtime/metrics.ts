/** What a member counts. Plain numbers on the hot path; Prometheus reads them when it asks. */
import type { LossReason } from "../trace/entry.ts";
import type { Refusal } from "./transport/frames.ts";

/** Why bytes or connections from outside were turned away. */
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
  /** The same by peer. */
  messagesFrom: Tally<string>;
  /** Received again after a reconnect, and dropped. */
  duplicates: number;
  /** Values that a peer sent in the name of a node that has not signed them, by peer. */
  wrongSignatures: Tally<string>;
  /** Proofs that a node lies, by node. */
  exposed: Tally<string>;
  lost: Tally<LossReason>;
  refused: Tally<RefusedReason>;
  reconnects: number;
  bytesSent: number;
  bytesReceived: number;
  /** Of IP multicast: one for all receivers. */
  datagramsSent: number;
  datagramsReceived: number;
  /** The system did not take them. */
  datagramsUnsent: number;
  /** Messages in fragments, some of which never came. */
  messagesIncomplete: number;
  readonly locks: LockCounts;
  readonly leaderships: LeadershipCounts;
  /** Sessions of shared state that ended, with what they held. */
  readonly sessionsLost: { count: number };
  readonly log: LogCounts;
  readonly clients: ClientCounts;
  readonly etcd: EtcdCounts;
  readonly journal: JournalCounts;
  /** Until the certificates run out that this member shows, as it looked last. */
  readonly certificateDays: Tally<CertificateUse>;
}
/** To members, to clients, and on the admin pages. */
export type CertificateUse = "members" | "clients" | "admin";
export type Tally<K extends string> = Partial<Record<K, number>>;

/** Of the locks that this process asked for. */
export interface LockCounts {
  acquired: number;
  released: number;
  lost: number;
  timedOut: number;
  readonly acquiring: Durations;
}

/** Of the replicated log, as this member sees it. */
export interface LogCounts {
  /** Terms in which somebody else than before led, or the same member again. */
  leaderChanges: number;
  /** From a command that was given to this member until it was committed and applied here. */
  readonly committing: Durations;
  /** From a linearizable read until its answer. */
  readonly reading: Durations;
  /** For how long a step of taking a snapshot, or putting one in place of the state, kept this member from all else. */
  readonly snapshots: Durations;
}

/** Of clients that are no members. */
export interface ClientCounts {
  /** Who speaks to this member now. */
  connected: number;
  /** Maps that they watch, of each client once. */
  watching: number;
  connections: number;
  commands: number;
  reads: number;
  /** Over HTTP. */
  requests: number;
  refused: number;
  /** They read too slowly. */
  dropped: number;
}

/** Of clients of etcd's API. */
export interface EtcdCounts {
  connected: number;
  /** By their name, such as `KV/Put`. */
  calls: Tally<string>;
  /** Calls under way, streams among them. */
  open: number;
  watches: number;
  /** Answers that were errors, and what was turned away, by reason. */
  refused: Tally<string>;
}

/** Of the elections in which this process works while it leads. */
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

/** How long something took: how often so long, by the bound of seconds that it did not pass, and in all. */
export interface Durations {
  readonly within: number[];
  seconds: number;
  count: number;
}

/** In seconds; whatever took longer is counted at the end. */
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

/** A protocol message, of this type. */
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
