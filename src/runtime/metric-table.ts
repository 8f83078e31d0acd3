/**
 * The table of all metrics and how to read each. It does not need Prometheus' own client, since a registry only asks for
 * values.
 */
import { UsageError } from "../core/errors.ts";
import type { PeerStatus } from "./admin-pages.ts";
import { type Counts, type Durations, durationBounds, type Tally } from "./metrics.ts";

/** A `Registry` of prom-client, or a registry with the same interface. */
export interface MetricRegistry {
  registerMetric(metric: never): void;
  removeSingleMetric(name: string): void;
}

interface Named {
  readonly name: string;
  readonly help: string;
}
export type Metric = Named &
  (
    | { readonly type: "counter" | "gauge"; readonly read: () => number }
    | { readonly type: "counter" | "gauge"; readonly label: string; readonly read: () => Tally<string> }
    | { readonly type: "histogram"; readonly read: () => Durations }
  );

/** Current values of the links to peers. */
export interface LinkGauges {
  /** Bytes queued for a peer or not yet acknowledged by it. */
  queuedBytes(): number;
  openLinks(): number;
}

export interface ServiceGauges {
  locksHeld(): number;
  lockWaiters(): number;
  leadershipsHeld(): number;
  hasQuorum(): boolean;
  reachable(): number;
  suspected(): number;
  stateCalls(): number;
  hasLogLeader(): boolean;
  /** How many instances are open, by kind. */
  instances(): Tally<string>;
  watches(): number;
  /** Null if this member has no journal, and therefore does not run the log. */
  log(): LogGauges | null;
}

/** Current values of the replicated log at this member. */
export interface LogGauges {
  readonly term: number;
  readonly isLeader: boolean;
  readonly lastIndex: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** Entries after the last snapshot. */
  readonly entries: number;
  /** By peer. Empty if this member does not lead. */
  readonly lag: Tally<string>;
  readonly sessions: number;
  readonly stateBytes: number;
  readonly stateBytesLimit: number;
  /** The size of commands for state machines that this member has not defined. */
  readonly undefinedBytes: number;
  /** The size of the last snapshot. */
  readonly snapshotChars: number;
}

/** The gauges of links to peers, from the status that a transport reports. */
export function linksOf(peers: () => readonly Pick<PeerStatus, "link" | "queuedBytes">[]): LinkGauges {
  return {
    queuedBytes: () => peers().reduce((sum, peer) => sum + peer.queuedBytes, 0),
    openLinks: () => peers().filter((peer) => peer.link === "open").length,
  };
}

/** Metrics of every member, regardless of its protocol. */
export function networkMetrics(counts: Counts, gauges: LinkGauges): readonly Metric[] {
  return [
    tally("messages_sent_total", "Protocol messages sent, by type.", "type", () => counts.messagesSent),
    tally("messages_received_total", "Protocol messages received, by type.", "type", () => counts.messagesReceived),
    tally("messages_from_total", "Protocol messages received, by peer.", "peer", () => counts.messagesFrom),
    tally("messages_lost_total", "Messages that will never arrive, by reason.", "reason", () => counts.lost),
    tally("refused_total", "Connections, frames and commands rejected, by reason.", "reason", () => counts.refused),
    counter("duplicates_total", "Messages received again after a reconnect, and dropped.", () => counts.duplicates),
    tally(
      "wrong_signatures_total",
      "Ignored values, which were not signed by the node that they name, by sending peer.",
      "peer",
      () => counts.wrongSignatures,
    ),
    tally(
      "exposed_total",
      "Proofs that a node is Byzantine: statements that no correct node signs. By node.",
      "peer",
      () => counts.exposed,
    ),
    counter("reconnects_total", "Times a link to a peer was opened again.", () => counts.reconnects),
    counter("bytes_sent_total", "Bytes handed to sockets.", () => counts.bytesSent),
    counter("bytes_received_total", "Bytes read from sockets.", () => counts.bytesReceived),
    counter("datagrams_sent_total", "Datagrams multicast to all members.", () => counts.datagramsSent),
    counter("datagrams_received_total", "Datagrams received from other members.", () => counts.datagramsReceived),
    counter(
      "datagrams_unsent_total",
      "Datagrams that the operating system did not accept.",
      () => counts.datagramsUnsent,
    ),
    counter(
      "messages_incomplete_total",
      "Fragmented messages that never became complete.",
      () => counts.messagesIncomplete,
    ),
    gauge("queued_bytes", "Bytes waiting to be sent or acknowledged.", gauges.queuedBytes),
    gauge("open_links", "Peers with an open link.", gauges.openLinks),
    {
      ...named("certificate_days_left", "Time until a certificate of this member expires, by use."),
      type: "gauge",
      label: "use",
      read: () => counts.certificateDays,
    },
    ...journalMetrics(counts),
  ];
}

function journalMetrics({ journal }: Counts): readonly Metric[] {
  return [
    counter("journal_written_bytes_total", "Bytes written to the journal.", () => journal.bytes),
    counter("journal_records_total", "Records made durable in the journal.", () => journal.records),
    counter("journal_failures_total", "Failures of the journal. The member stops.", () => journal.failures),
    durations("journal_sync_seconds", "Time until a write to the journal was durable.", () => journal.syncing),
  ];
}

/** Metrics of a member created by `join()`. None has a label or name per lock, election or channel. */
export function serviceMetrics(
  { locks, leaderships, sessionsLost, log, clients, etcd }: Counts,
  now: ServiceGauges,
): readonly Metric[] {
  return [
    gauge("locks_held", "Locks that this process holds.", now.locksHeld),
    gauge("lock_waiters", "Waiting calls of acquire().", now.lockWaiters),
    counter("lock_acquired_total", "Locks acquired by this process.", () => locks.acquired),
    counter("lock_released_total", "Locks released by this process.", () => locks.released),
    counter("lock_lost_total", "Locks lost while this process held them.", () => locks.lost),
    counter("lock_timeouts_total", "Calls of acquire() that ended with their timeoutMs.", () => locks.timedOut),
    durations("lock_acquire_seconds", "Time that acquire() took to get the lock.", () => locks.acquiring),
    gauge("leaderships_held", "Elections that this process leads with running work.", now.leadershipsHeld),
    counter("leadership_won_total", "Times the work of lead() started.", () => leaderships.won),
    counter("leadership_lost_total", "Leaderships lost while the work of lead() ran.", () => leaderships.lost),
    gauge("quorum", "1 if this member reaches a majority, otherwise 0.", () => Number(now.hasQuorum())),
    gauge("members_reachable", "Reachable members, including this one.", now.reachable),
    gauge("peers_suspected", "Peers that are suspected of having crashed.", now.suspected),
    gauge("state_calls_waiting", "Calls to shared state in progress.", now.stateCalls),
    gauge("state_leader_known", "1 if this member knows the leader of the log of shared state, otherwise 0.", () =>
      Number(now.hasLogLeader()),
    ),
    counter("state_sessions_lost_total", "Times the session of this member ended.", () => sessionsLost.count),
    ...logMetrics(log, now),
    ...clientMetrics(clients),
    ...etcdMetrics(etcd),
    {
      ...named("instances", "Elections, locks and channels open here."),
      type: "gauge",
      label: "kind",
      read: now.instances,
    },
  ];
}

/** Metrics of the replicated log and of the state it stores. */
function logMetrics(counts: Counts["log"], { log, watches }: ServiceGauges): readonly Metric[] {
  const of = (name: string, help: string, read: (log: LogGauges) => number): Metric =>
    gauge(name, help, () => read(log() ?? NO_LOG));
  return [
    of("log_term", "Term of the log, as this member knows it.", ({ term }) => term),
    of("log_leads", "1 if this member leads the log, otherwise 0.", ({ isLeader }) => Number(isLeader)),
    counter("log_leader_changes_total", "Times a member became leader of the log.", () => counts.leaderChanges),
    of("log_last_index", "Index of the last entry in the log of this member.", ({ lastIndex }) => lastIndex),
    of("log_commit_index", "Index of the last entry known to be committed.", ({ commitIndex }) => commitIndex),
    of("log_applied_index", "Index of the last applied entry.", ({ appliedIndex }) => appliedIndex),
    of("log_entries", "Entries that no snapshot covers yet.", ({ entries }) => entries),
    {
      ...named(
        "log_follower_lag_entries",
        "Entries that a follower is not known to have, by peer. Reported by the leader.",
      ),
      type: "gauge",
      label: "peer",
      read: () => (log() ?? NO_LOG).lag,
    },
    durations(
      "log_commit_seconds",
      "Time from a command until it was committed and applied here.",
      () => counts.committing,
    ),
    durations("log_read_seconds", "Duration of linearizable reads.", () => counts.reading),
    durations(
      "snapshot_seconds",
      "Time that the member was blocked by one step of taking or installing a snapshot.",
      () => counts.snapshots,
    ),
    of("snapshot_chars", "Size of the last snapshot, in characters.", ({ snapshotChars }) => snapshotChars),
    of("state_bytes", "Bytes of all shared keys, values and items.", ({ stateBytes }) => stateBytes),
    of(
      "state_limit_bytes",
      "Limit on the bytes of shared keys, values and items.",
      ({ stateBytesLimit }) => stateBytesLimit,
    ),
    of(
      "state_undefined_bytes",
      "Bytes of commands that wait here until replicated() defines their state machines.",
      ({ undefinedBytes }) => undefinedBytes,
    ),
    of("state_sessions", "Sessions of members and clients in the log.", ({ sessions }) => sessions),
    gauge("state_watches", "Open watches of maps at this member.", watches),
  ];
}

const NO_LOG: LogGauges = {
  term: 0,
  isLeader: false,
  lastIndex: 0,
  commitIndex: 0,
  appliedIndex: 0,
  entries: 0,
  lag: {},
  sessions: 0,
  stateBytes: 0,
  stateBytesLimit: 0,
  undefinedBytes: 0,
  snapshotChars: 0,
};

/** Metrics of clients (processes that are not members). */
function clientMetrics(clients: Counts["clients"]): readonly Metric[] {
  return [
    gauge("clients_connected", "Clients connected to this member.", () => clients.connected),
    counter("client_connections_total", "Connections of clients.", () => clients.connections),
    counter("client_commands_total", "Commands of clients, including repeated proposals.", () => clients.commands),
    counter("client_reads_total", "Reads of clients.", () => clients.reads),
    counter("client_requests_total", "Requests over HTTP.", () => clients.requests),
    counter("client_refused_total", "Rejected clients and requests.", () => clients.refused),
    counter("client_dropped_total", "Clients disconnected because they read too slowly.", () => clients.dropped),
  ];
}

/** Metrics of clients of the etcd API. */
function etcdMetrics(etcd: Counts["etcd"]): readonly Metric[] {
  return [
    gauge("etcd_connections", "Connections of etcd's clients.", () => etcd.connected),
    tally("etcd_calls_total", "Calls of etcd's API, by name.", "call", () => etcd.calls),
    gauge("etcd_calls_open", "Calls of etcd's API in progress, including streams.", () => etcd.open),
    gauge("etcd_watches", "Watches of etcd's clients.", () => etcd.watches),
    tally(
      "etcd_refused_total",
      "Calls of etcd's API that ended with an error, by reason.",
      "reason",
      () => etcd.refused,
    ),
  ];
}

const named = (name: string, help: string): Named => ({ name: `coterie_${name}`, help });

const counter = (name: string, help: string, read: () => number): Metric => ({
  ...named(name, help),
  type: "counter",
  read,
});

const gauge = (name: string, help: string, read: () => number): Metric => ({
  ...named(name, help),
  type: "gauge",
  read,
});

const tally = (name: string, help: string, label: string, read: () => Tally<string>): Metric => ({
  ...named(name, help),
  type: "counter",
  label,
  read,
});

const durations = (name: string, help: string, read: () => Durations): Metric => ({
  ...named(name, help),
  type: "histogram",
  read,
});

export const traceListeners = (read: () => number): Metric =>
  gauge("trace_listeners", "Clients that read the trace.", read);

/**
 * Adds the metrics to a registry: all, or none if one fails.
 * @returns a function that removes them
 * @throws UsageError if the registry already has a metric of that name
 */
export function register(registry: MetricRegistry, metrics: readonly Metric[]): () => void {
  const taken: string[] = [];
  const remove = (): void => {
    for (const name of taken.splice(0)) registry.removeSingleMetric(name);
  };
  for (const metric of metrics) {
    try {
      registry.registerMetric(new Registered(metric) as never);
    } catch (error) {
      remove();
      const text = `expected registry of join() to accept the metric ${metric.name}, but it rejects it: give each member of a process its own registry, and call leave() on a failed member before its successor joins`;
      throw new UsageError("registry-taken", text, { cause: error });
    }
    taken.push(metric.name);
  }
  return remove;
}

interface Value {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * The interface that a prom-client registry expects of a metric. One per registry, as an OpenMetrics registry renames its
 * counters.
 */
class Registered {
  name: string;
  readonly help: string;
  readonly type: Metric["type"];
  /** How prom-client's cluster support combines the values of several processes. */
  readonly aggregator = "sum";
  readonly #metric: Metric;

  constructor(metric: Metric) {
    this.#metric = metric;
    this.name = metric.name;
    this.help = metric.help;
    this.type = metric.type;
  }

  get() {
    const { name, help, type, aggregator } = this;
    return Promise.resolve({ name, help, type, aggregator, values: valuesOf(this.#metric) });
  }

  /** Does nothing: others must not reset a member's counters. */
  reset(): void {}
}

function valuesOf(metric: Metric): readonly Value[] {
  if (metric.type === "histogram") return bucketsOf(metric.name, metric.read());
  if (!("label" in metric)) return [{ labels: {}, value: metric.read() }];
  return Object.entries(metric.read()).map(([key, value = 0]) => ({ labels: { [metric.label]: key }, value }));
}

function bucketsOf(name: string, { within, seconds, count }: Durations): readonly Value[] {
  let value = 0;
  const buckets = within.map((more, place) => {
    value += more;
    return { metricName: `${name}_bucket`, labels: { le: durationBounds[place] ?? "+Inf" }, value };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: {}, value: seconds },
    { metricName: `${name}_count`, labels: {}, value: count },
  ];
}
