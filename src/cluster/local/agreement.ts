/** Whether the members of a local cluster agree on the leader. */
import type { NodeId } from "../../core/protocol.ts";
import type { NodePicture } from "../feed.ts";

export interface Agreement {
  readonly leader: NodeId;
  /** The members that name this leader, including the leader, ascending. */
  readonly agreed: readonly NodeId[];
}

/** A group of running members that name the same leader. */
export interface Opinion {
  readonly leader: NodeId | null;
  /** Their ids, ascending. */
  readonly nodes: readonly NodeId[];
}

/** Ignores Byzantine nodes, whose views may be false. */
const honest = (nodes: readonly NodePicture[]): readonly NodePicture[] =>
  nodes.filter(({ byzantine }) => byzantine === undefined);

/** The opinions of the running members. More than one is a disagreement; none means that the protocol has no leaders. */
export function opinionsOf(nodes: readonly NodePicture[]): Opinion[] {
  const groups = new Map<NodeId | null, NodeId[]>();
  for (const { id, process, view } of honest(nodes)) {
    if (process !== "running" || view?.leader === undefined) continue;
    groups.set(view.leader, [...(groups.get(view.leader) ?? []), id]);
  }
  return [...groups].map(([leader, holders]) => ({ leader, nodes: holders }));
}

/** Null unless every running member names the same leader, which also runs. */
export function agreementOf(nodes: readonly NodePicture[]): Agreement | null {
  const running = nodes.filter((node) => node.process === "running");
  const [first, ...others] = honest(running);
  const leader = first?.view?.leader ?? null;
  if (leader === null || others.some(({ view }) => view?.leader !== leader)) return null;
  const agreed = honest(running).map(({ id }) => id);
  return running.some(({ id }) => id === leader) ? { leader, agreed } : null;
}

/** Whether all are up and none knows a leader. */
export function isLeaderless(nodes: readonly NodePicture[]): boolean {
  return honest(nodes).every(({ process, view }) => process === "running" && view?.leader === null);
}

/** Whether all are up: with Byzantine members, the others may never agree. */
export const areUp = (nodes: readonly NodePicture[]): boolean =>
  nodes.every(({ process, view }) => process === "running" && view !== null);

/** Whether all are up and have nothing left to agree on. */
export function isSettled(nodes: readonly NodePicture[]): boolean {
  const knowsLeaders = honest(nodes).some(({ view }) => view?.leader !== undefined);
  return areUp(nodes) && (!knowsLeaders || agreementOf(nodes) !== null);
}
