/** Small clusters and messages for tests. */
import type { ClusterPicture, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId, View } from "../../../src/core/protocol.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";

export function nodePicture(id: NodeId, view: View | null, process: NodePicture["process"] = "running"): NodePicture {
  const pid = process === "exited" ? null : 100 + id;
  return { id, pid, address: "", admin: "", process, exit: null, view, commands: [] };
}

/** Returns a cluster whose node i follows `leaders[i]`. Null means that the node has no leader. */
export function clusterOf(leaders: readonly (NodeId | null)[], now = 1_000): ClusterPicture {
  const nodes = leaders.map((leader, id) => nodePicture(id, { role: leader === id ? "leader" : "follower", leader }));
  return pictureOf(nodes, now);
}

export function pictureOf(nodes: readonly NodePicture[], now = 1_000): ClusterPicture {
  const network = { cuts: [], dropRate: 0, delayMs: [0, 0] } as const;
  const inks = { "election.election": 0, "election.answer": 1, "election.coordinator": 2 };
  return {
    name: "test",
    protocol: "bully",
    now,
    restarts: false,
    isAttached: false,
    takesFaults: true,
    nodes,
    network,
    networkSince: now,
    inks,
    spans: { spans: "leadership", term: "term" },
  };
}

export function replaced(cluster: ClusterPicture, node: NodePicture, now: number): ClusterPicture {
  return { ...cluster, now, nodes: cluster.nodes.map((each) => (each.id === node.id ? node : each)) };
}

const election = (type: string) => ({ type: "election", body: { type } });

export function send(at: number, from: NodeId, to: NodeId, type = "election", id = `${from}>${to}@${at}`): TraceEntry {
  return { at, node: from, kind: "send", id, to, message: election(type) };
}

/** Returns the receive entry for the message that `send` sent at `sentAt`. */
export function receive(at: number, from: NodeId, to: NodeId, sentAt: number, type = "election"): TraceEntry {
  return { at, node: to, kind: "receive", id: `${from}>${to}@${sentAt}`, from, message: election(type) };
}

export function event(
  at: number,
  node: NodeId,
  part: string,
  body: { type: string; [field: string]: unknown },
): TraceEntry {
  return { at, node, kind: "event", event: { type: part, body } as { type: string } };
}
