/** What changed in the network, in sentences. */
import type { ClusterPicture, NetworkPicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { inWords } from "./phrase-book.ts";

/** So many links are listed one by one. */
const LISTED = 5;

export function networkNews(now: ClusterPicture, before: ClusterPicture): string[] {
  return [...linkNews(now, before), ...weatherNews(now.network, before.network)];
}

function linkNews(now: ClusterPicture, before: ClusterPicture): string[] {
  const cut = pairs(now).filter((pair) => !pairs(before).includes(pair));
  const mended = pairs(before).filter((pair) => !pairs(now).includes(pair));
  if (cut.length + mended.length === 0) return [];
  if (now.network.cuts.length === 0) return ["all links mended"];
  const islands = islandsOf(now);
  if (islands.length > 1 && cut.length > 0) return [`the network is split: ${islands.map(inWords).join(" | ")}`];
  return [...(cut.length > 0 ? [`${links(cut)} cut`] : []), ...(mended.length > 0 ? [`${links(mended)} mended`] : [])];
}

function weatherNews(now: NetworkPicture, before: NetworkPicture): string[] {
  const news: string[] = [];
  if (now.dropRate !== before.dropRate)
    news.push(`the network drops ${Math.round(now.dropRate * 100)} % of the messages`);
  const [min, max] = now.delayMs;
  if (min !== before.delayMs[0] || max !== before.delayMs[1])
    news.push(max === 0 ? "the network adds no delay" : `the network adds ${min} to ${max} ms of delay`);
  return news;
}

/** Groups of nodes between which no message passes, not even by a detour. Each ascends. */
function islandsOf(cluster: ClusterPicture): NodeId[][] {
  const cut = new Set(pairs(cluster));
  const unseen = new Set(cluster.nodes.map((node) => node.id));
  const islands: NodeId[][] = [];
  for (const first of unseen) {
    const island = [first];
    unseen.delete(first);
    for (const node of island) {
      for (const other of unseen) {
        if (cut.has(pairName(node, other))) continue;
        island.push(other);
        unseen.delete(other);
      }
    }
    islands.push(island.sort((a, b) => a - b));
  }
  return islands;
}

function pairs({ network }: ClusterPicture): string[] {
  return [...new Set(network.cuts.map(([a, b]) => pairName(a, b)))];
}

function pairName(a: NodeId, b: NodeId): string {
  return `${Math.min(a, b)}–${Math.max(a, b)}`;
}

function links(names: readonly string[]): string {
  if (names.length === 1) return `link ${names[0]}`;
  return names.length > LISTED ? `${names.length} links` : `links ${names.join(", ")}`;
}
