/**
 * The desired state of the network between the members. The supervisor stores it and sends each member's fault injector
 * the part that concerns that member.
 */
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Faults } from "../../runtime/fault-injector.ts";
import { linkCut, linkMended, sendingChanged } from "../../trace/link-model.ts";
import type { Act, NetworkPeriod, NetworkPicture } from "../feed.ts";

/** A request that changes the network. */
export type NetworkAct = Extract<Act, { type: "cut" | "mend" | "split" | "heal" | "link-conditions" }>;

/** A network without faults. */
export const healthyNetwork: NetworkPicture = { cuts: [], dropRate: 0, delayMs: [0, 0] };

const KEPT_MS = 65_000;
const MOST_KEPT = 60;

/**
 * Returns the network after the action.
 * @throws UsageError if the action makes no sense for these nodes
 */
export function networkAfter(network: NetworkPicture, act: NetworkAct, nodes: readonly NodeId[]): NetworkPicture {
  switch (act.type) {
    case "cut":
    case "mend": {
      const [a, b] = act.nodes;
      if (a === b) throw new UsageError("bad-act", `expected two different nodes, got ${a} twice`);
      const others = network.cuts.filter(([from, to]) => !(from === a && to === b) && !(from === b && to === a));
      return { ...network, cuts: act.type === "mend" ? others : [...others, [a, b], [b, a]] };
    }
    case "split":
      return { ...network, cuts: cutsBetween(act.groups, nodes) };
    case "heal":
      return healthyNetwork;
    case "link-conditions":
      return { ...network, dropRate: act.dropRate, delayMs: act.delayMs };
  }
}

/** Appends the new state and drops the states from before the last minute, which are no longer drawn. */
export function networksAfter(networks: readonly NetworkPeriod[], next: NetworkPeriod): NetworkPeriod[] {
  const ended = networks.filter((_, index) => (networks[index + 1]?.since ?? next.since) > next.since - KEPT_MS);
  return [...ended.slice(-MOST_KEPT), next];
}

/**
 * Returns the faults for node `from`, which drops the messages that it must not send. A link that is cut in both
 * directions is cut at both ends.
 */
export function faultsOf(from: NodeId, { cuts, dropRate, delayMs: [min, max] }: NetworkPicture): Faults {
  const cutTo = cuts.filter(([sender]) => sender === from).map(([, to]) => to);
  return { cutTo: cutTo.sort((a, b) => a - b), dropRate, delayMs: { min, max } };
}

/** Returns the changes to the faults at node `from`, described as text for a trace. */
export function changesOf(from: NodeId, before: NetworkPicture, after: NetworkPicture): string[] {
  const [was, is] = [faultsOf(from, before), faultsOf(from, after)];
  const cut = is.cutTo.filter((to) => !was.cutTo.includes(to)).map(linkCut);
  const mended = was.cutTo.filter((to) => !is.cutTo.includes(to)).map(linkMended);
  const { dropRate, delayMs } = is;
  const isSame = dropRate === was.dropRate && delayMs.min === was.delayMs.min && delayMs.max === was.delayMs.max;
  return [...cut, ...mended, ...(isSame ? [] : [sendingChanged({ dropRate, delayMs })])];
}

function cutsBetween(groups: readonly (readonly NodeId[])[], nodes: readonly NodeId[]): [NodeId, NodeId][] {
  const groupOf = new Map<NodeId, number>();
  for (const [index, group] of groups.entries()) {
    for (const node of group) {
      if (groupOf.has(node))
        throw new UsageError("bad-act", `expected each node in one group, got node ${node} in two`);
      groupOf.set(node, index);
    }
  }
  const together = (a: NodeId, b: NodeId): boolean => groupOf.has(a) && groupOf.get(a) === groupOf.get(b);
  return nodes.flatMap((from) =>
    nodes.filter((to) => from !== to && !together(from, to)).map((to): [NodeId, NodeId] => [from, to]),
  );
}
