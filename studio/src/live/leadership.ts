/** Describes the leader based on the views of all running nodes. */
import type { ClusterPicture, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { briefRole, inWords, nodesInWords } from "../history/phrase-book.ts";

export interface Leadership {
  /** The running node that the nodes follow. `split` if there are several. */
  readonly leader: NodeId | "none" | "split";
  readonly headline: string;
  readonly detail: string;
}

interface Following {
  readonly leader: NodeId;
  readonly followers: readonly NodeId[];
}

export function leadershipOf(cluster: ClusterPicture): Leadership {
  const told = leadershipIn(cluster);
  const headline = cluster.headline ?? null;
  if (headline === null) return told;
  // The protocol's own headline comes first. The leader is a detail, unless the headline already names it.
  const isSaid =
    told.headline === NOBODY ? cluster.spans.spans === "leadership" : headline.includes(`ode ${told.leader} leads`);
  return { ...told, headline, detail: isSaid ? told.detail : `${told.headline} ${told.detail}` };
}

const NOBODY = "No leader.";

function leadershipIn(cluster: ClusterPicture): Leadership {
  const running = cluster.nodes.filter((node) => node.process === "running");
  if (running.length === 0) return { leader: "none", headline: "No node is running.", detail: "Restart one to begin." };
  const seen = running.filter((node) => node.view !== null);
  if (seen.length > 0 && seen.every((node) => node.view?.leader === undefined)) return leaderless(running);

  const followings = followingsOf(running);
  const living = followings.filter(({ leader }) => running.some((node) => node.id === leader));
  const [first] = living;
  if (living.length > 1) {
    const headline = cluster.network.cuts.length > 0 ? "The cluster is split." : "Leaders disagree.";
    return { leader: "split", headline, detail: `${living.map(follow).join("; ")}.` };
  }
  if (first !== undefined) return led(first, running, cluster.protocol);
  const [mourned] = followings;
  if (mourned !== undefined) return bereft(mourned.leader, cluster);
  // Only the roles show whether a node has called an election.
  return { leader: "none", headline: NOBODY, detail: rolesInWords(running) };
}

function led({ leader, followers }: Following, running: readonly NodePicture[], protocol: string): Leadership {
  const dissent = running.filter((node) => !followers.includes(node.id));
  const detail =
    dissent.length === 0
      ? agreement(running.length)
      : `${followers.length} of ${running.length} agree; ${dissentInWords(dissent)}.`;
  // The members of `join()` have one leader per election. Their view shows the member that serves the locks.
  const does = protocol === "services" ? "serves the locks" : "leads";
  return { leader, headline: `Node ${leader} ${does}.`, detail };
}

/** Describes a cluster whose nodes follow a node that is not running. */
function bereft(leader: NodeId, cluster: ClusterPicture): Leadership {
  const process = cluster.nodes.find((node) => node.id === leader)?.process;
  const fate = process === "paused" ? "is paused" : process === "starting" ? "is starting" : "has stopped";
  return { leader: "none", headline: `Node ${leader} ${fate}.`, detail: "The others have not noticed yet." };
}

function leaderless(running: readonly NodePicture[]): Leadership {
  return { leader: "none", headline: `${running.length} nodes are running.`, detail: rolesInWords(running) };
}

function rolesInWords(running: readonly NodePicture[]): string {
  const roles = new Map<string, number>();
  for (const { view } of running) {
    const role = view === null ? null : briefRole(view.role);
    if (role !== null) roles.set(role, (roles.get(role) ?? 0) + 1);
  }
  const counts = [...roles].map(([role, count]) => `${count} ${role}`);
  return counts.length === 0 ? "" : `${counts.join(", ")}.`;
}

function followingsOf(running: readonly NodePicture[]): Following[] {
  const byLeader = new Map<NodeId, NodeId[]>();
  for (const { id, view } of running) {
    const leader = view?.leader ?? null;
    if (leader !== null) byLeader.set(leader, [...(byLeader.get(leader) ?? []), id]);
  }
  return [...byLeader].map(([leader, followers]) => ({ leader, followers })).sort((a, b) => a.leader - b.leader);
}

function agreement(count: number): string {
  if (count === 1) return "It is the only node running.";
  return count === 2 ? "Both nodes agree." : `All ${count} nodes agree.`;
}

function dissentInWords(dissent: readonly NodePicture[]): string {
  const lost = dissent.filter((node) => (node.view?.leader ?? null) === null).map((node) => node.id);
  const loyal = followingsOf(dissent).map(follow);
  const unaware = lost.length === 0 ? [] : [`${nodesInWords(lost)} ${lost.length === 1 ? "has" : "have"} no leader`];
  return [...unaware, ...loyal].join("; ");
}

function follow({ leader, followers }: Following): string {
  if (followers.length === 1 && followers[0] === leader) return `${leader} follows itself`;
  return `${inWords(followers)} ${followers.length === 1 ? "follows" : "follow"} ${leader}`;
}
