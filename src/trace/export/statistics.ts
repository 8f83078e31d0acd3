/** Statistics of a trace: messages by type and link, their delays, and losses. */
import type { NodeId } from "../../core/protocol.ts";
import type { LossReason, MessageId, TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { nameOf } from "../log.ts";
import { type Flight, flightsOf } from "../steps.ts";

/** The statistics. Times and delays are in milliseconds. Times are relative to the origin of the excerpt. */
export interface Statistics {
  readonly protocol: string;
  readonly nodes: readonly NodeId[];
  readonly entries: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly messages: {
    readonly sent: number;
    readonly received: number;
    readonly lost: number;
    /** The number of messages that were sent but neither received nor lost by the end of the trace. */
    readonly underWay: number;
    readonly lostBy: Readonly<Partial<Record<LossReason, number>>>;
  };
  readonly byType: Readonly<Record<string, TypeStatistics>>;
  readonly byNode: Readonly<Record<NodeId, NodeStatistics>>;
  /** The number of messages on each link, keyed by `from>to`. */
  readonly byLink: Readonly<Record<string, number>>;
  readonly timeouts: Readonly<Record<string, number>>;
  readonly events: Readonly<Record<string, number>>;
  readonly crashes: number;
  readonly restarts: number;
  readonly missingEntries: number;
  /** When a node first considered itself the leader. Null if none ever did. */
  readonly firstLeader: { readonly node: NodeId; readonly atMs: number } | null;
  /** The number of messages in the longest causal chain: each message was sent after the previous one was received. */
  readonly causalDepth: number;
}

/** The messages of one type. */
export interface TypeStatistics {
  readonly sent: number;
  readonly received: number;
  readonly lost: number;
  /** The delays. Null if the trace does not contain both the send and the receipt of any message of this type. */
  readonly delayMs: Delays | null;
}

/** The distribution of delays, in milliseconds. */
export interface Delays {
  readonly min: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/** The messages that one node sent, received and lost. */
export interface NodeStatistics {
  readonly sent: number;
  readonly received: number;
  readonly steps: number;
}

export function statisticsOf(excerpt: Excerpt): Statistics {
  const { header, entries, origin } = excerpt;
  const flights = flightsOf(entries);
  const lost = flights.filter((flight) => flight.lost !== null);
  const reasons = tally(lost.map((flight) => flight.lost as LossReason));
  const count = (kind: TraceEntry["kind"]): number => entries.filter((entry) => entry.kind === kind).length;
  const times = entries.map(({ at }) => at - origin);
  return {
    protocol: header.protocol,
    nodes: header.nodes,
    entries: entries.length,
    fromMs: times.reduce((a, b) => Math.min(a, b), times[0] ?? 0),
    toMs: times.reduce((a, b) => Math.max(a, b), times[0] ?? 0),
    messages: {
      sent: count("send"),
      received: count("receive"),
      lost: lost.length,
      underWay: flights.filter(({ ended }) => ended === null).length,
      lostBy: reasons,
    },
    byType: typesOf(flights, entries),
    byNode: nodesOf(excerpt),
    byLink: tally(entries.flatMap((entry) => (entry.kind === "send" ? [`${entry.node}>${entry.to}`] : []))),
    timeouts: tally(entries.flatMap((entry) => (entry.kind === "timeout" ? [entry.timer] : []))),
    events: tally(entries.flatMap((entry) => (entry.kind === "event" ? [nameOf(entry.event).full] : []))),
    crashes: count("crash"),
    restarts: restartsOf(entries),
    missingEntries: entries.reduce((sum, entry) => sum + (entry.kind === "gap" ? entry.dropped : 0), 0),
    firstLeader: firstLeaderOf(excerpt),
    causalDepth: causalDepth(entries),
  };
}

function typesOf(flights: readonly Flight[], entries: readonly TraceEntry[]): Statistics["byType"] {
  const types = new Map<string, Flight[]>();
  for (const flight of flights) {
    const type = nameOf(flight.message).full;
    const same = types.get(type);
    if (same === undefined) types.set(type, [flight]);
    else same.push(flight);
  }
  const at = (index: number): number => entries[index]?.at ?? 0;
  const ranked = [...types].map(([type, all]): [string, TypeStatistics] => {
    const received = all.filter(({ ended, lost }) => ended !== null && lost === null);
    const delays = received.flatMap(({ sent, ended }) =>
      // The clocks of two processes differ slightly, but no message arrives before it was sent.
      sent === null || ended === null ? [] : [Math.max(0, at(ended) - at(sent))],
    );
    const sent = new Set(all.flatMap((flight) => (flight.sent === null ? [] : [flight.sent]))).size;
    const lost = all.filter((flight) => flight.lost !== null).length;
    return [type, { sent, received: received.length, lost, delayMs: delaysOf(delays) }];
  });
  return Object.fromEntries(ranked.sort((a, b) => b[1].sent - a[1].sent || (a[0] < b[0] ? -1 : 1)));
}

/** Computes percentiles using the nearest-rank method. */
function delaysOf(delays: readonly number[]): Delays | null {
  if (delays.length === 0) return null;
  const sorted = delays.toSorted((a, b) => a - b);
  const rank = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { min: rank(0), median: rank(0.5), p99: rank(0.99), max: rank(1) };
}

function nodesOf({ header, entries, steps: all }: Excerpt): Statistics["byNode"] {
  const isStep = (first: number | undefined): boolean => entries[first ?? 0]?.kind !== "lost";
  const steps = tally(all.flatMap(({ node, indices }) => (isStep(indices[0]) ? [node] : [])));
  const sent = tally(entries.flatMap(({ kind, node }) => (kind === "send" ? [node] : [])));
  const received = tally(entries.flatMap(({ kind, node }) => (kind === "receive" ? [node] : [])));
  return Object.fromEntries(
    header.nodes.map((node) => [
      node,
      { sent: sent[node] ?? 0, received: received[node] ?? 0, steps: steps[node] ?? 0 },
    ]),
  );
}

function restartsOf(entries: readonly TraceEntry[]): number {
  const crashed = new Set<NodeId>();
  let restarts = 0;
  for (const { kind, node } of entries) {
    if (kind === "crash") crashed.add(node);
    if (kind === "start" && crashed.delete(node)) restarts += 1;
  }
  return restarts;
}

function firstLeaderOf({ entries, origin }: Excerpt): Statistics["firstLeader"] {
  const first = entries.find((entry) => entry.kind === "view" && entry.view.leader === entry.node);
  return first === undefined ? null : { node: first.node, atMs: first.at - origin };
}

function causalDepth(entries: readonly TraceEntry[]): number {
  const atNode = new Map<NodeId, number>();
  const ofMessage = new Map<MessageId, number>();
  for (const entry of entries) {
    const depth = atNode.get(entry.node) ?? 0;
    if (entry.kind === "send") ofMessage.set(entry.id, depth + 1);
    if (entry.kind === "receive") atNode.set(entry.node, Math.max(depth, ofMessage.get(entry.id) ?? 1));
  }
  return [...ofMessage.values(), ...atNode.values()].reduce((a, b) => Math.max(a, b), 0);
}

function tally<K extends string | number>(words: readonly K[]): Record<K, number> {
  const counts = new Map<K, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => byName(a, b))) as Record<K, number>;
}

const byName = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);
