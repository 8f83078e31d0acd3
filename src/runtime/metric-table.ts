/**
 * The table of all metrics, with the functions that read their values. It does not import `prom-client`, since a
 * registry only needs objects with the same interface.
 */
import { UsageError } from "../core/errors.ts";
import type { PeerStatus } from "./admin-pages.ts";
import { type Counts, type Durations, durationBounds, type Tally } from "./metrics.ts";

/** A prom-client `Registry`, or one with the same interface. */
export interface MetricRegistry {
  registerMetric(metric: never): void;
  removeSingleMetric(name: string): void;
}

interface Named {
  readonly name: string;
  readonly help: string;
}
/** A metric, with a function that reads its value. */
export type Metric = Named &
  (
    | { readonly type: "counter" | "gauge"; readonly read: () => number }
    | { readonly type: "counter" | "gauge"; readonly label: string; readonly read: () => Tally<string> }
    | { readonly type: "histogram"; readonly read: () => Durations }
  );

/** Current values for the links to peers. */
export interface LinkGauges {
  /** Returns the number of bytes that are queued for peers or that they have not yet acknowledged. */
  queuedBytes(): number;
  openLinks(): number;
}

/** Current values that a member created by `join()` provides for its metrics. */
export interface ServiceGauges {
  locksHeld(): number;
  lockWaiters(): number;
  leadershipsHeld(): number;
  hasQuorum(): boolean;
  reachable(): number;
  suspected(): number;
  stateCalls(): number;
  hasLogLeader(): boolean;
  /** Returns the number of open instances by kind. */
  instances(): Tally<string>;
  watches(): number;
  /** Returns the log's values. Null if this member has no journal and therefore does not run the log. */
  log(): LogGauges | null;
}

/** Current values for the replicated log on this member. */
export interface LogGauges {
  readonly term: number;
  readonly isLeader: boolean;
  readonly lastIndex: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** The number of entries since the last snapshot. */
  readonly entries: number;
  /** How many entries each peer lacks. Empty if this member is not the leader. */
  readonly lag: Tally<string>;
  readonly sessions: number;
  readonly stateBytes: number;
  readonly stateBytesLimit: number;
  /** The total size of the commands for state machines that this member has not defined. */
  readonly undefinedBytes: number;
  /** The size of the last snapshot. */
  readonly snapshotChars: number;
}

/** Returns the gauges for the links to peers, computed from the status that a transport reports. */
export function linksOf(peers: () => readonly Pick<PeerStatus, "link" | "queuedBytes">[]): LinkGauges {
  return {
    queuedBytes: () => peers().reduce((sum, peer) => sum + peer.queuedBytes, 0),
    openLinks: () => peers().filter((peer) => peer.link === "open").length,
  };
}

/** Returns the metrics that every member has, regardless of its protocol. */
export function networkMetrics(counts: Counts, gauges: LinkGauges): readonly Metric[] {
  return [
    tally("messages_sent_total", "Protocol messages sent, by type.", "type", () => counts.messagesSent),
    tally("messages_received_total", "Protocol messages received, by type.", "type", () => counts.messagesReceived),
    tally("messages_from_total", "Protocol messages received, by peer.", "peer", () => counts.messagesFrom),
    tally("messages_lost_total", "Messages that were lost, by reason.", "reason", () => counts.lost),
    tally("refused_total", "Connections, frames and commands rejected, by reason.", "reason", () => counts.refused),
    counter("duplicates_total", "Duplicate messages received after a reconnect and dropped.", () => counts.duplicates),
    tally(
      "wrong_signatures_total",
      "Values ignored because the node that they name has not signed them, by sending peer.",
      "peer",
      () => counts.wrongSignatures,
    ),
    tally(
      "exposed_total",
      "Proofs that a node is Byzantine: statements that no correct node would sign, by node.",
      "peer",
      () => counts.exposed,
    ),
    counter("reconnects_total", "Times that a link to a peer was reopened.", () => counts.reconnects),
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
      "Fragmented messages that were never completed.",
      () => counts.messagesIncomplete,
    ),
    gauge("queued_bytes", "Bytes waiting to be sent or acknowledged.", gauges.queuedBytes),
    gauge("open_links", "Peers with an open link.", gauges.openLinks),
    {
      ...named("certificate_days_left", "Days until one of this member's certificates expires, by use."),
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
    counter("journal_failures_total", "Journal failures. The member stops after a failure.", () => journal.failures),
    durations("journal_sync_seconds", "Time until a journal write becomes durable.", () => journal.syncing),
  ];
}

/**
 * Returns the metrics of a member created by `join()`. No metric has a label or name for an individual lock, election
 * or channel.
 */
export function serviceMetrics(
  { locks, leaderships, sessionsLost, log, clients, etcd }: Counts,
  now: ServiceGauges,
): readonly Metric[] {
  return [
    gauge("locks_held", "Locks that this process holds.", now.locksHeld),
    gauge("lock_waiters", "Calls to acquire() that are waiting.", now.lockWaiters),
    counter("lock_acquired_total", "Locks acquired by this process.", () => locks.acquired),
    counter("lock_released_total", "Locks released by this process.", () => locks.released),
    counter("lock_lost_total", "Locks lost while this process held them.", () => locks.lost),
    counter("lock_timeouts_total", "Calls to acquire() that timed out.", () => locks.timedOut),
    durations("lock_acquire_seconds", "Time that acquire() took to acquire the lock.", () => locks.acquiring),
    gauge("leaderships_held", "Elections that this process leads and whose work is running.", now.leadershipsHeld),
    counter("leadership_won_total", "Times that lead() started its work.", () => leaderships.won),
    counter("leadership_lost_total", "Leaderships lost while lead() was running its work.", () => leaderships.lost),
    gauge("quorum", "1 if this member can reach a majority, otherwise 0.", () => Number(now.hasQuorum())),
    gauge("members_reachable", "Reachable members, including this one.", now.reachable),
    gauge("peers_suspected", "Peers that are suspected of having crashed.", now.suspected),
    gauge("state_calls_waiting", "Calls to shared state in progress.", now.stateCalls),
    gauge("state_leader_known", "1 if this member knows who leads the shared log, otherwise 0.", () =>
      Number(now.hasLogLeader()),
    ),
    counter("state_sessions_lost_total", "Times that this member's session ended.", () => sessionsLost.count),
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

/** Returns the metrics for the replicated log and the state that it stores. */
function logMetrics(counts: Counts["log"], { log, watches }: ServiceGauges): readonly Metric[] {
  const of = (name: string, help: string, read: (log: LogGauges) => number): Metric =>
    gauge(name, help, () => read(log() ?? NO_LOG));
  return [
    of("log_term", "Current term of the log, as known to this member.", ({ term }) => term),
    of("log_leads", "1 if this member leads the log, otherwise 0.", ({ isLeader }) => Number(isLeader)),
    counter("log_leader_changes_total", "Times that a member became leader of the log.", () => counts.leaderChanges),
    of("log_last_index", "Index of the last entry in this member's log.", ({ lastIndex }) => lastIndex),
    of("log_commit_index", "Index of the last entry known to be committed.", ({ commitIndex }) => commitIndex),
    of("log_applied_index", "Index of the last applied entry.", ({ appliedIndex }) => appliedIndex),
    of("log_entries", "Entries not yet covered by a snapshot.", ({ entries }) => entries),
    {
      ...named(
        "log_follower_lag_entries",
        "Log entries that a follower is not yet known to have, by peer. Reported by the leader.",
      ),
      type: "gauge",
      label: "peer",
      read: () => (log() ?? NO_LOG).lag,
    },
    durations("log_commit_seconds", "Time until a command is committed and applied here.", () => counts.committing),
    durations("log_read_seconds", "Duration of linearizable reads.", () => counts.reading),
    durations(
      "snapshot_seconds",
      "Time that one step of taking or installing a snapshot blocked the member.",
      () => counts.snapshots,
    ),
    of("snapshot_chars", "Size of the last snapshot, in characters.", ({ snapshotChars }) => snapshotChars),
    of("state_bytes", "Total size of all shared keys, values and items, in bytes.", ({ stateBytes }) => stateBytes),
    of(
      "state_limit_bytes",
      "Limit on the total size of shared keys, values and items, in bytes.",
      ({ stateBytesLimit }) => stateBytesLimit,
    ),
    of(
      "state_undefined_bytes",
      "Size of commands waiting here until replicated() defines their state machine, in bytes.",
      ({ undefinedBytes }) => undefinedBytes,
    ),
    of("state_sessions", "Member and client sessions recorded in the log.", ({ sessions }) => sessions),
    gauge("state_watches", "Map watches open at this member.", watches),
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

/** Returns the metrics for clients (processes that are not members). */
function clientMetrics(clients: Counts["clients"]): readonly Metric[] {
  return [
    gauge("clients_connected", "Clients connected to this member.", () => clients.connected),
    counter("client_connections_total", "Connections opened by clients.", () => clients.connections),
    counter("client_commands_total", "Commands from clients, including repeated proposals.", () => clients.commands),
    counter("client_reads_total", "Reads requested by clients.", () => clients.reads),
    counter("client_requests_total", "Requests over HTTP.", () => clients.requests),
    counter("client_refused_total", "Rejected clients and requests.", () => clients.refused),
    counter("client_dropped_total", "Clients disconnected because they read too slowly.", () => clients.dropped),
  ];
}

/** Returns the metrics for clients of the etcd API. */
function etcdMetrics(etcd: Counts["etcd"]): readonly Metric[] {
  return [
    gauge("etcd_connections", "Connections from etcd clients.", () => etcd.connected),
    tally("etcd_calls_total", "Calls to the etcd API, by name.", "call", () => etcd.calls),
    gauge("etcd_calls_open", "Calls to the etcd API in progress, including streams.", () => etcd.open),
    gauge("etcd_watches", "Watches opened by etcd clients.", () => etcd.watches),
    tally(
      "etcd_refused_total",
      "Calls to the etcd API that ended with an error, by reason.",
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
  gauge("trace_listeners", "Clients reading the trace.", read);

/**
 * Adds the metrics to a registry. If one cannot be added, adds none.
 * @returns a function that removes them
 * @throws UsageError if the registry already has a metric with one of these names
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
      const text = `expected registry of join() to accept the metric ${metric.name}, but it was rejected: give each member in a process its own registry, and call leave() on a failed member before its successor joins`;
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
 * The interface that a prom-client registry requires of a metric. There is one object per registry, because an
 * OpenMetrics registry renames its counters.
 */
class Registered {
  name: string;
  readonly help: string;
  readonly type: Metric["type"];
  /** How prom-client's cluster support combines the values from several processes. */
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

  /** Does nothing, since other programs must not reset a member's counters. */
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
