/** Whether the members of a local cluster agree on who leads. */
import type { NodeId } from "../../core/protocol.ts";
import type { NodePicture } from "../feed.ts";

export interface Agreement {
  readonly leader: NodeId;
  /** Who holds it for the leader, the leader included. Ascending. */
  readonly agreed: readonly NodeId[];
}

/** The running members that name the same leader. */
export interface Opinion {
  readonly leader: NodeId | null;
  /** Ascending. */
  readonly nodes: readonly NodeId[];
}

/** What a liar says of itself does not count. */
const honest = (nodes: readonly NodePicture[]): readonly NodePicture[] =>
  nodes.filter(({ byzantine }) => byzantine === undefined);

/** What the running members hold. More than one opinion is a disagreement; none is a protocol without leaders. */
export function opinionsOf(nodes: readonly NodePicture[]): Opinion[] {
  const groups = new Map<NodeId | null, NodeId[]>();
  for (const { id, process, view } of honest(nodes)) {
    if (process !== "running" || view?.leader === undefined) continue;
    groups.set(view.leader, [...(groups.get(view.leader) ?? []), id]);
  }
  return [...groups].map(([leader, holders]) => ({ leader, nodes: holders }));
}

/** Null unless every running member names the same leader, and that one runs. */
export function agreementOf(nodes: readonly NodePicture[]): Agreement | null {
  const running = nodes.filter((node) => node.process === "running");
  const [first, ...others] = honest(running);
  const leader = first?.view?.leader ?? null;
  if (leader === null || others.some(({ view }) => view?.leader !== leader)) return null;
  const agreed = honest(running).map(({ id }) => id);
  return running.some(({ id }) => id === leader) ? { leader, agreed } : null;
}

/** Whether all are up and every one says that nobody leads. */
export function isLeaderless(nodes: readonly NodePicture[]): boolean {
  return honest(nodes).every(({ process, view }) => process === "running" && view?.leader === null);
}

/** Whether all are up: where some lie, the others may never agree. */
export const areUp = (nodes: readonly NodePicture[]): boolean =>
  nodes.every(({ process, view }) => process === "running" && view !== null);

/** Whether all are up and there is nothing left to agree on. */
export function isSettled(nodes: readonly NodePicture[]): boolean {
  const knowsLeaders = honest(nodes).some(({ view }) => view?.leader !== undefined);
  return areUp(nodes) && (!knowsLeaders || agreementOf(nodes) !== null);
}
