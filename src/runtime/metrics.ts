/** What a member counts. Plain numbers on the hot path; Prometheus reads them when it asks. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
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
  /** Received again after a reconnect, and dropped. */
  duplicates: number;
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
  /** Messages in pieces, some of which never came. */
  messagesIncomplete: number;
}
export type Tally<K extends string> = Partial<Record<K, number>>;

export function newCounts(): Counts {
  return {
    messagesSent: {},
    messagesReceived: {},
    duplicates: 0,
    lost: {},
    refused: {},
    reconnects: 0,
    bytesSent: 0,
    bytesReceived: 0,
    datagramsSent: 0,
    datagramsReceived: 0,
    datagramsUnsent: 0,
    messagesIncomplete: 0,
  };
}

export function count<K extends string>(tally: Tally<K>, key: K, by = 1): void {
  tally[key] = (tally[key] ?? 0) + by;
}

export interface Gauges {
  /** Bytes that wait for a peer or for its acknowledgement. */
  queuedBytes(): number;
  openLinks(): number;
  traceListeners(): number;
}

let ofProcess: Registry | undefined;

/** What Node says of the process. Its observers cannot be ended, so all members of a process share one set. */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

/** The text that `GET /metrics` answers. */
export function metricsPage(counts: Counts, gauges: Gauges): { contentType: string; text(): Promise<string> } {
  const registry = new Registry();
  const shared = processMetrics();
  tallied(
    registry,
    "coterie_messages_sent_total",
    "Protocol messages sent, by type.",
    "type",
    () => counts.messagesSent,
  );
  tallied(
    registry,
    "coterie_messages_received_total",
    "Protocol messages received, by type.",
    "type",
    () => counts.messagesReceived,
  );
  tallied(
    registry,
    "coterie_messages_lost_total",
    "Messages that will never arrive, by reason.",
    "reason",
    () => counts.lost,
  );
  tallied(
    registry,
    "coterie_refused_total",
    "Connections, frames and commands turned away, by reason.",
    "reason",
    () => counts.refused,
  );
  plain(
    registry,
    "coterie_duplicates_total",
    "Messages received again after a reconnect, and dropped.",
    () => counts.duplicates,
  );
  plain(registry, "coterie_reconnects_total", "Times a link to a peer was opened again.", () => counts.reconnects);
  plain(registry, "coterie_bytes_sent_total", "Bytes handed to sockets.", () => counts.bytesSent);
  plain(registry, "coterie_bytes_received_total", "Bytes read from sockets.", () => counts.bytesReceived);
  ofDatagrams(registry, counts);
  gauge(
    registry,
    "coterie_queued_bytes",
    "Bytes that wait for peers or for their acknowledgement.",
    gauges.queuedBytes,
  );
  gauge(registry, "coterie_open_links", "Peers to which a link is open.", gauges.openLinks);
  gauge(registry, "coterie_trace_listeners", "Who listens to the trace.", gauges.traceListeners);
  return {
    contentType: registry.contentType,
    text: async () => `${await registry.metrics()}${await shared.metrics()}`,
  };
}

function ofDatagrams(registry: Registry, counts: Counts): void {
  const rows: readonly [string, string, () => number][] = [
    ["datagrams_sent", "Datagrams that were multicast, each to all members.", () => counts.datagramsSent],
    ["datagrams_received", "Datagrams of other members that were heard.", () => counts.datagramsReceived],
    ["datagrams_unsent", "Datagrams that the system did not take.", () => counts.datagramsUnsent],
    ["messages_incomplete", "Messages in pieces, some of which never came.", () => counts.messagesIncomplete],
  ];
  for (const [name, help, value] of rows) plain(registry, `coterie_${name}_total`, help, value);
}

function tallied(registry: Registry, name: string, help: string, label: string, tally: () => Tally<string>): void {
  new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [key, value] of Object.entries(tally())) this.inc({ [label]: key }, value);
    },
  });
}

function plain(registry: Registry, name: string, help: string, value: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(value());
    },
  });
}

function gauge(registry: Registry, name: string, help: string, value: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(value());
    },
  });
}
