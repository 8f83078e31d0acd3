/** Describes network conditions. */
import type { ClusterPicture, NetworkPicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { inWords } from "./phrase-book.ts";

/** The maximum number of links to list individually. */
const LISTED = 5;

export function networkNews(now: ClusterPicture, before: ClusterPicture): string[] {
  return [...linkNews(now, before), ...conditionNews(now.network, before.network)];
}

/** Describes current faults, such as `split: 0 and 1 | 2; 20 % of the messages dropped`. Empty if there are none. */
export function networkInWords(network: NetworkPicture, nodes: readonly NodeId[]): string {
  const cut = pairs(network);
  const islands = islandsOf(nodes, isApartIn(network));
  const cuts = islands.length > 1 ? `split: ${islands.map(inWords).join(" | ")}` : `${links(cut)} cut`;
  const percent = Math.round(network.dropRate * 100);
  const [min, max] = network.delayMs;
  return [
    ...(cut.length > 0 ? [cuts] : []),
    ...(network.dropRate > 0 ? [`${percent} % of the messages dropped`] : []),
    ...(max > 0 ? [`${min === max ? max : `${min} to ${max}`} ms of delay`] : []),
  ].join("; ");
}

function linkNews(now: ClusterPicture, before: ClusterPicture): string[] {
  const [is, was] = [pairs(now.network), pairs(before.network)];
  const cut = is.filter((pair) => !was.includes(pair));
  const mended = was.filter((pair) => !is.includes(pair));
  if (cut.length + mended.length === 0) return [];
  if (now.network.cuts.length === 0) return ["all links mended"];
  const islands = islandsOf(
    now.nodes.map((node) => node.id),
    isApartIn(now.network),
  );
  if (islands.length > 1 && cut.length > 0) return [`the network is split: ${islands.map(inWords).join(" | ")}`];
  return [...(cut.length > 0 ? [`${links(cut)} cut`] : []), ...(mended.length > 0 ? [`${links(mended)} mended`] : [])];
}

function conditionNews(now: NetworkPicture, before: NetworkPicture): string[] {
  const news: string[] = [];
  if (now.dropRate !== before.dropRate)
    news.push(`the network drops ${Math.round(now.dropRate * 100)} % of the messages`);
  const [min, max] = now.delayMs;
  if (min !== before.delayMs[0] || max !== before.delayMs[1])
    news.push(max === 0 ? "the network adds no delay" : `the network adds ${min} to ${max} ms of delay`);
  return news;
}

function isApartIn(network: NetworkPicture): (a: NodeId, b: NodeId) => boolean {
  const cut = new Set(pairs(network));
  return (a, b) => cut.has(pairName(a, b));
}

function pairs({ cuts }: NetworkPicture): string[] {
  return [...new Set(cuts.map(([a, b]) => pairName(a, b)))];
}

function pairName(a: NodeId, b: NodeId): string {
  return `${Math.min(a, b)}–${Math.max(a, b)}`;
}

function links(names: readonly string[]): string {
  if (names.length === 1) return `link ${names[0]}`;
  return names.length > LISTED ? `${names.length} links` : `links ${names.join(", ")}`;
}

/**
 * Returns groups of nodes that have no path between them, not even through other nodes. Each group is in ascending
 * order.
 */
export function islandsOf(nodes: readonly NodeId[], isApart: (a: NodeId, b: NodeId) => boolean): NodeId[][] {
  const unseen = new Set(nodes);
  const islands: NodeId[][] = [];
  for (const first of unseen) {
    const island = [first];
    unseen.delete(first);
    for (const node of island) {
      for (const other of unseen) {
        if (isApart(node, other)) continue;
        island.push(other);
        unseen.delete(other);
      }
    }
    islands.push(island.sort((a, b) => a - b));
  }
  return islands;
}
