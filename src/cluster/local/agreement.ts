/** Determines whether the members of a local cluster agree on the leader. */
import type { NodeId } from "../../core/protocol.ts";
import type { NodePicture } from "../feed.ts";

/** A leader and the members that report it. */
export interface Agreement {
  readonly leader: NodeId;
  /** The members that report this leader, including the leader itself, ascending. */
  readonly agreed: readonly NodeId[];
}

/** A group of running members that report the same leader. */
export interface Opinion {
  readonly leader: NodeId | null;
  /** The members' ids, ascending. */
  readonly nodes: readonly NodeId[];
}

/** Excludes Byzantine nodes, whose views may be false. */
const honest = (nodes: readonly NodePicture[]): readonly NodePicture[] =>
  nodes.filter(({ byzantine }) => byzantine === undefined);

/**
 * Returns the opinions of the running members. More than one opinion means a disagreement. None means that the protocol
 * has no leaders.
 */
export function opinionsOf(nodes: readonly NodePicture[]): Opinion[] {
  const groups = new Map<NodeId | null, NodeId[]>();
  for (const { id, process, view } of honest(nodes)) {
    if (process !== "running" || view?.leader === undefined) continue;
    groups.set(view.leader, [...(groups.get(view.leader) ?? []), id]);
  }
  return [...groups].map(([leader, holders]) => ({ leader, nodes: holders }));
}

/** Returns null unless every running member reports the same leader and the leader is running. */
export function agreementOf(nodes: readonly NodePicture[]): Agreement | null {
  const running = nodes.filter((node) => node.process === "running");
  const [first, ...others] = honest(running);
  const leader = first?.view?.leader ?? null;
  if (leader === null || others.some(({ view }) => view?.leader !== leader)) return null;
  const agreed = honest(running).map(({ id }) => id);
  return running.some(({ id }) => id === leader) ? { leader, agreed } : null;
}

/** Whether all members are running and none knows of a leader. */
export function isLeaderless(nodes: readonly NodePicture[]): boolean {
  return honest(nodes).every(({ process, view }) => process === "running" && view?.leader === null);
}

/**
 * Whether all members are running. If some are Byzantine, there is nothing else to wait for, since the others may never
 * agree.
 */
export const areUp = (nodes: readonly NodePicture[]): boolean =>
  nodes.every(({ process, view }) => process === "running" && view !== null);

/** Whether all members are running and have nothing left to agree on. */
export function isSettled(nodes: readonly NodePicture[]): boolean {
  const knowsLeaders = honest(nodes).some(({ view }) => view?.leader !== undefined);
  return areUp(nodes) && (!knowsLeaders || agreementOf(nodes) !== null);
}
