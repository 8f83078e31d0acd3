/** Ways to split a cluster in two. */
import type { ClusterPicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";

export interface Preset {
  readonly name: string;
  /** One side; the other side is everybody else. Empty while nobody can be told. */
  readonly side: readonly NodeId[];
}

export function presetsOf({ nodes }: ClusterPicture, leader: NodeId | "none" | "split"): Preset[] {
  const ids = nodes.map((node) => node.id);
  return [
    { name: "Halves", side: ids.slice(0, Math.ceil(ids.length / 2)) },
    { name: "Isolate the leader", side: typeof leader === "number" ? [leader] : [] },
  ];
}

/** Both sides, as the server wants them; null if one of them is empty. */
export function groupsOf({ nodes }: ClusterPicture, side: ReadonlySet<NodeId>): [NodeId[], NodeId[]] | null {
  const ids = nodes.map((node) => node.id);
  const groups: [NodeId[], NodeId[]] = [ids.filter((id) => side.has(id)), ids.filter((id) => !side.has(id))];
  return groups[0].length > 0 && groups[1].length > 0 ? groups : null;
}

export function isCut({ network }: ClusterPicture, a: NodeId, b: NodeId): boolean {
  return network.cuts.some(([from, to]) => (from === a && to === b) || (from === b && to === a));
}

/** Whether anything at all is wrong with the network. */
export function isDisturbed({ network }: ClusterPicture): boolean {
  return network.cuts.length > 0 || network.dropRate > 0 || network.delayMs[1] > 0;
}
