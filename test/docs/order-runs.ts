/**
 * Runs one scenario under several orders of delivery: when each node sent, received and delivered each message, and
 * which order was kept.
 */
import type { NodeId } from "../../src/core/protocol.ts";
import { asVariant, runScenario, type Scenario } from "../../src/experiment/scenario/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { deliveredId, nameOf } from "../../src/trace/log.ts";
import { stepsOf } from "../../src/trace/steps.ts";

export interface OrderRun {
  readonly protocol: string;
  readonly sent: readonly Sent[];
  readonly deliveries: readonly Delivery[];
  /** Pairs of messages in happened-before order, with the earlier message first. */
  readonly related: readonly Pair[];
  readonly kept: Readonly<Record<Order, boolean>>;
  /** For each node: a message that it delivered after one that must follow it. */
  readonly wrong: readonly Inversion[];
  /** For each node: two concurrent messages that it delivered in a different order than the first node. */
  readonly different: readonly Inversion[];
}

export type Order = "FIFO" | "causal" | "total";
export type Pair = readonly [earlier: string, later: string];

export interface Inversion {
  readonly node: NodeId;
  /** The message that was delivered first. */
  readonly first: string;
  readonly second: string;
}

export interface Sent {
  readonly id: string;
  readonly node: NodeId;
  readonly at: number;
}

/** For a node's own message, `receivedAt` is the time when it was sent. */
export interface Delivery {
  readonly id: string;
  readonly node: NodeId;
  readonly receivedAt: number;
  readonly at: number;
}

export function orderRuns(scenario: Scenario): OrderRun[] {
  const protocols = [scenario.protocol, ...Object.keys(scenario.variants)];
  return protocols.map((protocol) => orderRun(protocol, tracedUnder(scenario, protocol)));
}

function tracedUnder(scenario: Scenario, protocol: string): TraceEntry[] {
  const entries: TraceEntry[] = [];
  runScenario(asVariant(scenario, protocol), { trace: (entry) => entries.push(entry) });
  return entries;
}

function orderRun(protocol: string, entries: readonly TraceEntry[]): OrderRun {
  const sent: Sent[] = [];
  const deliveries: Delivery[] = [];
  const related = new Map<string, Pair>();
  const known = new Map<NodeId, string[]>();
  /** For each message in transit: the payload that it carries. */
  const carried = new Map<string, string>();
  const receivedAt = new Map<string, number>();
  const know = (node: NodeId, id: string): void => void known.set(node, [...(known.get(node) ?? []), id]);
  for (const { node, at, indices } of stepsOf(entries)) {
    let said: string | null = null;
    for (const entry of indices.map((index) => entries[index] as TraceEntry)) {
      if (entry.kind === "event" && nameOf(entry.event).short === "said") {
        said = `${node}.${sent.filter((other) => other.node === node).length + 1}`;
        for (const earlier of known.get(node) ?? []) related.set(`${earlier} ${said}`, [earlier, said]);
        sent.push({ id: said, node, at });
        receivedAt.set(`${node} ${said}`, at);
        know(node, said);
      } else if (entry.kind === "send" && said !== null) carried.set(entry.id, said);
      else if (entry.kind === "receive") {
        const key = `${node} ${carried.get(entry.id)}`;
        if (!receivedAt.has(key)) receivedAt.set(key, at);
      }
      const id = entry.kind === "event" ? deliveredId(entry.event) : null;
      if (id === null) continue;
      deliveries.push({ id, node, at, receivedAt: receivedAt.get(`${node} ${id}`) ?? at });
      know(node, id);
    }
  }
  const pairs = [...related.values()];
  return { protocol, sent, deliveries, related: pairs, ...judged(sent, deliveries, pairs) };
}

function judged(
  sent: readonly Sent[],
  deliveries: readonly Delivery[],
  related: readonly Pair[],
): Pick<OrderRun, "kept" | "wrong" | "different"> {
  const nodes = [...new Set(deliveries.map(({ node }) => node))].sort((a, b) => a - b);
  const orders = new Map(
    nodes.map((node) => [node, deliveries.filter((each) => each.node === node).map(({ id }) => id)]),
  );
  const isBefore = (node: NodeId, a: string, b: string): boolean => {
    const order = orders.get(node) as string[];
    return order.indexOf(a) < order.indexOf(b);
  };
  const wrong = nodes.flatMap((node) =>
    related.filter(([a, b]) => isBefore(node, b, a)).map(([a, b]): Inversion => ({ node, first: b, second: a })),
  );
  const [reference = 0] = nodes;
  const all = sent.flatMap(({ id: a }, place) => sent.slice(place + 1).map(({ id: b }): Pair => [a, b]));
  const differing = all.filter(([a, b]) => nodes.some((node) => isBefore(node, a, b) !== isBefore(reference, a, b)));
  const isRelated = ([a, b]: Pair): boolean => related.some(([c, d]) => (a === c && b === d) || (a === d && b === c));
  const different = differing
    .filter((pair) => !isRelated(pair))
    .flatMap(([a, b]) =>
      nodes
        .filter((node) => isBefore(node, a, b) !== isBefore(reference, a, b))
        .map(
          (node): Inversion => (isBefore(node, a, b) ? { node, first: a, second: b } : { node, first: b, second: a }),
        ),
    );
  const isOfOneSender = ({ first, second }: Inversion): boolean => first.split(".")[0] === second.split(".")[0];
  return {
    wrong,
    different,
    kept: { FIFO: !wrong.some(isOfOneSender), causal: wrong.length === 0, total: differing.length === 0 },
  };
}
